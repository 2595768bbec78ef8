// Every path through the gateway: the client's request and protocol, the provider's protocol,
// streaming or non-streaming.
import type { UpstreamRequest } from "tollgate/testing";

/** Content of every complete response, in words, numbers, and an image. */
export const WORDS = "Hello, how do you do today?";
export const NUMBER = "0.015625";
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

type Kind =
  | "chat"
  | "image"
  | "embedding"
  | "rerank"
  | "speech"
  | "transcript"
  | "moderation"
  | "completion";

/** Path of the request, and position of the prompt. */
interface Frontend {
  readonly kind: Kind;
  readonly path: string;
  readonly body: (prompt: string) => object;
  /** As a form, with its prompt in a file. */
  readonly form?: true;
  /** How a stream is requested. "never": it cannot. If unset: `stream` in the body. */
  readonly streams?: object | "never";
}

const messages = (content: string) => [{ role: "user", content }];
const contents = (text: string) => [{ role: "user", parts: [{ text }] }];

export const FRONTENDS = {
  "chat-completions": {
    kind: "chat",
    path: "/v1/chat/completions",
    body: (prompt) => ({ messages: messages(prompt) }),
  },
  messages: {
    kind: "chat",
    path: "/v1/messages",
    body: (prompt) => ({ max_tokens: 100, messages: messages(prompt) }),
  },
  responses: { kind: "chat", path: "/v1/responses", body: (input) => ({ input }) },
  gemini: {
    kind: "chat",
    path: "/v1beta/models/MODEL:generateContent",
    body: (prompt) => ({ contents: contents(prompt) }),
  },
  images: { kind: "image", path: "/v1/images/generations", body: (prompt) => ({ prompt }) },
  edits: { kind: "image", path: "/v1/images/edits", body: (prompt) => ({ prompt }), form: true },
  embeddings: {
    kind: "embedding",
    path: "/v1/embeddings",
    body: (input) => ({ input }),
    streams: "never",
  },
  "gemini-vectors": {
    kind: "embedding",
    path: "/v1beta/models/MODEL:embedContent",
    body: (prompt) => ({ content: contents(prompt)[0] }),
    streams: "never",
  },
  rerank: {
    kind: "rerank",
    path: "/v2/rerank",
    body: (query) => ({ query, documents: ["one", "two"] }),
    streams: "never",
  },
  speech: {
    kind: "speech",
    path: "/v1/audio/speech",
    body: (input) => ({ input, voice: "alloy" }),
    streams: { stream_format: "sse" },
  },
  transcriptions: {
    kind: "transcript",
    path: "/v1/audio/transcriptions",
    body: () => ({}),
    form: true,
  },
  moderations: {
    kind: "moderation",
    path: "/v1/moderations",
    body: (input) => ({ input }),
    streams: "never",
  },
  completions: {
    kind: "completion",
    path: "/v1/completions",
    body: (prompt) => ({ prompt, max_tokens: 100 }),
  },
} as const satisfies { readonly [name: string]: Frontend };
export type FrontendName = keyof typeof FRONTENDS;

/** A request to a model with this name. */
export function asking(
  { from, stream }: Road,
  prompt: string,
  model: string,
): { path: string; body: string | FormData } {
  const { path, body, form, streams = { stream } }: Frontend = FRONTENDS[from];
  const fields: { readonly [name: string]: unknown } = {
    model,
    ...body(prompt),
    ...(stream && (streams as object)),
  };
  if (form) return { path, body: formOf(fields, from === "edits" ? PNG : prompt) };
  const { model: _, stream: __, ...bare } = fields;
  return path.includes("MODEL")
    ? {
        path: `${path.replace("MODEL", model).replace("generateContent", stream ? "streamGenerateContent" : "generateContent")}${stream ? "?alt=sse" : ""}`,
        body: JSON.stringify(bare),
      }
    : { path, body: JSON.stringify(fields) };
}

/** An image to edit or an audio file to transcribe that contains the prompt. */
function formOf(fields: { readonly [name: string]: unknown }, file: string): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, String(value));
  if (file === PNG)
    form.set("image", new Blob([Buffer.from(PNG, "base64")], { type: "image/png" }), "one.png");
  else form.set("file", new Blob([file]), "sound.wav");
  return form;
}

/** The kind of provider, the prefix of its models, and its path. */
export const UPSTREAMS = {
  "chat-completions": {
    kind: "chat",
    provider: "chat",
    model: "m",
    asked: /\/chat\/completions$/,
  },
  messages: { kind: "chat", provider: "messages", model: "m", asked: /\/messages$/ },
  responses: { kind: "chat", provider: "responses", model: "m", asked: /\/responses$/ },
  gemini: {
    kind: "chat",
    provider: "google",
    model: "gemini-m",
    asked: /models\/(?!.*(?:image|vec-)).*:\w*enerateContent$/,
  },
  images: { kind: "image", provider: "chat", model: "draw", asked: /\/images\/\w+$/ },
  "gemini-image": {
    kind: "image",
    provider: "google",
    model: "gemini-m-image-",
    asked: /image.*:\w*enerateContent$/,
  },
  embeddings: { kind: "embedding", provider: "chat", model: "vec", asked: /\/embeddings$/ },
  "gemini-vectors": {
    kind: "embedding",
    provider: "google",
    model: "gemini-m-vec-",
    asked: /:(?:batchE|e)mbedContents?$/,
  },
  rerank: { kind: "rerank", provider: "chat", model: "rank", asked: /\/rerank$/ },
  speech: { kind: "speech", provider: "chat", model: "voice", asked: /\/audio\/speech$/ },
  transcriptions: {
    kind: "transcript",
    provider: "chat",
    model: "ear",
    asked: /\/audio\/transcriptions$/,
  },
  moderations: {
    kind: "moderation",
    provider: "responses",
    model: "judge",
    asked: /\/moderations$/,
  },
  completions: { kind: "completion", provider: "bases", model: "m", asked: /\/v1\/completions$/ },
} as const satisfies {
  readonly [name: string]: {
    readonly kind: Kind;
    readonly provider: string;
    readonly model: string;
    readonly asked: RegExp;
  };
};
export type UpstreamName = keyof typeof UPSTREAMS;

export interface Road {
  readonly from: FrontendName;
  readonly into: UpstreamName;
  readonly stream: boolean;
}

const streamed = (name: FrontendName): readonly boolean[] =>
  (FRONTENDS[name] as Frontend).streams === "never" ? [false] : [false, true];

export const ROADS: readonly Road[] = (Object.keys(FRONTENDS) as FrontendName[]).flatMap((from) =>
  (Object.keys(UPSTREAMS) as UpstreamName[])
    .filter((into) => UPSTREAMS[into].kind === FRONTENDS[from].kind)
    .flatMap((into) => streamed(from).map((stream) => ({ from, into, stream }))),
);

/** The protocol, and whether the response is a stream. */
export function wanted(asked: UpstreamRequest): { into: UpstreamName; stream: boolean } {
  const into = (Object.keys(UPSTREAMS) as UpstreamName[]).find((name) =>
    UPSTREAMS[name].asked.test(asked.path),
  )!;
  if (asked.path.includes(":"))
    return { into, stream: asked.path.endsWith("streamGenerateContent") };
  if (asked.headers["content-type"]?.startsWith("multipart/"))
    return { into, stream: /name="stream"\r\n\r\ntrue/.test(String(asked.body)) };
  const { stream, stream_format } = asked.json();
  return { into, stream: stream === true || stream_format === "sse" };
}
