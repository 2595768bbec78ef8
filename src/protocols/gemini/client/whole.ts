import { fail } from "../../../model/error.ts";
import type { Json } from "../../../model/values.ts";
import { exactly } from "../../arguments.ts";
import type { GeminiReader } from "./reader.ts";
import { object } from "../../json.ts";

/** One answer; where a server streams all the same, the list of its pieces. */
export function whole(body: Buffer, reading: GeminiReader): void {
  const answer = parsed(body);
  for (const chunk of Array.isArray(answer) ? (answer as readonly Json[]) : [answer])
    reading.chunk(chunk);
  reading.end();
}

/** What `countTokens` answers. */
export function counted(body: Buffer): number {
  const tokens = object(parsed(body))?.["totalTokens"];
  // An empty prompt has none, and a zero is left out.
  if (tokens === undefined && object(parsed(body))) return 0;
  return typeof tokens === "number"
    ? tokens
    : fail("upstream", "The provider's count of tokens is not a number.", { code: "bad_answer" });
}

function parsed(body: Buffer): Json {
  try {
    return exactly(body.toString());
  } catch {
    return fail("upstream", "The provider's answer is not JSON.", { code: "bad_answer" });
  }
}
