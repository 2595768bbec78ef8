// A host that answers with a stream all the same has not understood what it was asked.
export { failNotStreamed } from "../../embeddings/index.ts";
