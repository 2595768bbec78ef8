// Every frontend that the playground asks through, by its word in the page's address.
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

/** A frontend of the gateway, as its status lists it. */
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

/** A route's path as the gateway reads it: ":id" is one segment, "**:rest" any number of them. */
const routePattern = (path: string): RegExp =>
  new RegExp(
    `^${path
      .replace(/[.+?^${}()|[\]\\]/g, "\\$&")
      .replace(/\*\*:\w+/g, ".+")
      .replace(/:\w+/g, "[^/]+")}$`,
  );

/** The words of the frontends that are mounted here. */
export function availableFrontends(mounted: readonly MountedFrontend[]): string[] {
  const routes = mounted.flatMap(({ paths }) => paths.map(routePattern));
  return Object.entries(FRONTENDS)
    .filter(([, one]) => routes.some((route) => route.test(one.path(EXAMPLE_DRAFT).split("?")[0]!)))
    .map(([word]) => word);
}

/** The model that a frontend begins with: the one that needs no key where it is here, else the first that is. */
export const defaultModelOf = (
  { defaultModel }: PlaygroundFrontend,
  ids: readonly string[],
): string => (ids.includes(defaultModel) ? defaultModel : (ids[0] ?? ""));

export const findFrontend = (word: string): PlaygroundFrontend =>
  Object.hasOwn(FRONTENDS, word) ? FRONTENDS[word]! : chat;
