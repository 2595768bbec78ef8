// tollgate/protocols/batches: batch APIs of providers. Encodes the lines of a batch while they are
// sent, reads results while they arrive, and implements the batch API of OpenAI and of compatible
// backends. Providers with another API use the parts.
export {
  encodeBatchForm,
  encodeBatchLines,
  type BatchBody,
  type BatchForm,
  type LineFormat,
} from "./batch-file.ts";
export {
  createObject,
  deleteObject,
  fetchJsonLines,
  fetchObject,
  jsonRequest,
  readJsonLines,
  requestCancellation,
  requireSuccess,
} from "./batch-response.ts";
export { openAiBatches, type BatchDialect } from "./openai-batches.ts";
