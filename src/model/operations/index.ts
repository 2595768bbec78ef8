import { chatOperation } from "./chat-operation.ts";
import { completionOperation } from "./completion-operation.ts";
import { embeddingOperation } from "./embedding-operation.ts";
import { imageOperation } from "./image-operation.ts";
import { moderationOperation } from "./moderation-operation.ts";
import { realtimeOperation } from "./realtime-operation.ts";
import { rerankOperation } from "./rerank-operation.ts";
import { speechOperation } from "./speech-operation.ts";
import { transcriptOperation } from "./transcript-operation.ts";

export {
  chatOperation,
  completionOperation,
  embeddingOperation,
  imageOperation,
  moderationOperation,
  realtimeOperation,
  rerankOperation,
  speechOperation,
  transcriptOperation,
};

/**
 * The operations that the gateway supports without any package, each with the frontends that every
 * gateway has by default. To add one, add its line here and its types to `Operations` in
 * ../request.ts. It is the default export, because `tollgate/plugin` exports all names of this file
 * again.
 */
export default [
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
  { operation: realtimeOperation, frontends: [] },
];
