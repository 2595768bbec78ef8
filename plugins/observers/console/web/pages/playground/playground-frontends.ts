// Frontends of the playground, by their value in the URL.
import type { Draft, PlaygroundFrontend } from "./playground-frontend.ts";
import { chat, gemini, messages, responses } from "./playground-chat.ts";
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
} from "./playground-operations.ts";

export const FRONTENDS: Readonly<Record<string, PlaygroundFrontend>> = {
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

/** A frontend of the gateway, as listed by its status. */
export interface MountedFrontend {
  readonly name: string;
  readonly paths: readonly string[];
}

const EXAMPLE_DRAFT: Draft = {
  model: "provider/model",
  system: "",
  prompt: "",
  stream: false,
  tool: false,
  image: undefined,
  audio: undefined,
  documents: "",
  voice: "",
  format: "",
};

/** Converts a route's path to a pattern: ":id" is one segment, "**:rest" any number of segments. */
const routePattern = (path: string): RegExp =>
  new RegExp(
    `^${path
      .replace(/[.+?^${}()|[\]\\]/g, "\\$&")
      .replace(/\*\*:\w+/g, ".+")
      .replace(/:\w+/g, "[^/]+")}$`,
  );

/** Returns the frontends that this gateway has. */
export function availableFrontends(mounted: readonly MountedFrontend[]): string[] {
  const routes = mounted.flatMap(({ paths }) => paths.map(routePattern));
  return Object.entries(FRONTENDS)
    .filter(([, one]) => routes.some((route) => route.test(one.path(EXAMPLE_DRAFT).split("?")[0]!)))
    .map(([word]) => word);
}

/**
 * Returns the initial model of a frontend: its keyless default if available, otherwise the first
 * available model.
 */
export const defaultModelOf = (
  { defaultModel }: PlaygroundFrontend,
  ids: readonly string[],
): string => (ids.includes(defaultModel) ? defaultModel : (ids[0] ?? ""));

export const findFrontend = (word: string): PlaygroundFrontend =>
  Object.hasOwn(FRONTENDS, word) ? FRONTENDS[word]! : chat;
