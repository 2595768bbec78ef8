// Rejects streaming. Vectors are sent in one piece.
import { fail } from "../../../model/error.ts";

export const failStreamed = (): never =>
  fail("unsupported", "Embeddings are not streamed.", { param: "stream" });
