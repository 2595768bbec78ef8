// Providers that are data. Each is mounted, and its quirks are pinned: the client's request and the
// outgoing one.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { builtin } from "../../plugins/index.ts";
import openai from "../../plugins/providers/openai.ts";
import openaiCompatible from "../../plugins/providers/openai-compatible.ts";
import { ALL_ROWS, rowProviders } from "../../plugins/providers/provider-rows.ts";
import {
  normalizeBaseUrl,
  endpointsOf,
  parseModelList,
  type CompatibleProvider,
} from "../../src/protocols/compatible/index.ts";
import {
  getFault,
  type Body,
  type Json,
  type ProviderClient,
  type ProtocolEndpoint,
} from "../../src/plugin/index.ts";
import {
  createCallContext,
  createTestContext,
  jsonResponse,
  createOutgoing,
  say,
  startUpstream,
} from "../../src/testing/index.ts";
import { OutgoingRequest } from "../../src/pipeline/upstream/outgoing-request.ts";
import { scan } from "../../src/lib/json/json-scanner.ts";
import { getValidator, type Schema } from "../../src/config/schema-dialect.ts";

const known: Record<string, CompatibleProvider> = {
  ...rowProviders,
  openai: openai as CompatibleProvider,
};
const folder = new URL("../fixtures/wire/", import.meta.url);

async function mounted(row: CompatibleProvider, options: object = {}) {
  await using host = createTestContext();
  const { value, errors } = getValidator(row.options as Schema)(options);
  expect(errors).toEqual([]);
  return row.setup(value as never, host.ctx);
}
/** Rows without a fixed address use the operator's. */
const SOMEWHERE = { base_url: "https://x.example/v1" };
const homeless = (row: CompatibleProvider): boolean =>
  (row.options as { required?: string[] }).required?.includes("base_url") === true;
const endpoint = async (name: string, protocol: string) => {
  const { endpoints } = await mounted(known[name]!, homeless(known[name]!) ? SOMEWHERE : {});
  return endpoints.find((e) => "protocol" in e && e.protocol.id === protocol) as ProtocolEndpoint;
};

interface WireCase {
  name: string;
  /** chat-completions unless told. */
  protocol?: string;
  model: string;
  request: Body;
  sent?: object;
  losses?: string[];
  refused?: string;
}
const fixtures = readdirSync(folder).map((file) => ({
  row: file.replace(".json", ""),
  cases: JSON.parse(readFileSync(new URL(file, folder), "utf8")) as WireCase[],
}));

describe.each(fixtures)("$row", ({ row, cases }) => {
  test.each(cases)("$name", async ({ model, request, sent, losses, refused, ...of_ }) => {
    const { protocol } = await endpoint(row, of_.protocol ?? "chat-completions");
    const of = createCallContext({ model, stream: request["stream"] === true });
    // Passthrough mode as the host runs it: the client's own bytes with edits.
    const raw = Buffer.from(JSON.stringify({ model: "p/m", ...request }));
    const { spans } = scan(raw) as unknown as { spans: never };
    const out = new OutgoingRequest({
      method: "POST",
      path: "/",
      body: JSON.parse(raw.toString()),
      raw,
      spans,
    });
    out.set("model", model);
    let code: string | undefined;
    try {
      protocol.client!.prepare!(out, of);
    } catch (error) {
      const { kind, code: own } = getFault(error) ?? {};
      code = own ?? kind;
    }
    expect(code).toBe(refused);
    if (refused) return;
    expect(JSON.parse(out.toChunks()!.toBuffer().toString())).toEqual({ model, ...sent });
    expect(of.losses.map((l) => `${l.how} ${l.field}`)).toEqual(losses);
  });
});

describe("all rows", () => {
  test("are thirty or more, each once, with fixtures and a list of unverified claims", () => {
    const names = ALL_ROWS.map((row) => row.name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThanOrEqual(30);
    expect(fixtures.map((f) => f.row).toSorted()).toEqual(Object.keys(known).toSorted());
    const experimental = ALL_ROWS.filter(
      (row) => (row.stability ?? "experimental") === "experimental",
    );
    for (const { name, unverified = [] } of experimental)
      expect(unverified.length, name).toBeGreaterThan(0);
    expect(ALL_ROWS.length - experimental.length).toBeGreaterThanOrEqual(12);
  });

  test("are built in by name", async () => {
    for (const row of ALL_ROWS) {
      const module = (await builtin.provider[row.name as "groq"]()) as {
        default: CompatibleProvider;
      };
      expect(module.default.name).toBe(row.name);
      expect(module.default["~tollgate"]).toBe("provider");
    }
  });

  test.each(Object.values(known).map((row) => [row.name, row] as const))(
    "%s mounts",
    async (name, row) => {
      const { endpoints } = await mounted(row, homeless(row) ? SOMEWHERE : {});
      expect(endpoints.length).toBeGreaterThan(0);
      for (const e of endpoints as ProtocolEndpoint[]) {
        if ("protocol" in e)
          expect(e.protocol.client ?? e.protocol.socket, `${name} ${e.protocol.id}`).toBeDefined();
        expect(new URL(e.base).protocol).toMatch(/^https?:$/);
        expect(e.base).not.toMatch(/\/$/);
      }
    },
  );

  test.each(ALL_ROWS.filter((r) => r.base !== undefined).map((row) => [row.name, row] as const))(
    "%s moves all its endpoints with base_url, so that no key is sent elsewhere",
    (_, row) => {
      const moved = endpointsOf(row, "http://127.0.0.1:9999/a/b/c/v1") as ProtocolEndpoint[];
      for (const e of moved) expect(new URL(e.base).origin).toBe("http://127.0.0.1:9999");
    },
  );

  test("have the addresses in their documentation", () => {
    const at = (name: string, protocol: string) => {
      const row = ALL_ROWS.find((r) => r.name === name)!;
      return (endpointsOf(row, normalizeBaseUrl(row.base!, row.base)) as ProtocolEndpoint[]).find(
        (e) => e.protocol.id === protocol,
      )!.base;
    };
    expect(at("deepseek", "chat-completions")).toBe("https://api.deepseek.com");
    expect(at("deepseek", "messages")).toBe("https://api.deepseek.com/anthropic/v1");
    expect(at("moonshot", "messages")).toBe("https://api.moonshot.ai/anthropic/v1");
    expect(at("zai", "messages")).toBe("https://api.z.ai/api/anthropic/v1");
    expect(at("alibaba", "messages")).toBe("https://dashscope-intl.aliyuncs.com/apps/anthropic/v1");
    expect(at("minimax", "messages")).toBe("https://api.minimax.io/anthropic/v1");
    expect(at("fireworks", "messages")).toBe("https://api.fireworks.ai/inference/v1");
    expect(at("deepinfra", "messages")).toBe("https://api.deepinfra.com/anthropic/v1");
    expect(at("ollama", "messages")).toBe("http://localhost:11434/v1");
  });

  test("a base URL without a path means the usual path", () => {
    expect(normalizeBaseUrl("http://localhost:11434", "http://localhost:11434/v1")).toBe(
      "http://localhost:11434/v1",
    );
    expect(normalizeBaseUrl("http://localhost:11434/", undefined)).toBe(
      "http://localhost:11434/v1",
    );
    expect(normalizeBaseUrl("https://gw.example/x/v1/", undefined)).toBe("https://gw.example/x/v1");
    expect(normalizeBaseUrl("https://api.perplexity.ai", "https://api.perplexity.ai")).toBe(
      "https://api.perplexity.ai",
    );
  });

  test("send keys in the place that each endpoint expects", async () => {
    expect((await endpoint("moonshot", "chat-completions")).auth).toEqual({
      header: "authorization",
      prefix: "Bearer ",
      field: "api_key",
    });
    expect((await endpoint("moonshot", "messages")).auth).toEqual({
      header: "x-api-key",
      field: "api_key",
    });
    expect((await endpoint("moonshot", "messages")).headers).toEqual({
      "anthropic-version": "2023-06-01",
    });
  });
});

describe("model lists", () => {
  const usd = (info: ReturnType<typeof parseModelList>[number]) =>
    Object.fromEntries(info.price!.lines.map((l) => [l.unit, l.usd]));

  test("are parsed in every format that servers use", () => {
    const want = [{ model: "a/b", operation: "chat" }];
    for (const body of [
      { object: "list", data: [{ id: "a/b" }] },
      [{ id: "a/b" }],
      { models: [{ model: "a/b" }] },
      { models: [{ name: "a/b" }] },
    ])
      expect(parseModelList(body as Json, {})).toMatchObject(want);
    expect(() => parseModelList({ error: "no" }, {})).toThrow(/not a model list/);
  });

  test("omit models that neither chat nor generate images, and distinguish image models", () => {
    const data = [
      "gpt-6",
      "text-embedding-3",
      "whisper-1",
      "gpt-4o-mini-tts",
      "omni-moderation-latest",
      "gpt-image-2",
      "bge-rerank",
      "gpt-realtime",
    ].map((id) => ({ id }));
    expect(
      parseModelList({ data }, { images: ["gpt-image-*"] }).map((m) => `${m.operation} ${m.model}`),
    ).toEqual(["chat gpt-6", "image gpt-image-2"]);
    expect(
      parseModelList(
        [
          { id: "flux", type: "image" },
          { id: "m2", type: "embedding" },
        ],
        {},
      ),
    ).toMatchObject([{ model: "flux", operation: "image" }]);
  });

  test("have limits under any name", () => {
    expect(
      parseModelList(
        {
          data: [
            { id: "v", max_model_len: 8192 },
            {
              id: "o",
              name: "O",
              context_length: 1000,
              top_provider: { max_completion_tokens: 50 },
            },
          ],
        },
        {},
      ),
    ).toMatchObject([
      { limits: { context: 8192 } },
      { name: "O", limits: { context: 1000, output: 50 } },
    ]);
  });

  test("have prices as decimals, to the last digit", () => {
    const priced = (pricing: object, prices: "per_token" | "per_million") =>
      parseModelList({ data: [{ id: "m", pricing }] } as never, { prices })[0]!;
    expect(
      usd(
        priced(
          { prompt: "0.0000025", completion: "0.00001", input_cache_read: "0.00000125" },
          "per_token",
        ),
      ),
    ).toEqual({
      input: "2.5",
      cache_read: "1.25",
      cache_write_5m: "2.5",
      cache_write_30m: "2.5",
      output: "10",
    });
    expect(usd(priced({ input: 0.27, output: 1.1 }, "per_million"))).toMatchObject({
      input: "0.27",
      output: "1.1",
      cache_read: "0.27",
    });
    expect(usd(priced({ prompt: 1e-7, completion: "12" }, "per_token"))).toMatchObject({
      input: "0.1",
      output: "12000000",
    });
    expect(usd(priced({ prompt: "0", completion: "0" }, "per_token"))).toMatchObject({
      input: "0",
      output: "0",
    });
    expect(priced({ prompt: "-1", completion: "-1" }, "per_token").price).toBeUndefined();
    expect(priced({ prompt: "0.1" }, "per_token").price).toBeUndefined();
  });

  test("are requested from the backend itself", async () => {
    await using up = await startUpstream({
      "GET /v1/models": jsonResponse({ data: [{ id: "m1" }] }),
    });
    const line = (base: string): ProviderClient =>
      ({
        credential: "main",
        signal: new AbortController().signal,
        fetch: (to: string) => fetch(`${base}/${to}`),
      }) as never;
    const { listModels } = await mounted(openaiCompatible as CompatibleProvider, {
      base_url: up.url,
    });
    expect(await listModels!(line(`${up.url}/v1`))).toMatchObject([
      { model: "m1", operation: "chat" },
    ]);
    const gone = await mounted(openaiCompatible as CompatibleProvider, { base_url: up.url });
    await expect(gone.listModels!(line(`${up.url}/nowhere`))).rejects.toThrow(/status 404/);
  });
});

describe("openai-compatible", () => {
  test("takes its quirks from options", async () => {
    const { endpoints, listModels } = await mounted(openaiCompatible as CompatibleProvider, {
      base_url: "http://localhost:5000",
      key_header: "api-key",
      thinking: "chat_template_kwargs",
      stream_usage: false,
      responses: true,
      list_models: false,
      drop_fields: ["seed"],
    });
    const [chat, responses] = endpoints as ProtocolEndpoint[];
    expect(chat!.base).toBe("http://localhost:5000/v1");
    expect(chat!.auth).toEqual({ header: "api-key", field: "api_key" });
    expect(responses!.protocol.id).toBe("responses");
    expect(listModels).toBeUndefined();
    const out = createOutgoing({
      model: "m",
      messages: [{ role: "developer", content: "x" }],
      max_completion_tokens: 5,
      thinking: { type: "enabled" },
      seed: 1,
      stream: true,
    });
    chat!.protocol.client!.prepare!(out, createCallContext({ stream: true }));
    expect(out.body).toEqual({
      model: "m",
      stream: true,
      messages: [{ role: "system", content: "x" }],
      max_tokens: 5,
      chat_template_kwargs: { enable_thinking: true },
    });
  });

  test("does not mount without a base URL", () => {
    expect(getValidator(openaiCompatible.options as Schema)({}).errors).toMatchObject([
      { keyword: "required" },
    ]);
  });
});

test("speech of a fake upstream works through a row", async () => {
  const { protocol } = await endpoint("vllm", "chat-completions");
  const body = say("Hello").toProtocol("chat-completions").body as { bytes: string };
  const heard: string[] = [];
  protocol.client!.decodeResponse(
    Buffer.from(body.bytes),
    (e) => e.type === "delta" && heard.push(e.text),
    createCallContext(),
    {},
  );
  expect(heard).toEqual(["Hello"]);
});
