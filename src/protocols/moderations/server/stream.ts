// Moderation results are never streamed.
import { fail } from "../../../model/error.ts";

export const failStreamed = (): never =>
  fail("unsupported", "Moderations cannot be streamed.", { param: "stream" });
