// Rankings are never streamed.
import { fail } from "../../../model/error.ts";

export const failStreamed = (): never =>
  fail("unsupported", "Rankings cannot be streamed.", { param: "stream" });
