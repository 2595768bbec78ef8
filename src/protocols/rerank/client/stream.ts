// Rejects a streaming response. The request was not for a stream, so the backend misunderstood it.
export { failNotStreamed } from "../../embeddings/index.ts";
