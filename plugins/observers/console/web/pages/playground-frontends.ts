// Every frontend that the playground asks through, by its word in the page's address.
import type { Frontend } from "./playground-frontend.ts";
import { chat, gemini, messages, responses } from "./playground-talk.ts";
import {
  completions,
  edits,
  embeddings,
  images,
  moderations,
  rerank,
  speech,
  transcriptions,
  translations,
} from "./playground-work.ts";

export const FRONTENDS: Readonly<Record<string, Frontend>> = {
  chat,
  messages,
  responses,
  gemini,
  completions,
  embeddings,
  rerank,
  moderations,
  images,
  edits,
  speech,
  transcriptions,
  translations,
};

export const frontendOf = (word: string): Frontend =>
  Object.hasOwn(FRONTENDS, word) ? FRONTENDS[word]! : chat;
