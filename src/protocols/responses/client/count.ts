// What a request to count tokens is answered with.
import { fail } from "../../../model/error.ts";
import { number, parsed } from "../../json.ts";

export const count = (body: Buffer): number =>
  number(parsed(body.toString("utf8"))?.["input_tokens"]) ??
  fail("upstream", "The provider's count has no input_tokens.", { code: "bad_answer" });
