import { fail } from "../../../model/error.ts";
import type { Json } from "../../../model/values.ts";
import { parseExactJson } from "../../tool-arguments.ts";
import type { GeminiReader } from "./reader.ts";

/** Decodes a non-streaming response. A server that streams nevertheless sends a list of chunks. */
export function decodeResponse(body: Buffer, reading: GeminiReader): void {
  const answer = parsed(body);
  for (const chunk of Array.isArray(answer) ? (answer as readonly Json[]) : [answer])
    reading.chunk(chunk);
  reading.end();
}

export function parsed(body: Buffer): Json {
  try {
    return parseExactJson(body.toString());
  } catch {
    return fail("upstream", "The provider's response is not JSON.", { code: "bad_answer" });
  }
}
