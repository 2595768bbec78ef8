// Rejects streaming. Vectors are sent in one piece.
import { fail } from "../../../model/error.ts";

export const failStreamed = (): never =>
  fail("unsupported", "Embeddings cannot be streamed.", { param: "stream" });
