// A host that answers with a stream all the same has not understood what it was asked.
import { notStreamed } from "../../embeddings/index.ts";

export const failNotStreamed = notStreamed;
