import { chatWork } from "./chat-work.ts";
import { completionWork } from "./completion-work.ts";
import { embeddingWork } from "./embedding-work.ts";
import { imageWork } from "./image-work.ts";
import { moderationWork } from "./moderation-work.ts";
import { rerankWork } from "./rerank-work.ts";
import { speechWork } from "./speech-work.ts";
import { transcriptWork } from "./transcript-work.ts";
import type { Work } from "./work.ts";

/** What the gateway speaks without any package. */
export const OWN_WORKS: ReadonlyMap<string, Work> = new Map<string, Work>(
  [
    chatWork,
    imageWork,
    embeddingWork,
    rerankWork,
    moderationWork,
    completionWork,
    speechWork,
    transcriptWork,
  ].map((work) => [work.kind, work]),
);
