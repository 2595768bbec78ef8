// Every row in use: mounted in one real gateway and called by a client of each of its protocols, it
// calls the documented address with the documented key. Every codec understands its limits and
// errors.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_ROWS } from "../../plugins/providers/provider-rows.ts";
import type { Errors, Limits } from "../../plugins/providers/row-backend.ts";
import { DEFAULT_FRONTENDS } from "../../src/config/schema/config-schema.ts";
import {
  endpointsOf,
  operationsOf,
  parseModelList,
  type ProviderRow,
} from "../../src/protocols/compatible/index.ts";
import type { HeadersIn, Json, ProtocolEndpoint } from "../../src/plugin/index.ts";
import {
  createCallContext,
  jsonResponse,
  say,
  protocolAtPath,
  startUpstream,
  type ScriptedReply,
  type UpstreamRequest,
  type TestUpstream,
} from "../../src/testing/index.ts";
import { startInProcess, type InProcessGateway } from "../kit/in-process.ts";
import { OPERATIONS } from "../e2e/operations/table.ts";
import { until } from "../kit/wait.ts";

/** By row and protocol: the place of the key and the address, written from the documentation. */
const ADDRESSES: { readonly [row: string]: { [protocol: string]: string } } = JSON.parse(
  readFileSync(new URL("../fixtures/addresses.json", import.meta.url), "utf8"),
);
/** The providers of the table of operations, with their own responses, by path. */
const ANSWERS = new Map<string, ScriptedReply>();
for (const [protocol, { host }] of Object.entries(OPERATIONS)) {
  if (host.address === undefined) continue;
  ADDRESSES[host.use]![protocol] = host.address;
  ANSWERS.set(`/${host.use}${new URL(host.address.split(" ")[1]!).pathname}`, host.answer);
}
const whereOf = (row: string, protocol: string) => {
  const [auth, address] = ADDRESSES[row]![protocol]!.split(" ") as [string, string];
  return { auth, url: new URL(address) };
};
const EMBEDDED = { path: "/v1/embeddings", body: { input: "A fjord" } };
const GOES_ON = { path: "/v1/completions", body: { prompt: "A fjord" } };
const RANKED = { path: "/v1/rerank", body: { query: "Which?", documents: ["A fjord"] } };
const ASKED: { readonly [protocol: string]: { path: string; body: object } } = {
  "chat-completions": {
    path: "/v1/chat/completions",
    body: { messages: [{ role: "user", content: "Hi" }] },
  },
  messages: {
    path: "/v1/messages",
    body: { max_tokens: 50, messages: [{ role: "user", content: "Hi" }] },
  },
  responses: { path: "/v1/responses", body: { input: "Hi" } },
  images: { path: "/v1/images/generations", body: { prompt: "A fjord" } },
  "xai-edits": {
    path: "/v1/images/edits",
    body: {
      prompt: "A fjord in winter",
      images: [{ image_url: "data:image/png;base64,iVBORw0KGgo=" }],
    },
  },
  embeddings: EMBEDDED,
  "cohere-embed": EMBEDDED,
  "ollama-embed": EMBEDDED,
  rerank: RANKED,
  "voyage-rerank": RANKED,
  completions: GOES_ON,
  "mistral-fim": GOES_ON,
  "ollama-generate": GOES_ON,
  transcriptions: { path: "/v1/audio/transcriptions", body: { file: "a fjord's sound" } },
};
/** The request in a protocol: its own sample at its own path, unless the model is listed. */
function askedOf(row: ProviderRow, protocol: string): { path: string; body: object } {
  if (ASKED[protocol]) return ASKED[protocol];
  const { client, operationSpec } = endpointOf(row, protocol).protocol;
  const call = createCallContext({ model: "m" });
  const { model: _, ...body } = client!.encodeRequest(operationSpec.sampleRequest("m"), call);
  return { path: `/v1${client!.paths.generate as string}`, body };
}
/** Sent as a form. */
const FORMS: ReadonlySet<string> = new Set(["transcriptions"]);

function formOf(fields: object): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (name === "file") form.set(name, new Blob([value]), "fjord.wav");
    else form.set(name, value);
  return form;
}

const endpointOf = (row: ProviderRow, protocol: string): ProtocolEndpoint =>
  (endpointsOf(row, row.base ?? "http://localhost/v1") as ProtocolEndpoint[]).find(
    (one) => one.protocol.id === protocol,
  )!;

/** The operation of the protocol. A chat model need not be listed. */
const kindOf = (row: ProviderRow, protocol: string): string =>
  endpointOf(row, protocol).protocol.operationSpec.name;

/** A model that this endpoint serves. */
function modelOf(row: ProviderRow, protocol: string): string {
  const { servedModels } = row.protocols[protocol as "images"] ?? {};
  return (servedModels?.[0] ?? `my-${kindOf(row, protocol)}-*`).replace("*", "x");
}

/** The protocols of requests. Realtime conversations are held over a socket. */
const calledProtocols = (row: ProviderRow): readonly string[] =>
  Object.keys(row.protocols).filter((protocol) => protocol !== "realtime");

const spoken = ALL_ROWS.flatMap((row) =>
  calledProtocols(row).map((protocol) => ({ row, name: row.name, protocol })),
);

/** Each row has its own name as a prefix, and its usual path below it. */
const pathOf = (row: ProviderRow): string =>
  row.base === undefined
    ? ({ azure: "/openai/v1", bedrock: "/openai/v1", "azure-anthropic": "/anthropic/v1" }[
        row.name
      ] ??
      { cloudflare: "/client/v4/accounts/id/ai/v1", databricks: "/serving-endpoints" }[row.name]!)
    : new URL(row.base).pathname.replace(/\/$/, "");

let up: TestUpstream;
let gateway: InProcessGateway;

beforeAll(async () => {
  up = await startUpstream({
    "POST *": async (asked: UpstreamRequest) => {
      const own = ANSWERS.get(asked.path);
      if (own) return typeof own === "function" ? await own(asked) : own;
      return protocolAtPath(asked.path)
        ? say("Hi").toResponse(asked)
        : jsonResponse({
            created: 1,
            data: [{ b64_json: "iVBORw0KGgo=", embedding: [1] }],
            embeddings: [[1]],
            choices: [{ index: 0, text: "x", message: { content: "x" }, finish_reason: "stop" }],
            done: true,
            response: "x",
            text: "x",
            results: [{ index: 0, relevance_score: 1 }],
          });
    },
    "GET *": jsonResponse({ data: [{ id: "listed-1" }] }),
  });
  const providers = ALL_ROWS.map((row) => {
    const known = calledProtocols(row).flatMap((protocol) => {
      const kind = kindOf(row, protocol);
      return kind === "chat" ? [] : [`"${modelOf(row, protocol)}": { operation: ${kind} }`];
    });
    const listed = known.length > 0 ? `, models: { ${[...new Set(known)].join(", ")} }` : "";
    return `  ${row.name}: { use: ${row.name}, with: { api_key: key-of-${row.name}, base_url: "${up.url}/${row.name}${pathOf(row)}" }${listed} }`;
  });
  gateway = await startInProcess({
    yaml: `frontends: [${DEFAULT_FRONTENDS.join(", ")}]
middleware: [auth]
store: memory
providers:
${providers.join("\n")}
`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await up.close();
});

describe("addresses", () => {
  it("are recorded for every protocol of a row, and for nothing else", () => {
    const own = ALL_ROWS.map((row) => [
      row.name,
      [...calledProtocols(row), ...(row.models === false ? [] : ["models"])].toSorted(),
    ]);
    const written = Object.entries(ADDRESSES).map(([name, at]) => [
      name,
      Object.keys(at).toSorted(),
    ]);
    expect(Object.fromEntries(own)).toEqual(Object.fromEntries(written));
  });

  it.each(ALL_ROWS.filter((row) => row.base !== undefined))("$name has its home there", (row) => {
    for (const endpoint of endpointsOf(row, row.base!.replace(/\/$/, "")) as ProtocolEndpoint[]) {
      if (!calledProtocols(row).includes(endpoint.protocol.id)) continue;
      const { url } = whereOf(row.name, endpoint.protocol.id);
      expect(url.href.startsWith(`${endpoint.base.replace(/\/$/, "")}/`)).toBe(true);
      expect(new URL(endpoint.base).origin).toBe(url.origin);
    }
  });

  it.each(spoken)("$name is called in $protocol, with its key", async ({ row, name, protocol }) => {
    const { path, body } = askedOf(row, protocol);
    const before = up.requests.length;
    const model = modelOf(row, protocol);
    const answer = await fetch(gateway.url + path, {
      method: "POST",
      headers: {
        ...(!FORMS.has(protocol) && { "content-type": "application/json" }),
        ...(protocol === "messages"
          ? { "x-api-key": gateway.key }
          : { authorization: `Bearer ${gateway.key}` }),
      },
      body: FORMS.has(protocol)
        ? formOf({ model: `${name}/${model}`, ...body })
        : JSON.stringify({ model: `${name}/${model}`, ...body }),
    });
    const said = await answer.text();
    expect(answer.status, said).toBe(200);
    expect(JSON.parse(said).model ?? `${name}/${model}`).toBe(`${name}/${model}`);
    const asked = up.requests.slice(before).filter(({ method }) => method === "POST");
    expect(asked).toHaveLength(1);
    const { auth, url } = whereOf(name, protocol);
    expect(asked[0]!.path).toBe(`/${name}${url.pathname}`);
    const { authorization, "x-api-key": xApiKey, "api-key": apiKey } = asked[0]!.headers;
    const key = `key-of-${name}`;
    expect({ authorization, xApiKey, apiKey }).toEqual({
      authorization: auth === "Bearer" ? `Bearer ${key}` : undefined,
      xApiKey: auth === "x-api-key" ? key : undefined,
      apiKey: auth === "api-key" ? key : undefined,
    });
    if (FORMS.has(protocol))
      expect(asked[0]!.body.toString()).toContain(`"model"\r\n\r\n${model}\r\n`);
    else expect(asked[0]!.json().model).toBe(model);
    expect(asked[0]!.headers["anthropic-version"]).toBe(
      protocol === "messages" ? "2023-06-01" : undefined,
    );
  });

  it.each(ALL_ROWS.filter((row) => row.models !== false))(
    "$name lists its models there",
    async ({ name }) => {
      const { url } = whereOf(name, "models");
      const wanted = `/${name}${url.pathname}${url.search}`;
      const seen = () =>
        up.requests
          .filter(({ method, path }) => method === "GET" && path.startsWith(`/${name}/`))
          .map(({ path, query }) => (query.size > 0 ? `${path}?${query.toString()}` : path));
      await until(() => seen().length > 0);
      expect(seen()).toEqual([wanted]);
    },
  );
});

// ── model lists in the form of these backends ──

const LISTS: { readonly [row: string]: { body: Json; models: readonly object[] } } = {
  together: {
    body: [
      {
        id: "Qwen/Qwen3",
        type: "chat",
        context_length: 262_144,
        pricing: { input: 0.2, output: 0.6 },
      },
      { id: "black-forest-labs/FLUX.2", type: "image", pricing: { input: 0, output: 0 } },
      { id: "BAAI/bge", type: "embedding" },
    ],
    models: [
      { model: "Qwen/Qwen3", operation: "chat", limits: { context: 262_144 } },
      { model: "black-forest-labs/FLUX.2", operation: "image" },
      { model: "BAAI/bge", operation: "embedding" },
    ],
  },
  openrouter: {
    body: {
      data: [
        {
          id: "openai/gpt-6-sol",
          name: "OpenAI: GPT-6 Sol",
          context_length: 400_000,
          top_provider: { max_completion_tokens: 128_000 },
          pricing: { prompt: "0.000004", completion: "0.00002", input_cache_read: "0.0000004" },
        },
      ],
    },
    models: [
      {
        model: "openai/gpt-6-sol",
        name: "OpenAI: GPT-6 Sol",
        limits: { context: 400_000, output: 128_000 },
        price: {
          lines: expect.arrayContaining([{ unit: "cache_read", usd: "0.4", per: 1_000_000 }]),
        },
      },
    ],
  },
  mistral: {
    body: {
      data: [{ id: "mistral-large-4", max_context_length: 262_144 }, { id: "mistral-embed" }],
    },
    models: [
      { model: "mistral-large-4", limits: { context: 262_144 } },
      { model: "mistral-embed", operation: "embedding" },
    ],
  },
  cohere: {
    body: {
      models: [
        { name: "command-a", endpoints: ["chat"], context_length: 256_000 },
        { name: "c4ai-aya", endpoints: ["generate", "chat", "summarize"] },
        { name: "embed-v4.0", endpoints: ["embed", "embed_image"] },
        { name: "rerank-v3.5", endpoints: ["rerank"] },
      ],
    },
    models: [
      { model: "command-a", operation: "chat", limits: { context: 256_000 } },
      { model: "c4ai-aya", operation: "chat" },
      { model: "embed-v4.0", operation: "embedding" },
      { model: "rerank-v3.5", operation: "rerank" },
    ],
  },
  vllm: {
    body: { object: "list", data: [{ id: "Qwen/Qwen3-8B", max_model_len: 40_960 }] },
    models: [{ model: "Qwen/Qwen3-8B", limits: { context: 40_960 } }],
  },
  ollama: {
    body: { object: "list", data: [{ id: "qwen3:8b", owned_by: "library" }] },
    models: [{ model: "qwen3:8b", operation: "chat" }],
  },
  "lm-studio": {
    body: {
      data: [{ id: "qwen3-8b", max_context_length: 32_768 }, { id: "text-embedding-nomic" }],
    },
    models: [
      { model: "qwen3-8b", limits: { context: 32_768 } },
      { model: "text-embedding-nomic", operation: "embedding" },
    ],
  },
  sambanova: {
    body: {
      data: [
        {
          id: "gpt-oss-120b",
          context_length: 131_072,
          max_completion_tokens: 131_072,
          pricing: { prompt: "0.00000022", completion: "0.00000059" },
        },
      ],
    },
    models: [{ model: "gpt-oss-120b", limits: { context: 131_072, output: 131_072 } }],
  },
  huggingface: {
    body: {
      data: [{ id: "zai-org/GLM-5.2", providers: [{ provider: "novita", status: "live" }] }],
    },
    models: [{ model: "zai-org/GLM-5.2", operation: "chat" }],
  },
};

describe("model lists", () => {
  it.each(Object.keys(LISTS))("of %s", (name) => {
    const row = ALL_ROWS.find((one) => one.name === name)!;
    const { body, models } = LISTS[name]!;
    expect(parseModelList(body, row.models || {}, operationsOf(row))).toMatchObject(
      models as object[],
    );
  });
});

// ── errors ──

const WORDS = "Something is not as it should be.";
const ERRORS: { readonly [shape in Errors]: (code: string) => Json } = {
  openai: (code) => ({ error: { message: WORDS, type: "some_error", param: null, code } }),
  anthropic: () => ({
    type: "error",
    error: { type: "api_error", message: WORDS },
    request_id: "r",
  }),
  flat: (code) => ({ object: "error", message: WORDS, type: "some", param: null, code }),
  message: () => ({ message: WORDS }),
  words: (code) => ({ code, error: WORDS }),
  base_resp: () => ({ base_resp: { status_code: 1004, status_msg: WORDS } }),
  errors: () => ({ result: null, success: false, errors: [{ code: 7003, message: WORDS }] }),
};
const STATUSES = [
  [400, "invalid"],
  [401, "upstream_auth"],
  [402, "upstream_quota"],
  [429, "rate_limited"],
  [500, "upstream"],
  [503, "overloaded"],
] as const;

const clientOf = (row: ProviderRow, protocol: string) => endpointOf(row, protocol).protocol.client!;

describe("errors", () => {
  it.each(spoken)("of $name in $protocol keep the provider's message", ({ row, protocol }) => {
    const { errors } = ALL_ROWS.find(({ name }) => name === row.name)!;
    const client = clientOf(row, protocol);
    // A messages endpoint also has that protocol's own format, in addition to any other.
    const shapes = protocol === "messages" ? ([errors, "anthropic"] as const) : [errors];
    for (const shape of shapes)
      for (const [status, kind] of STATUSES) {
        const body = Buffer.from(JSON.stringify(ERRORS[shape]("")));
        const fault = client.decodeFault(status, {}, body);
        expect({ shape, status, kind: fault.kind, message: fault.message }).toEqual({
          shape,
          status,
          // Anthropic's own types take precedence over a generic status.
          kind: shape === "anthropic" && status === 400 ? "upstream" : kind,
          message: WORDS,
        });
      }
  });
});

// ── limits ──

const DATE = "Sat, 21 Nov 2026 10:00:00 GMT";
const LIMITS: { readonly [style in Limits]: { headers: HeadersIn; ms: number | undefined } } = {
  openai: {
    headers: {
      "x-ratelimit-remaining-requests": "12",
      "x-ratelimit-reset-requests": "6m0s",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "1.25s",
    },
    ms: 1250,
  },
  anthropic: {
    headers: {
      date: DATE,
      "anthropic-ratelimit-output-tokens-remaining": "0",
      "anthropic-ratelimit-output-tokens-reset": "2026-11-21T10:00:30Z",
      "anthropic-ratelimit-requests-remaining": "50",
      "anthropic-ratelimit-requests-reset": "2026-11-21T11:00:00Z",
    },
    ms: 30_000,
  },
  cerebras: {
    headers: {
      "x-ratelimit-remaining-requests-day": "100",
      "x-ratelimit-reset-requests-day": "33011.382867",
      "x-ratelimit-remaining-tokens-minute": "0",
      "x-ratelimit-reset-tokens-minute": "11.5",
    },
    ms: 11_500,
  },
  mistral: { headers: { "x-ratelimit-limit-req-minute": "60", "retry-after": "7" }, ms: 7000 },
  together: {
    headers: {
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": "2",
      "x-tokenlimit-remaining": "9",
    },
    ms: 2000,
  },
  fireworks: { headers: { "x-ratelimit-over-limit": "yes", "retry-after-ms": "1500" }, ms: 1500 },
  openrouter: {
    headers: {
      date: DATE,
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(Date.parse("2026-11-21T10:01:00Z")),
    },
    ms: 60_000,
  },
  none: { headers: { "retry-after": "3" }, ms: 3000 },
};

describe("limits", () => {
  it.each(spoken)("of $name in $protocol state when to retry", ({ row, protocol }) => {
    const { limits } = ALL_ROWS.find(({ name }) => name === row.name)!;
    const { headers, ms } = LIMITS[limits];
    const body = Buffer.from(JSON.stringify(ERRORS.openai("rate_limit_exceeded")));
    expect(clientOf(row, protocol).decodeFault(429, headers, body)).toMatchObject({
      kind: "rate_limited",
      retryAfterMs: ms,
    });
  });
});
