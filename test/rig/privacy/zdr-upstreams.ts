// Two upstreams that support every protocol: one stores requests, the other does not. Both record
// them.
import {
  jsonResponse,
  say,
  protocolAtPath,
  startUpstream,
  type UpstreamRequest,
  type ScriptedResponse,
  type TestUpstream,
} from "tollgate/testing";
import { isGemini, spoken } from "../money/billing-upstream.ts";
import { PNG } from "../money/vendor-formats.ts";

export interface ZdrUpstreams extends AsyncDisposable {
  readonly keeps: TestUpstream;
  readonly clean: TestUpstream;
}

const RANKED = jsonResponse({
  id: "r1",
  results: [{ index: 0, relevance_score: 0.5 }],
  meta: { billed_units: { search_units: 1 } },
});
const JUDGED = jsonResponse({
  id: "m1",
  results: [{ flagged: false, categories: {}, category_scores: {} }],
});
export const completedAs = (text: string): ScriptedResponse =>
  jsonResponse({
    id: "c1",
    object: "text_completion",
    created: 1,
    model: "base",
    choices: [{ text, index: 0, logprobs: null, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: 3 },
  });

/** Responds with a greeting, or with an overload if the request orders it from this upstream. */
const answers =
  (name: string) =>
  (asked: UpstreamRequest): ScriptedResponse => {
    const text = asked.body.toString();
    if (text.includes(`fail=${name}`))
      return jsonResponse({ error: { type: "overloaded_error", message: "Too much to do." } }, 503);
    if (text.includes(`quote=${name}`))
      return jsonResponse(
        { error: { type: "invalid_request_error", message: `Not this: ${text}` } },
        400,
      );
    if (text.includes(`cut=${name}`) && protocolAtPath(asked.path))
      return {
        ...say("Hello there, you").toResponse(asked),
        truncation: { after: 90, how: "reset" },
      };
    const attested = { "x-zero-data-retention": text.includes("lie=") ? "false" : "true" };
    if (/\/images\/(generations|edits)$/.test(asked.path))
      return {
        ...jsonResponse({ created: 1, data: [{ b64_json: PNG }] }),
        billedUsage: { images: 1 },
      };
    if (asked.path.endsWith("/embeddings"))
      return {
        ...jsonResponse({
          data: [{ index: 0, embedding: [1] }],
          usage: { prompt_tokens: 5, total_tokens: 5 },
        }),
        billedUsage: { input: 5 },
      };
    if (asked.path.endsWith("/audio/speech"))
      return {
        headers: { "content-type": "audio/mpeg" },
        body: [`sound from ${name}, `, "and its end"],
        framing: "chunked",
      };
    if (asked.path.includes("/audio/")) return jsonResponse({ text: `Hello from ${name}` });
    if (asked.path.endsWith("/rerank")) return RANKED;
    if (asked.path.endsWith("/moderations")) return JUDGED;
    if (asked.path.endsWith("/completions") && !asked.path.includes("/chat/"))
      return completedAs(`Hello from ${name}`);
    if (isGemini(asked)) {
      const made = spoken(say(`Hello from ${name}`), asked);
      return text.includes(`cut=${name}`)
        ? { ...made, truncation: { after: 90, how: "reset" } }
        : made;
    }
    if (asked.path.endsWith("count_tokens")) return jsonResponse({ input_tokens: 42 });
    if (!protocolAtPath(asked.path))
      return jsonResponse({ input_tokens: 42, object: "response.input_tokens" });
    const made = say(`Hello from ${name}`).toResponse(asked);
    return { ...made, headers: { ...made.headers, ...attested } };
  };

export async function startZdrUpstreams(): Promise<ZdrUpstreams> {
  const one = (name: string) =>
    startUpstream({
      "POST /*": answers(name),
      "GET /*": jsonResponse({ object: "list", data: [{ id: "model", object: "model" }] }),
    });
  const [keeps, clean] = await Promise.all([one("keeps"), one("clean")]);
  return {
    keeps,
    clean,
    async [Symbol.asyncDispose]() {
      await Promise.all([keeps.close(), clean.close()]);
    },
  };
}

/** User text that reached this upstream. */
export const heard = (up: TestUpstream): readonly UpstreamRequest[] =>
  up.requests.filter(({ method }) => method === "POST");

const declared = (until = "2099-01-01") => `zdr: { declared: true, note: "rig", until: ${until} }`;

const provider = (of: {
  name: string;
  use: string;
  url: string;
  zdr?: string;
  more?: string;
  key?: string;
}): string =>
  `  ${of.name}: { use: ${of.use}, ${of.more ?? ""} credentials: [{ name: main, with: { api_key: ${of.key ?? "sk-rig-0000"} }${of.zdr ? `, ${of.zdr}` : ""} }], with: { base_url: "${of.url}/${of.name}${of.use === "google" ? "" : "/v1"}"${OFFERS[of.name.slice(of.name.indexOf("-") + 1)] ?? ""} } }`;

const OFFERS: Readonly<Record<string, string>> = {
  images: ', images: ["draw"], image_edits: true',
  rerank: ', rerank: ["rank"]',
  embeddings: ', embeddings: ["vectors"]',
  speech: ', speech: ["voice"]',
  transcriptions: ', transcriptions: ["ear"]',
};

const RESPONSES = "models: { model: { protocols: [responses] } },";
const DRAWS = "models: { draw: { operation: image } },";
const EMBEDS = "models: { vectors: { operation: embedding } },";
const SPEAKS = "models: { voice: { operation: speech } },";
const RANKS = "models: { rank: { operation: rerank } },";
const JUDGES = "models: { judge: { operation: moderation } },";
const GOES_ON = "models: { base: { operation: completion } },";
const HEARS = "models: { ear: { operation: transcript } },";

/**
 * `keeps-chat/model`, `clean-messages/model`, …; `lapsed-*`: declared until yesterday;
 * `memory-chat` has a prompt cache.
 */
export const providersOf = ({ keeps, clean }: ZdrUpstreams, key = "sk-rig-0000"): string =>
  [
    "providers:",
    "  demo: { use: demo }",
    ...[
      { prefix: "keeps", url: keeps.url, zdr: "" },
      { prefix: "clean", url: clean.url, zdr: declared() },
      { prefix: "lapsed", url: keeps.url, zdr: declared("2020-01-01") },
    ].flatMap(({ prefix, url, zdr }) => [
      provider({ name: `${prefix}-chat`, use: "openai-compatible", url, zdr, key }),
      provider({ name: `${prefix}-messages`, use: "anthropic-compatible", url, zdr, key }),
      provider({ name: `${prefix}-responses`, use: "openai", url, zdr, key, more: RESPONSES }),
      provider({ name: `${prefix}-images`, use: "openai-compatible", url, zdr, key, more: DRAWS }),
      provider({ name: `${prefix}-rerank`, use: "openai-compatible", url, zdr, key, more: RANKS }),
      provider({ name: `${prefix}-moderations`, use: "openai", url, zdr, key, more: JUDGES }),
      provider({ name: `${prefix}-completions`, use: "vllm", url, zdr, key, more: GOES_ON }),
      provider({ name: `${prefix}-gemini`, use: "google", url, zdr, key }),
      provider({
        name: `${prefix}-embeddings`,
        use: "openai-compatible",
        url,
        zdr,
        key,
        more: EMBEDS,
      }),
      provider({ name: `${prefix}-speech`, use: "openai-compatible", url, zdr, key, more: SPEAKS }),
      provider({
        name: `${prefix}-transcriptions`,
        use: "openai-compatible",
        url,
        zdr,
        key,
        more: HEARS,
      }),
    ]),
    provider({
      name: "attests-chat",
      use: "xai",
      url: clean.url,
      zdr: declared(),
      key,
      more: "models: { model: { protocols: [chat-completions] } },",
    }),
    provider({
      name: "memory-chat",
      use: "fireworks",
      url: clean.url,
      key,
      more: "trust_policy: true,",
    }),
  ].join("\n") + "\n";

export const PROTOCOLS = ["chat", "messages", "responses", "gemini"] as const;

/** Path and format of a request in each protocol. */
export const ENTRY_POINTS = {
  chat: {
    path: "/v1/chat/completions",
    body: (model: string, text: string, stream: boolean) => ({
      model,
      stream,
      messages: [{ role: "user", content: text }],
    }),
  },
  messages: {
    path: "/v1/messages",
    body: (model: string, text: string, stream: boolean) => ({
      model,
      stream,
      max_tokens: 100,
      messages: [{ role: "user", content: text }],
    }),
  },
  responses: {
    path: "/v1/responses",
    body: (model: string, text: string, stream: boolean) => ({ model, stream, input: text }),
  },
  gemini: {
    path: "/v1beta/models",
    body: (model: string, text: string, stream: boolean) => ({
      model,
      stream,
      contents: [{ role: "user", parts: [{ text }] }],
    }),
  },
  edits: {
    path: "/v1/images/edits",
    body: (model: string, text: string, _stream: boolean) => ({
      model,
      prompt: text,
      response_format: "b64_json",
      image: PNG,
    }),
  },
  rerank: {
    path: "/v2/rerank",
    body: (model: string, text: string, _stream: boolean) => ({
      model,
      query: text,
      documents: [text],
    }),
  },
  moderations: {
    path: "/v1/moderations",
    body: (model: string, text: string, _stream: boolean) => ({ model, input: text }),
  },
  completions: {
    path: "/v1/completions",
    body: (model: string, text: string, _stream: boolean) => ({ model, prompt: text }),
  },
  images: {
    path: "/v1/images/generations",
    body: (model: string, text: string, _stream: boolean) => ({
      model,
      prompt: text,
      response_format: "b64_json",
    }),
  },
  embeddings: {
    path: "/v1/embeddings",
    body: (model: string, text: string, _stream: boolean) => ({ model, input: [text] }),
  },
  speech: {
    path: "/v1/audio/speech",
    body: (model: string, text: string, _stream: boolean) => ({ model, input: text, voice: "any" }),
  },
  transcriptions: {
    path: "/v1/audio/transcriptions",
    body: (model: string, text: string, _stream: boolean) => ({ model, file: text }),
  },
} as const;
export type EntryPoint = keyof typeof ENTRY_POINTS;

const FORMS: readonly EntryPoint[] = ["transcriptions", "edits"];

/** The path: Gemini's clients put the model and the streaming mode in it. */
export function pathOf(door: EntryPoint, body: object): string {
  const { path } = ENTRY_POINTS[door];
  if (door !== "gemini") return path;
  const { model, stream } = body as { model: string; stream: boolean };
  return `${path}/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;
}

/** As sent: a file is part of a form. */
export function encodeBody(door: EntryPoint, body: object): string | FormData {
  if (door === "gemini") {
    const { model: _model, stream: _stream, ...rest } = body as Record<string, unknown>;
    return JSON.stringify(rest);
  }
  if (!FORMS.includes(door)) return JSON.stringify(body);
  const form = new FormData();
  for (const [name, value] of Object.entries(body))
    if (name === "file") form.set(name, new Blob([value]), "sound.wav");
    else if (name === "image")
      form.set(name, new Blob([Buffer.from(value, "base64")], { type: "image/png" }), "one.png");
    else form.set(name, String(value));
  return form;
}

export const headersOf = (door: EntryPoint, key: string): Record<string, string> => ({
  // A form defines its own boundary.
  ...(!FORMS.includes(door) && { "content-type": "application/json" }),
  ...(door === "messages"
    ? { "x-api-key": key, "anthropic-version": "2023-06-01" }
    : door === "gemini"
      ? { "x-goog-api-key": key }
      : { authorization: `Bearer ${key}` }),
});
