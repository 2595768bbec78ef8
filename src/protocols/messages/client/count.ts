// What `count_tokens` is answered with.
import { fail } from "../../../model/error.ts";
import { isObject } from "../../json.ts";

export function count(body: Buffer): number {
  let said: unknown;
  try {
    said = JSON.parse(body.toString());
  } catch {
    said = undefined;
  }
  const tokens = isObject(said) ? said["input_tokens"] : undefined;
  return typeof tokens === "number"
    ? tokens
    : fail("upstream", "The provider's count of tokens is not a number.", { code: "bad_answer" });
}
