// Decodes the response of `countTokens`.
import { fail } from "../../../model/error.ts";
import { asObject } from "../../json-values.ts";
import { parsed } from "./response.ts";

export function decodeCount(body: Buffer): number {
  const tokens = asObject(parsed(body))?.["totalTokens"];
  // An empty prompt has no tokens, and this protocol omits a zero.
  if (tokens === undefined && asObject(parsed(body))) return 0;
  return typeof tokens === "number"
    ? tokens
    : fail("upstream", "The provider's token count is not a number.", { code: "bad_answer" });
}
