// The operations that the gateway supports without any package. To add one, add its line here and
// its types to `Operations` in ../request.ts.
export { chatOperation } from "./chat-operation.ts";
export { completionOperation } from "./completion-operation.ts";
export { embeddingOperation } from "./embedding-operation.ts";
export { imageOperation } from "./image-operation.ts";
export { moderationOperation } from "./moderation-operation.ts";
export { realtimeOperation } from "./realtime-operation.ts";
export { rerankOperation } from "./rerank-operation.ts";
export { speechOperation } from "./speech-operation.ts";
export { transcriptOperation } from "./transcript-operation.ts";
