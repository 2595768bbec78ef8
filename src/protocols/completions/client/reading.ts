// One JSON object of an answer, a whole one or a piece of a stream: what of it is counted, and what is content.
import { fail } from "../../../model/error.ts";
import type { FinishReason } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import { throwFailure } from "../../failure/failure.ts";
import { object, objects, parsed, text } from "../../json.ts";

/** An error that stands where an answer should is thrown as what it says. */
export function answerIn(json: string): JsonObject {
  const said = parsed(json);
  if (!said)
    return fail("upstream", "The provider's answer is not a JSON object.", { code: "bad_answer" });
  if (said["error"] !== undefined && said["error"] !== null && !said["choices"]) throwFailure(said);
  return said;
}

/** Of all choices: the text, and why the last of them ended. */
export function choicesIn(said: JsonObject): { text: string; reason: FinishReason | undefined } {
  let words = "";
  let reason: FinishReason | undefined;
  for (const choice of objects(said["choices"])) {
    words += text(choice["text"]) ?? text(object(choice["message"])?.["content"]) ?? "";
    const said = text(choice["finish_reason"]);
    if (said !== undefined) reason = REASONS.get(said) ?? "other";
  }
  return { text: words, reason };
}

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["content_filter", "filtered"],
]);

export const truncated = (): never =>
  fail("upstream", "The answer ended before its finish.", { code: "truncated" });
