import { chatOperation } from "./chat-operation.ts";
import { completionOperation } from "./completion-operation.ts";
import { embeddingOperation } from "./embedding-operation.ts";
import { imageOperation } from "./image-operation.ts";
import { moderationOperation } from "./moderation-operation.ts";
import { rerankOperation } from "./rerank-operation.ts";
import { speechOperation } from "./speech-operation.ts";
import { transcriptOperation } from "./transcript-operation.ts";
import type { OperationSpec } from "./operation-spec.ts";

/** Operations that the gateway supports without any package. */
export const BUILT_IN_OPERATIONS: ReadonlyMap<string, OperationSpec> = new Map<
  string,
  OperationSpec
>(
  [
    chatOperation,
    imageOperation,
    embeddingOperation,
    rerankOperation,
    moderationOperation,
    completionOperation,
    speechOperation,
    transcriptOperation,
  ].map((work) => [work.name, work]),
);
