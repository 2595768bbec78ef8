// Decodes the response to a token count request.
import { fail } from "../../../model/error.ts";
import { asNumber, parseObject } from "../../json-values.ts";

export const decodeCount = (body: Buffer): number =>
  asNumber(parseObject(body.toString("utf8"))?.["input_tokens"]) ??
  fail("upstream", "The provider's token count has no input_tokens.", { code: "bad_answer" });
