// Verdicts come in one piece.
import { fail } from "../../../model/error.ts";

export const stream = (): never =>
  fail("unsupported", "Moderations are not streamed.", { param: "stream" });
