// Frontends for single operations: completion, embedding, reranking, moderation, images, speech,
// and transcription.
import {
  type PlaygroundFrontend,
  type ResponseParts,
  nonEmptyLines,
  type Draft,
} from "./playground-frontend.ts";
import { chat, gemini, messages, responses } from "./playground-chat.ts";

export const completions: PlaygroundFrontend = {
  title: "Completions",
  operation: "completion",
  defaultModel: "demo/complete",
  path: () => "/v1/completions",
  promptLabel: "Text to continue",
  fields: ["stream"],
  buildBody: ({ model, prompt, stream }) => ({
    model,
    prompt,
    max_tokens: 200,
    ...(stream && { stream, stream_options: { include_usage: true } }),
  }),
  addEvent(parts, event) {
    parts.text += event.choices?.[0]?.text ?? "";
  },
  snippet: { library: "openai", method: "completions.create" },
};

export const embeddings: PlaygroundFrontend = {
  title: "Embeddings",
  operation: "embedding",
  defaultModel: "demo/embed",
  path: () => "/v1/embeddings",
  promptLabel: "Texts, one per line",
  fields: [],
  buildBody: ({ model, prompt }) => ({ model, input: nonEmptyLines(prompt) }),
  addEvent(parts, event) {
    if (Array.isArray(event.data)) parts.embeddings = event.data.map((each: any) => each.embedding);
  },
  snippet: { library: "openai", method: "embeddings.create" },
};

export const rerank: PlaygroundFrontend = {
  title: "Rerank",
  operation: "rerank",
  defaultModel: "demo/rerank",
  path: () => "/v2/rerank",
  promptLabel: "Query",
  fields: ["documents"],
  buildBody: ({ model, prompt, documents }) => ({
    model,
    query: prompt,
    documents: nonEmptyLines(documents),
  }),
  addEvent(parts, event) {
    if (Array.isArray(event.results))
      parts.ranking = event.results.map(({ index, relevance_score: score }: any) => ({
        index,
        score,
      }));
  },
  snippet: { library: "cohere", method: "rerank" },
};

export const moderations: PlaygroundFrontend = {
  title: "Moderations",
  operation: "moderation",
  defaultModel: "demo/moderate",
  path: () => "/v1/moderations",
  promptLabel: "Text to classify",
  fields: [],
  buildBody: ({ model, prompt }) => ({ model, input: prompt }),
  addEvent(parts, event) {
    const { categories = {}, category_scores: scores = {} } = event.results?.[0] ?? {};
    parts.moderation = Object.keys(categories)
      .map((name) => ({ name, score: scores[name] ?? 0, flagged: categories[name] === true }))
      .toSorted((a, b) => b.score - a.score);
  },
  snippet: { library: "openai", method: "moderations.create" },
};

const addImages = (parts: ResponseParts, event: any): void => {
  if (/^image_(generation|edit)\.(partial_image|completed)$/.test(event.type ?? ""))
    parts.images = [event.b64_json];
  if (Array.isArray(event.data))
    parts.images = event.data.map((each: any) => each.b64_json ?? each.url).filter(Boolean);
};
const IMAGE_DEFAULTS = {
  operation: "image",
  defaultModel: "demo/image",
  addEvent: addImages,
} as const;

export const images: PlaygroundFrontend = {
  ...IMAGE_DEFAULTS,
  title: "Images",
  path: () => "/v1/images/generations",
  promptLabel: "Description of the image",
  fields: ["stream"],
  buildBody: ({ model, prompt, stream }) => ({ model, prompt, ...(stream && { stream }) }),
  snippet: { library: "openai", method: "images.generate" },
};

export const edits: PlaygroundFrontend = {
  ...IMAGE_DEFAULTS,
  title: "Image edits",
  path: () => "/v1/images/edits",
  promptLabel: "Change to make",
  fields: ["stream", "image"],
  requiredField: "image",
  buildBody: ({ model, prompt, stream, image }) => ({
    model,
    prompt,
    image: image?.file,
    ...(stream && { stream }),
  }),
  snippet: { library: "openai", method: "images.edit" },
};

export const speech: PlaygroundFrontend = {
  title: "Speech",
  operation: "speech",
  defaultModel: "demo/speech",
  path: () => "/v1/audio/speech",
  promptLabel: "Text to speak",
  fields: ["voice"],
  buildBody: ({ model, prompt, voice, format }) => ({
    model,
    input: prompt,
    voice,
    response_format: format,
  }),
  // The complete response is the audio.
  addEvent() {},
  snippet: {
    library: "openai",
    method: "audio.speech.create",
    savedFileName: ({ format }) => `speech.${format}`,
  },
};

const TRANSCRIPTION_DEFAULTS = {
  operation: "transcript",
  defaultModel: "demo/transcribe",
  requiredField: "audio",
  addEvent(parts: ResponseParts, event: any): void {
    const { type, delta, text } = event;
    if (type === "transcript.text.delta") parts.text += delta;
    else if (type === undefined || type === "transcript.text.done") parts.text = text ?? parts.text;
  },
} as const;

export const transcriptions: PlaygroundFrontend = {
  ...TRANSCRIPTION_DEFAULTS,
  title: "Transcriptions",
  path: () => "/v1/audio/transcriptions",
  fields: ["stream", "audio"],
  buildBody: ({ model, audio, stream }) => ({
    model,
    file: audio?.file,
    ...(stream && { stream }),
  }),
  snippet: { library: "openai", method: "audio.transcriptions.create" },
};

export const translations: PlaygroundFrontend = {
  ...TRANSCRIPTION_DEFAULTS,
  title: "Translations into English",
  path: () => "/v1/audio/translations",
  fields: ["audio"],
  buildBody: ({ model, audio }) => ({ model, file: audio?.file }),
  snippet: { library: "openai", method: "audio.translations.create" },
};

// Frontends of the playground, by their value in the URL.

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
