import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { parseExactJson } from "../../tool-arguments.ts";
import { isObject } from "../../json-values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { MessagesReader } from "./reader.ts";

export function decodeResponse(
  body: Buffer,
  emit: (event: ModelEvent) => void,
  signer: string,
): void {
  const message = parseMessage(body);
  const reading = new MessagesReader(emit, signer);
  reading.start(message);
  for (const [i, block] of (message["content"] as readonly Json[]).entries()) {
    if (!isObject(block)) continue;
    reading.open(i, block);
    reading.stop(i);
  }
  reading.finish();
}

/** Parses a message. Throws if a response with status 200 is anything else. */
export function parseMessage(body: Buffer): JsonObject {
  let message: unknown;
  try {
    message = parseExactJson(body.toString());
  } catch {
    message = undefined;
  }
  if (!isObject(message))
    return fail("upstream", "The provider's response is not JSON.", { code: "bad_answer" });
  if (message["type"] === "error" || message["error"]) return throwParsedError(message);
  if (!Array.isArray(message["content"]))
    return fail("upstream", "The provider's response has no content.", { code: "bad_answer" });
  return message;
}
