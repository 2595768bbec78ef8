// A ranking comes in one piece.
import { fail } from "../../../model/error.ts";

export const failStreamed = (): never =>
  fail("unsupported", "Rankings are not streamed.", { param: "stream" });
