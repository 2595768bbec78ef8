import { chatOperation } from "./chat-work.ts";
import { completionOperation } from "./completion-work.ts";
import { embeddingOperation } from "./embedding-work.ts";
import { imageOperation } from "./image-work.ts";
import { moderationOperation } from "./moderation-work.ts";
import { rerankOperation } from "./rerank-work.ts";
import { speechOperation } from "./speech-work.ts";
import { transcriptOperation } from "./transcript-work.ts";
import type { OperationSpec } from "./work.ts";

/** What the gateway speaks without any package. */
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
