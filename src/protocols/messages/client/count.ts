// Decodes the response of `count_tokens`.
import { fail } from "../../../model/error.ts";
import { isObject } from "../../json-values.ts";

export function decodeCount(body: Buffer): number {
  let json: unknown;
  try {
    json = JSON.parse(body.toString());
  } catch {
    json = undefined;
  }
  const tokens = isObject(json) ? json["input_tokens"] : undefined;
  return typeof tokens === "number"
    ? tokens
    : fail("upstream", "The provider's token count is not a number.", { code: "bad_answer" });
}
