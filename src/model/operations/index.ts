// To add an operation, add its line here and its types to `Operations` in ../request.ts.
import { chatOperation } from "./chat-operation.ts";
import { completionOperation } from "./completion-operation.ts";
import { embeddingOperation } from "./embedding-operation.ts";
import { imageOperation } from "./image-operation.ts";
import { moderationOperation } from "./moderation-operation.ts";
import type { OperationSpec } from "./operation-spec.ts";
import { realtimeOperation } from "./realtime-operation.ts";
import { rerankOperation } from "./rerank-operation.ts";
import { speechOperation } from "./speech-operation.ts";
import { transcriptOperation } from "./transcript-operation.ts";
import { videoOperation } from "./video-operation.ts";

export { chatOperation } from "./chat-operation.ts";
export { completionOperation } from "./completion-operation.ts";
export { embeddingOperation } from "./embedding-operation.ts";
export { imageOperation } from "./image-operation.ts";
export { moderationOperation } from "./moderation-operation.ts";
export { realtimeOperation } from "./realtime-operation.ts";
export { rerankOperation } from "./rerank-operation.ts";
export { speechOperation } from "./speech-operation.ts";
export { transcriptOperation } from "./transcript-operation.ts";
export { videoOperation } from "./video-operation.ts";

/**
 * The operations that the gateway supports without any package, each with the frontends that every
 * gateway has by default.
 */
export const builtInOperations: readonly {
  readonly operation: OperationSpec;
  readonly frontends: readonly string[];
}[] = [
  {
    operation: chatOperation,
    frontends: ["chat-completions", "messages", "responses", "gemini"],
  },
  { operation: imageOperation, frontends: ["images"] },
  { operation: completionOperation, frontends: ["completions"] },
  { operation: embeddingOperation, frontends: ["embeddings"] },
  { operation: rerankOperation, frontends: ["rerank"] },
  { operation: moderationOperation, frontends: ["moderations"] },
  { operation: speechOperation, frontends: ["speech"] },
  { operation: transcriptOperation, frontends: ["transcriptions"] },
  { operation: realtimeOperation, frontends: ["realtime"] },
  // The frontend stores records of videos, so operators enable it.
  { operation: videoOperation, frontends: [] },
];
