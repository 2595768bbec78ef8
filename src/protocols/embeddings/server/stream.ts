// Vectors come in one piece.
import { fail } from "../../../model/error.ts";

export const failStreamed = (): never =>
  fail("unsupported", "Embeddings are not streamed.", { param: "stream" });
