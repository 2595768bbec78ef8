// Non-streaming operations: their endpoints, costs, and providers. `./every-operation.test.ts`
// and `./model-kinds.test.ts` contain the rules for all of them, `../../plugins/backends.test.ts`
// checks the addresses. Formats of a single operation have test files of their own. The keys are the
// names of the frontend, of the protocol, and of the schema.
import { jsonResponse, type ScriptedReply } from "tollgate/testing";
import type { Limit, Usage } from "tollgate/plugin";
import { EARS, hearing, speaking, wav } from "./audio-vendors.ts";
import { embedding, NANO_A_TOKEN, VENDORS } from "./embedding-vendors.ts";
import { completing, DOCUMENTS, moderating, silentRanking } from "./vendors.ts";

export type Body = Readonly<Record<string, unknown>>;

export interface Priced {
  readonly model: string;
  readonly state: "exact" | "estimated" | "unpriced";
  /** The price in nano-dollars of the provider's bill. */
  nano(usage: Usage): number | null;
}

export interface Operation {
  readonly path: string;
  /** Name in model lists. */
  readonly kind: string;
  /** The name in the GenAI conventions. Default: `kind`. */
  readonly convention?: string;
  /** Unit by which its requests are limited before the call. */
  readonly unit: Limit["unit"];
  /** A vendor's model with a price in the catalog. If unset, no known page has one. */
  readonly catalog?: string;
  /** Name in errors. */
  readonly noun: string;
  readonly demo: string;
  readonly body: Body;
  /** Exceeds the budget `poor`, in US dollars. */
  readonly large: Body;
  /** Fits. */
  readonly small: { readonly body: Body; readonly nano: number };
  readonly poor: string;
  /** One request fits in this limit, and a second one does not. */
  readonly limit: { readonly unit: string; readonly max: number; readonly body?: Body };
  /** Invalid requests of this operation. */
  readonly wrong: readonly Body[];
  readonly priced: readonly Priced[];
  /** A provider that exists in several conditions: sound, slow, cut, down, odd. */
  readonly host: {
    readonly use: string;
    readonly with: object;
    readonly model: string;
    readonly about: object;
    /** Path of the operation below the provider's base URL. */
    readonly path: string;
    /** For a row: the place of its key and its address, written from the documentation. */
    readonly address?: string;
    readonly answer: ScriptedReply;
  };
  /** Invalid responses. */
  readonly odd: readonly ScriptedReply[];
}

const perMillion = (input: number, output: number) => (usage: Usage) =>
  (usage.input ?? 0) * input + ((usage.output ?? 0) + (usage.audio_out ?? 0)) * output;
const perCharacter = ({ characters = 0 }: Usage) => characters * 15_000;

const compatible = (more: object) => ({
  use: "openai-compatible",
  with: { ...more, list_models: false },
});
const html: ScriptedReply = { headers: { "content-type": "text/html" }, body: "<html>no</html>" };
const half: ScriptedReply = { headers: { "content-type": "application/json" }, body: '{"a": [' };

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  embeddings: {
    path: "/v1/embeddings",
    kind: "embedding",
    convention: "embeddings",
    unit: "input",
    catalog: "openai/text-embedding-3-small",
    noun: "an embedding model",
    demo: "demo/embed",
    body: { input: ["A harbour at dusk", "Rain over Oslo"] },
    large: { input: "word ".repeat(2_000) },
    small: { body: { input: [[1]] }, nano: NANO_A_TOKEN },
    poor: "0.000001",
    limit: { unit: "requests", max: 1 },
    wrong: [{ input: [] }, { input: [1, "a"] }, { dimensions: 5_000 }, { stream: true }],
    priced: VENDORS.map(({ name, model, counts }) => ({
      model: `${name}/${model}`,
      state: counts ? "exact" : "estimated",
      nano: perMillion(NANO_A_TOKEN, 0),
    })),
    host: {
      ...compatible({ embeddings: ["*"] }),
      model: "text-embedding-3-small",
      about: { operation: "embedding", price: { input: "0.10" } },
      path: "/embeddings",
      answer: embedding(),
    },
    odd: [html, half, jsonResponse({ data: [], usage: {} })],
  },
  rerank: {
    path: "/v1/rerank",
    kind: "rerank",
    unit: "searches",
    catalog: "cohere/rerank-v3.5",
    noun: "a reranking model",
    demo: "demo/rerank",
    body: { query: "Where is the harbour?", documents: DOCUMENTS },
    large: { query: "x", documents: Array.from({ length: 200 }, () => "x") },
    small: { body: { query: "x", documents: DOCUMENTS }, nano: 1_000_000 },
    poor: "0.0015",
    limit: { unit: "searches", max: 1 },
    wrong: [{ documents: [] }, { query: "" }, { documents: [1] }, { top_n: 0 }, { stream: true }],
    priced: [
      { model: "cohere/rerank-v3.5", state: "exact", nano: ({ searches = 0 }) => searches * 2e6 },
      { model: "voyage/rerank-2.5", state: "exact", nano: perMillion(50, 0) },
      { model: "vllm/bge-reranker", state: "exact", nano: perMillion(20, 0) },
      { model: "silent/bge-reranker", state: "exact", nano: ({ searches = 0 }) => searches * 1e6 },
    ],
    host: {
      use: "vllm",
      with: {},
      model: "bge-reranker",
      about: { operation: "rerank", price: { searches: "0.001" } },
      path: "/rerank",
      address: "Bearer http://localhost:8000/v1/rerank",
      answer: silentRanking,
    },
    odd: [html, half, jsonResponse({ results: "none" })],
  },
  moderations: {
    path: "/v1/moderations",
    kind: "moderation",
    unit: "requests",
    noun: "a moderation model",
    demo: "demo/moderate",
    body: { input: "I want to hurt them" },
    large: { input: "a ".repeat(5_000) },
    small: { body: { input: "a" }, nano: 900 },
    poor: "0.000005",
    limit: { unit: "requests", max: 1 },
    wrong: [{ input: [] }, { input: 7 }, { stream: true }],
    priced: [
      { model: "openai/omni-moderation-latest", state: "exact", nano: () => 0 },
      { model: "openai/bare-moderation", state: "unpriced", nano: () => null },
      { model: "mistral/mistral-moderation-latest", state: "exact", nano: perMillion(100, 0) },
    ],
    host: {
      use: "mistral",
      with: { api_key: "k" },
      model: "mistral-moderation-latest",
      about: { operation: "moderation", price: { input: "0.10" } },
      path: "/moderations",
      address: "Bearer https://api.mistral.ai/v1/moderations",
      answer: moderating,
    },
    odd: [html, half, jsonResponse({ results: [] })],
  },
  completions: {
    path: "/v1/completions",
    kind: "completion",
    convention: "text_completion",
    unit: "output",
    noun: "a completion model",
    demo: "demo/complete",
    body: { prompt: "Once upon a", suffix: "The end.", max_tokens: 5 },
    large: { prompt: "x", max_tokens: 4_000 },
    small: { body: { prompt: "x", max_tokens: 5 }, nano: 14_000 },
    poor: "0.0001",
    limit: { unit: "requests", max: 1 },
    wrong: [{ prompt: 7 }, { max_tokens: -1 }, { n: 0 }],
    priced: ["vllm/base", "deepseek/base", "mistral/codestral-latest", "ollama/qwen-coder"].map(
      (model) => ({ model, state: "exact", nano: perMillion(1_000, 2_000) }),
    ),
    host: {
      use: "vllm",
      with: {},
      model: "base",
      about: { operation: "completion", price: { input: "1", output: "2" } },
      path: "/completions",
      address: "Bearer http://localhost:8000/v1/completions",
      answer: completing,
    },
    odd: [html, half],
  },
  speech: {
    path: "/v1/audio/speech",
    kind: "speech",
    unit: "characters",
    catalog: "openai/gpt-4o-mini-tts",
    noun: "a speech model",
    demo: "demo/speech",
    body: { input: "Grüße aus Oslo 🌍", voice: "alloy" },
    large: { input: "word ".repeat(50), voice: "alloy" },
    small: { body: { input: "Hi", voice: "alloy" }, nano: 30_000 },
    poor: "0.0003",
    limit: { unit: "characters", max: 10, body: { input: "12345678", voice: "alloy" } },
    wrong: [{ input: "" }, { response_format: "opus" }],
    priced: [
      { model: "openai/tts-1", state: "exact", nano: perCharacter },
      { model: "openai/gpt-4o-mini-tts", state: "exact", nano: perMillion(600, 12_000) },
      { model: "local/my-tts", state: "exact", nano: perCharacter },
      { model: "turned/my-tts", state: "exact", nano: perCharacter },
      { model: "eventful/my-tts", state: "exact", nano: perMillion(600, 12_000) },
    ],
    host: {
      ...compatible({ speech: ["*tts"], speech_events: false }),
      model: "my-tts",
      about: { operation: "speech", price: { characters: "0.000015" } },
      path: "/audio/speech",
      answer: speaking("characters"),
    },
    odd: [
      { headers: { "content-type": "text/plain" }, body: "sorry" },
      // The start of an error, or half of one, is not audio, whatever its type is.
      { headers: { "content-type": "application/json" }, body: '{"choices": [' },
      { headers: { "content-type": "audio/mpeg" }, body: '{"error":{"message":"no"}}' },
      { headers: { "content-type": "audio/mpeg" }, body: "<html>no</html>" },
      { headers: { "content-type": "audio/mpeg" }, body: "" },
    ],
  },
  transcriptions: {
    path: "/v1/audio/transcriptions",
    kind: "transcript",
    unit: "seconds",
    catalog: "openai/whisper-1",
    noun: "a transcription model",
    demo: "demo/transcribe",
    body: { file: wav(3.25) },
    large: { file: wav(30) },
    small: { body: { file: wav(0.5) }, nano: 100_000 },
    poor: "0.0003",
    limit: { unit: "seconds", max: 5, body: { file: wav(4) } },
    wrong: [{ response_format: "opus" }, { file: "no bytes" }],
    priced: EARS.map(({ name, model, nano }) => ({
      model: `${name}/${model}`,
      state: "exact",
      nano,
    })),
    host: {
      ...compatible({ transcriptions: ["*whisper"] }),
      model: "my-whisper",
      about: { operation: "transcript", price: { seconds: "0.0001" } },
      path: "/audio/transcriptions",
      answer: hearing({
        formats: ["json", "text"],
        billing: (file) => ({
          usage: { seconds: Math.ceil((file.length - 44) / 8_000) },
          said: {},
        }),
        streams: false,
        counts: false,
      }),
    },
    odd: ["\u0007\u0000 no answer", "data: no answer", "7"].map((body) => ({
      headers: { "content-type": "application/json" },
      body,
    })),
  },
  images: {
    path: "/v1/images/generations",
    kind: "image",
    convention: "image_generation",
    unit: "images",
    catalog: "openai/gpt-image-2",
    noun: "an image model",
    demo: "demo/image",
    body: { prompt: "A harbour" },
    large: { prompt: "A harbour", n: 4 },
    small: { body: { prompt: "A harbour" }, nano: 10_000_000 },
    poor: "0.015",
    limit: { unit: "images", max: 1 },
    wrong: [{ prompt: "" }, { n: 11 }, { size: "large" }, { size: "9x9" }],
    priced: [],
    host: {
      ...compatible({ images: ["*"] }),
      model: "painter",
      about: { operation: "image", price: { images: "0.01" } },
      path: "/images/generations",
      answer: (asked) => {
        const { n = 1 } = asked.json();
        const data = Array.from({ length: n }, () => ({ b64_json: PICTURE }));
        return {
          ...jsonResponse({ created: 1, data }),
          billedUsage: { images: n, megapixels: n / 1e6 },
        };
      },
    },
    odd: [html, half, jsonResponse({ created: 1, data: [] })],
  },
};

/** One pixel. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
