// A ranking comes in one piece.
import { fail } from "../../../model/error.ts";

export const stream = (): never =>
  fail("unsupported", "Rankings are not streamed.", { param: "stream" });
