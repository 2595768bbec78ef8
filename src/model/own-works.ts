import { chatWork } from "./chat-work.ts";
import { imageWork } from "./image-work.ts";
import type { Work } from "./work.ts";

/** What the gateway speaks without any package. */
export const OWN_WORKS: ReadonlyMap<string, Work> = new Map<string, Work>(
  [chatWork, imageWork].map((work) => [work.kind, work]),
);
