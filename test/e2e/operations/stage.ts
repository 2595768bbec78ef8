// One gateway with all operations and their providers, on one scripted upstream.
import OpenAI from "openai";
import { expect } from "vitest";
import {
  jsonResponse,
  type ScriptedReply,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import {
  startInProcessWithUpstream,
  type InProcessGateway,
  type InProcessWithUpstream,
} from "../../kit/in-process.ts";
import { HEARS, speaking } from "./audio-vendors.ts";
import { VENDORS } from "./embedding-vendors.ts";
import { OPERATIONS, type Body, type Operation } from "./table.ts";
import { COMPLETERS, MODERATORS, RANKERS } from "./vendors.ts";

/**
 * The conditions of a table's provider: `slow` does not respond, `cut` disconnects, `down` is
 * overloaded, `odd` responds as ordered.
 */
export const CONDITIONS = ["sound", "slow", "cut", "down", "odd"] as const;
type Condition = (typeof CONDITIONS)[number];

export const hostOf = (name: string, condition: Condition): string =>
  `${condition}-${name}/${OPERATIONS[name]!.host.model}`;
export const routeOf = (name: string, condition: Condition): string =>
  `POST /${condition}-${name}/v1${OPERATIONS[name]!.host.path}`;

/** Keys with a search limit. */
const SEARCHES: Readonly<Record<string, number>> = { searches: 3, long: 5 };
const KEYS = [
  "alice",
  "narrow",
  ...Object.keys(SEARCHES),
  ...Object.keys(OPERATIONS).flatMap((op) => [`poor-${op}`, `few-${op}`]),
];
/** An API key of this gateway. */
export const keyOf = (id: string): string => `${id}-key`;

const limitsOf = (id: string) => {
  const [which, name] = id.split("-");
  const operation = OPERATIONS[name ?? ""];
  if (SEARCHES[id]) return { limits: [`searches=${SEARCHES[id]}/total`] };
  if (which === "narrow") return { models: ["demo/*"] };
  if (which === "poor") return { limits: [`usd=${operation!.poor}/total`] };
  if (which === "few") {
    const { unit, max } = operation!.limit;
    return { limits: [`${unit}=${max}/total`] };
  }
  return {};
};

const TOKENS = { input: "2.5", audio_in: "6", output: "10" };

const priced = (operation: string, price: object | string) => ({ operation, price });
const completion = priced("completion", { input: "1", output: "2" });
const vector = priced("embedding", { input: "0.10" });

/** Providers by name. A base URL is below the upstream. */
const PROVIDERS: Readonly<
  Record<string, { use: string; at?: string; with?: object; models?: object }>
> = {
  demo: { use: "demo" },
  openai: {
    use: "openai",
    at: "openai/v1",
    models: {
      "gpt-4o-transcribe": { price: TOKENS },
      "gpt-4o-transcribe-diarize": { price: TOKENS },
      "tts-1": { price: { characters: "0.000015" } },
      "omni-moderation-latest": priced("moderation", "free"),
      "bare-moderation": { operation: "moderation" },
    },
  },
  groq: {
    use: "groq",
    at: "groq/openai/v1",
    models: { "whisper-large-v3": { price: { seconds: "0.0001" } } },
  },
  mistral: {
    use: "mistral",
    at: "mistral/v1",
    models: {
      "voxtral-mini-latest": { price: { seconds: "0.0001" } },
      "mistral-moderation-latest": priced("moderation", { input: "0.10" }),
      "codestral-latest": completion,
    },
  },
  cohere: {
    use: "cohere",
    at: "cohere/compatibility/v1",
    models: { "rerank-v3.5": { operation: "rerank" } },
  },
  voyage: { use: "voyage", at: "voyage/v1" },
  vllm: {
    use: "vllm",
    at: "vllm/v1",
    models: { base: completion, "bge-reranker": priced("rerank", { input: "0.02" }) },
  },
  silent: {
    use: "vllm",
    at: "silent/v1",
    models: { "bge-reranker": priced("rerank", { searches: "0.001" }) },
  },
  deepseek: { use: "deepseek", at: "deepseek", models: { base: completion } },
  ollama: { use: "ollama", at: "ollama/v1", models: { "qwen-coder": completion } },
  local: sounding("local"),
  turned: sounding("local"),
  stalls: sounding("stalls"),
  cut: sounding("cut"),
  eventful: {
    use: "openai-compatible",
    at: "eventful/v1",
    with: { speech: ["*"], speech_events: true, list_models: false },
    models: { "my-tts": priced("speech", { input: "0.6", audio_out: "12" }) },
  },
  wide: {
    use: "openai-compatible",
    at: "wide/v1",
    with: { embeddings: ["*"], list_models: false },
    models: { m: vector },
  },
  wider: { use: "cohere", at: "cohere/compatibility/v1", models: { "embed-v4.0": vector } },
  ...Object.fromEntries(
    Object.entries(OPERATIONS).flatMap(([name, { host }]) =>
      CONDITIONS.map((condition) => [
        `${condition}-${name}`,
        {
          use: host.use,
          at: `${condition}-${name}/v1`,
          with: host.with,
          models: { [host.model]: host.about },
        },
      ]),
    ),
  ),
};

function sounding(name: string) {
  return {
    use: "openai-compatible",
    at: `${name}/v1`,
    with: {
      speech: ["*tts"],
      speech_events: false,
      transcriptions: ["*whisper"],
      list_models: false,
    },
    models: {
      "my-tts": priced("speech", { characters: "0.000015" }),
      "my-whisper": priced("transcript", { seconds: "0.0001" }),
    },
  };
}

/** A key is needed, except by providers on the operator's own machines. */
const KEYLESS = new Set(["vllm", "ollama", "openai-compatible", "demo"]);

function providersAt(up: string): object {
  const all: Record<string, object> = {};
  for (const { name, yaml, model } of VENDORS) {
    const [, use, path, more] =
      /use: ([\w-]+), with: \{ api_key: k, base_url: "up\/([^"]+)"(.*?) \}/.exec(yaml)!;
    const { with: other, models } = PROVIDERS[name] ?? {};
    const embeddings = /embeddings: (\[.*\])/.exec(more!)?.[1];
    all[name] = {
      use,
      with: {
        api_key: "k",
        base_url: `${up}/${path}`,
        ...(embeddings && { embeddings: JSON.parse(embeddings) }),
        ...other,
      },
      models: { ...models, [model]: vector },
    };
  }
  for (const [name, { use, at, with: more, models }] of Object.entries(PROVIDERS))
    all[name] ??= {
      use,
      ...(at !== undefined && {
        with: { ...(!KEYLESS.has(use) && { api_key: "k" }), base_url: `${up}/${at}`, ...more },
      }),
      ...(models && { models }),
    };
  return all;
}

function routes(): Record<string, ScriptedReply> {
  const all: Record<string, ScriptedReply> = Object.assign(
    {},
    HEARS,
    RANKERS,
    MODERATORS,
    COMPLETERS,
    ...VENDORS.map((vendor) => vendor.routes),
  );
  for (const [name, { host }] of Object.entries(OPERATIONS)) {
    const answer = async (asked: UpstreamRequest) =>
      typeof host.answer === "function" ? await host.answer(asked) : host.answer;
    all[routeOf(name, "sound")] = answer;
    all[routeOf(name, "slow")] = { delayMs: 20_000 };
    all[routeOf(name, "down")] = jsonResponse({}, 529);
    all[routeOf(name, "cut")] = async (asked) => ({
      ...(await answer(asked)),
      truncation: { after: 5, how: "reset" },
    });
  }
  return {
    ...all,
    "POST /openai/v1/audio/speech": (asked) =>
      speaking(asked.json().model.startsWith("gpt-") ? "tokens" : "characters")(asked),
    "POST /local/v1/audio/speech": speaking("characters"),
    "POST /eventful/v1/audio/speech": speaking("tokens"),
    "GET *": jsonResponse({ data: [] }),
  };
}

export interface Asked {
  readonly status: number;
  /** JSON, if it is valid. */
  readonly body: any;
}

export class Operating implements AsyncDisposable {
  readonly #stage: InProcessWithUpstream;
  readonly gateway: InProcessGateway;
  readonly up: TestUpstream;

  constructor(stage: InProcessWithUpstream) {
    this.#stage = stage;
    this.gateway = stage.gateway;
    this.up = stage.up;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stage[Symbol.asyncDispose]();
  }

  client(id = "alice"): OpenAI {
    return new OpenAI({ baseURL: `${this.gateway.url}/v1`, apiKey: keyOf(id), maxRetries: 0 });
  }

  /** Sends a request for an operation as `id`. A body with bytes is sent as a form. */
  async ask(
    { path }: Pick<Operation, "path">,
    body: Body,
    of: { id?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Asked> {
    const { id = "alice", headers, signal } = of;
    const isForm = Object.values(body).some((value) => Buffer.isBuffer(value));
    const answer = await fetch(this.gateway.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${keyOf(id)}`,
        ...(!isForm && { "content-type": "application/json" }),
        ...headers,
      },
      body: isForm ? formOf(body) : JSON.stringify(body),
      ...(signal && { signal }),
    });
    const text = await answer.text();
    return { status: answer.status, body: parsed(text) };
  }

  /** Requests for an operation that have reached a provider. */
  asked(): UpstreamRequest[] {
    return this.up.requests.filter(({ method }) => method === "POST");
  }

  /** Settle rows of a provider, oldest first. */
  async rows(provider?: string): Promise<any[]> {
    const { items } = (await this.gateway.ask("ledger.entries", { limit: 1_000 })) as any;
    return items.filter(
      (row: any) =>
        row.kind === "settle" && (provider === undefined || row.target.provider === provider),
    );
  }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

function formOf(body: Body): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(body))
    if (Buffer.isBuffer(value)) form.set(name, new Blob([new Uint8Array(value)]), "harbour.wav");
    else form.set(name, String(value));
  return form;
}

/** The error of an SDK. */
export const raised = (run: Promise<unknown>): Promise<any> =>
  run.then(
    () => expect.unreachable("nothing was raised"),
    ({ status, code, message }) => ({ status, code, message }),
  );

/** An `event` hook disables passthrough mode. */
const QUIET = `import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({ api: 1, name: "quiet", summary: "Touches nothing", sends: "nowhere", setup: () => ({ event: (_call, next) => next }) });
`;

export async function operating(more: Record<string, ScriptedReply> = {}): Promise<Operating> {
  const stage = await startInProcessWithUpstream({ ...routes(), ...more }, (up) => yamlAt(up), {
    files: { "quiet.ts": QUIET },
  });
  return new Operating(stage);
}

/** JSON is YAML. */
function yamlAt(up: string): string {
  const config = {
    store: { use: "memory" },
    retries: { per_target: 1 },
    frontends: [
      "chat-completions",
      ...Object.keys(OPERATIONS).filter((name) => name !== "moderations"),
      { use: "moderations", with: { default_model: "openai/omni-moderation-latest" } },
      "models",
    ],
    middleware: [
      {
        use: "auth",
        with: {
          keys: KEYS.map((id) => ({ id, digest: digestKey(keyOf(id)), ...limitsOf(id) })),
        },
      },
      { use: "./quiet.ts", for: { models: ["turned/*"] } },
      "zdr",
      "limits",
      "usage",
    ],
    providers: providersAt(up),
    models: Object.fromEntries(
      Object.keys(OPERATIONS).map((name) => [
        `two-${name}`,
        { candidates: [hostOf(name, "down"), hostOf(name, "sound")] },
      ]),
    ),
  };
  return Object.entries(config)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join("");
}
