// Parses one JSON object of a response, which is either the whole response or a chunk of a stream.
import { fail } from "../../../model/error.ts";
import type { FinishReason } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asObject, asObjects, parseObject, asText } from "../../json-values.ts";

/** Parses a response object. If it is an error, the error is thrown. */
export function parseResponseObject(json: string): JsonObject {
  const parsedJson = parseObject(json);
  if (!parsedJson)
    return fail("upstream", "The provider's response is not a JSON object.", {
      code: "bad_answer",
    });
  if (parsedJson["error"] !== undefined && parsedJson["error"] !== null && !parsedJson["choices"])
    throwParsedError(parsedJson);
  return parsedJson;
}

/** Returns the text of all choices and the last finish reason. */
export function parseChoices(response: JsonObject): {
  text: string;
  reason: FinishReason | undefined;
} {
  let words = "";
  let reason: FinishReason | undefined;
  for (const choice of asObjects(response["choices"])) {
    words += asText(choice["text"]) ?? asText(asObject(choice["message"])?.["content"]) ?? "";
    const response = asText(choice["finish_reason"]);
    if (response !== undefined) reason = REASONS.get(response) ?? "other";
  }
  return { text: words, reason };
}

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["content_filter", "filtered"],
]);

export const failTruncated = (): never =>
  fail("upstream", "The response ended before it was complete.", { code: "truncated" });
