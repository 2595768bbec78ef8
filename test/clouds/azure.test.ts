// The vendors' SDKs validate the fake. Then the package is tested in a gateway with that fake.
import Anthropic from "@anthropic-ai/sdk";
import { AnthropicFoundry } from "@anthropic-ai/foundry-sdk";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import OpenAI, { AzureOpenAI } from "openai";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startTestGateway, say, think, type Chunks, type TestGateway } from "tollgate/testing";
import foundry from "../../plugins/providers/azure-foundry/index.ts";
import { fakeAzure, filtered, KEY, throttled, type FakeAzure } from "./azure-fake.ts";
import { billOf, rowsOf, settled } from "./rows.ts";
import { trialCount } from "../kit/law-effort.ts";

const VERSION = "2024-10-21";
let fake: FakeAzure;
let at: TestGateway;
let openai: OpenAI;
let anthropic: Anthropic;
const folder = mkdtempSync(join(tmpdir(), "tollgate-azure-"));

const mounted = () => {
  const reached = `base_url: "${fake.url}", login_url: "${fake.url}"`;
  const priced = `models: { my-gpt: { price: { input: "1.25", output: "10", cache_read: "0.125" } }, claude-one: { price: { input: "3", output: "15", cache_read: "0.3" } }, vectors: { operation: embedding, price: { input: "0.02" } } }`;
  return startTestGateway({
    plugins: { "azure-foundry": foundry },
    env: {
      THE_KEY: KEY,
      SECRET_1: "secret-1",
      SECRET_2: "secret-2",
      AZURE_TENANT_ID: "tenant-1",
      AZURE_CLIENT_ID: "client-1",
      IDENTITY_ENDPOINT: `${fake.url}/identity`,
      IDENTITY_HEADER: "header-1",
    },
    yaml: `
frontends: [chat-completions, messages, responses, embeddings]
providers:
  v1: { use: azure-foundry, with: { ${reached}, api_key: "\${env:THE_KEY}" }, ${priced} }
  legacy: { use: azure-foundry, with: { ${reached}, api_key: "\${env:THE_KEY}", api_version: "${VERSION}" }, ${priced} }
  entra: { use: azure-foundry, with: { ${reached}, tenant_id: tenant-1, client_id: client-1, client_secret: "\${env:SECRET_1}" }, ${priced} }
  wrong: { use: azure-foundry, with: { ${reached}, tenant_id: tenant-1, client_id: client-1, client_secret: "\${env:SECRET_2}" } }
  machine: { use: azure-foundry, with: { ${reached}, from: managed_identity } }
  workload: { use: azure-foundry, with: { ${reached}, from: workload, federated_token_file: "${join(folder, "token")}" } }
models:
  guarded: { candidates: [v1/my-gpt, entra/my-gpt], fallback_on: [content_policy] }
`,
  });
};
const clientOf = ({ url }: TestGateway) =>
  new OpenAI({ apiKey: "any", maxRetries: 0, baseURL: `${url}/v1` });

beforeAll(async () => {
  fake = await fakeAzure();
  writeFileSync(join(folder, "token"), "federated-1\n");
  at = await mounted();
  const about = { apiKey: "any", maxRetries: 0 };
  openai = clientOf(at);
  anthropic = new Anthropic({ ...about, baseURL: at.url });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await fake[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  fake.says = think("Hm.", "sig-1")
    .say("Grüße 🌍")
    .call("go", { to: "Rome" }, "call_x")
    .usage({ input: 30, cache_read: 5, output: 12 });
  fake.up.reset();
  fake.grants.length = 0;
  (at.storeCommands as unknown[]).length = 0;
});
afterEach(() => {
  fake.chunks = fake.bend = undefined;
  fake.next.length = 0;
});

const messages = [{ role: "user" as const, content: "Hello" }];
const tools = [
  {
    type: "function" as const,
    function: {
      name: "go",
      parameters: { type: "object", properties: { to: { type: "string" } } },
    },
  },
];

describe("the vendors' SDKs accept the fake service", () => {
  const azure = () =>
    new AzureOpenAI({
      endpoint: fake.url,
      apiKey: KEY,
      apiVersion: VERSION,
      deployment: "my-gpt",
      maxRetries: 0,
    });

  it("AzureOpenAI calls deployments, streaming and non-streaming", async () => {
    const { choices } = await azure().chat.completions.create({ model: "my-gpt", messages });
    expect(choices[0]!.message.content).toBe("Grüße 🌍");
    expect((choices[0] as any).content_filter_results).toEqual({
      hate: { filtered: false, severity: "safe" },
    });
    let text = "";
    for await (const chunk of await azure().chat.completions.create({
      model: "my-gpt",
      messages,
      stream: true,
    }))
      text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("Grüße 🌍");
  });

  it("AzureOpenAI reads the content filter's result", async () => {
    fake.next.push(filtered());
    await expect(
      azure().chat.completions.create({ model: "my-gpt", messages }),
    ).rejects.toMatchObject({ status: 400, code: "content_filter" });
  });

  it("with a token provider it sends a bearer token", async () => {
    fake.good.add("judge");
    const client = new AzureOpenAI({
      endpoint: fake.url,
      azureADTokenProvider: async () => "judge",
      apiVersion: VERSION,
      deployment: "my-gpt",
      maxRetries: 0,
    });
    expect(
      (await client.chat.completions.create({ model: "my-gpt", messages })).choices,
    ).toHaveLength(1);
  });

  it("OpenAI's client calls v1, and Anthropic's SDK for Foundry calls Claude", async () => {
    const plain = new OpenAI({
      baseURL: `${fake.url}/openai/v1`,
      apiKey: "x",
      defaultHeaders: { "api-key": KEY },
      maxRetries: 0,
    });
    expect((await plain.responses.create({ model: "my-gpt", input: "Hello" })).output_text).toBe(
      "Grüße 🌍",
    );
    const claude = new AnthropicFoundry({
      apiKey: KEY,
      baseURL: `${fake.url}/anthropic`,
      maxRetries: 0,
    });
    const { content } = await claude.messages.create({
      model: "claude-one",
      max_tokens: 50,
      messages,
    });
    expect(content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
  });
});

async function streamed(model: string, client = openai): Promise<string> {
  let [text, name, args, reason] = ["", "", "", ""];
  for await (const { choices } of await client.chat.completions.create({
    model,
    messages,
    tools,
    stream: true,
  })) {
    text += choices[0]?.delta.content ?? "";
    name += choices[0]?.delta.tool_calls?.[0]?.function?.name ?? "";
    args += choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? "";
    reason = choices[0]?.finish_reason ?? reason;
  }
  return `${text}|${name} ${args}|${reason}`;
}
const DUE = 'Grüße 🌍|go {"to":"Rome"}|tool_calls';

describe.each([
  ["v1", "v1/my-gpt"],
  ["deployments", "legacy/my-gpt"],
  ["Claude", "v1/claude-one"],
  ["a token of Entra ID", "entra/my-gpt"],
])("%s", (_name, model) => {
  it("responds non-streaming", async () => {
    const { choices, usage } = await openai.chat.completions.create({ model, messages, tools });
    expect(choices[0]!.message.content).toBe("Grüße 🌍");
    expect([usage!.prompt_tokens, usage!.completion_tokens]).toEqual([35, 12]);
  });

  it.each(["pieces", "bytes", { seed: 5 }] as Chunks[])(
    "streams, in pieces of %j",
    async (chunks) => {
      fake.chunks = chunks;
      expect(await streamed(model)).toBe(DUE);
    },
  );

  // A failure causes a cooldown, so each of these has its own gateway.
  it("reports throttling as throttling", async () => {
    await using own = await mounted();
    fake.next.push(throttled());
    await expect(clientOf(own).chat.completions.create({ model, messages })).rejects.toMatchObject({
      status: 429,
    });
    expect(rowsOf(own).map(({ state }) => state)).toEqual(["void"]);
  });

  it("is never complete if its stream is truncated", async () => {
    await using own = await mounted();
    fake.bend = (answer) => ({ ...answer, truncation: { after: 700, how: "close" } });
    await expect(streamed(model, clientOf(own))).rejects.toThrow(/ended|broke|cut|closed/i);
    expect(fake.up.requests.length).toBeGreaterThan(0);
    expect(rowsOf(own).map(({ state }) => state)).not.toContain("exact");
  });

  it("accepts images", async () => {
    const png =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await openai.chat.completions.create({
      model,
      messages: [
        {
          role: "user",
          content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }],
        },
      ],
    });
    expect(fake.up.requests.at(-1)!.body.toString()).toContain(png);
  });
});

describe("addresses", () => {
  it.each([
    ["v1/my-gpt", "/openai/v1/responses", null],
    ["legacy/my-gpt", "/openai/responses", VERSION],
  ])("responses of %s are requested at %s", async (model, path, version) => {
    await openai.responses.create({ model, input: "Hello" });
    const asked = fake.up.requests.at(-1)!;
    expect([asked.path, asked.query.get("api-version")]).toEqual([path, version]);
  });

  it.each(["v1", "legacy"])("embeddings of %s", async (name) => {
    const { data, usage } = await openai.embeddings.create({
      model: `${name}/vectors`,
      input: ["a b", "c"],
    });
    expect(data.map(({ embedding }) => embedding)).toEqual([
      [0.375, 0.5],
      [0.125, 0.5],
    ]);
    expect(usage.prompt_tokens).toBe(3);
  });

  it("reasoning of Claude is sent back with its signature", async () => {
    const { content } = await anthropic.messages.create({
      model: "v1/claude-one",
      max_tokens: 50,
      messages,
    });
    await anthropic.messages.create({
      model: "v1/claude-one",
      max_tokens: 50,
      messages: [
        ...messages,
        { role: "assistant", content },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "call_x", content: "There." }],
        },
      ],
    });
    expect(fake.up.requests.at(-1)!.body.toString()).toContain('"signature":"sig-1"');
  });
});

describe("the content filter", () => {
  it("is forwarded unchanged to chat-completions clients", async () => {
    const { choices } = await openai.chat.completions.create({ model: "v1/my-gpt", messages });
    expect((choices[0] as any).content_filter_results).toEqual({
      hate: { filtered: false, severity: "safe" },
    });
    const seen: any[] = [];
    for await (const chunk of await openai.chat.completions.create({
      model: "v1/my-gpt",
      messages,
      stream: true,
    }))
      seen.push(chunk);
    expect(seen.some((chunk) => chunk.prompt_filter_results)).toBe(true);
  });

  it("is omitted in translated mode", async () => {
    const said = await anthropic.messages.create({ model: "v1/my-gpt", max_tokens: 50, messages });
    expect(JSON.stringify(said)).not.toContain("filter");
  });

  it("rejects with its categories", async () => {
    fake.next.push(filtered());
    const refused = await openai.chat.completions
      .create({ model: "v1/my-gpt", messages })
      .catch((error: any) => error);
    expect(refused).toMatchObject({ status: 400, code: "content_filter" });
    expect(JSON.stringify(refused.error)).toContain('"violence"');
    fake.next.push(filtered());
    const translated = await anthropic.messages
      .create({ model: "v1/my-gpt", max_tokens: 50, messages })
      .catch((error: any) => error);
    expect(translated).toMatchObject({ status: 400 });
  });

  it("causes a fallback if the route allows it", async () => {
    fake.next.push(filtered());
    const { choices } = await openai.chat.completions.create({ model: "guarded", messages });
    expect(choices[0]!.message.content).toBe("Grüße 🌍");
  });
});

describe("Entra ID", () => {
  it("fetches one token for concurrent requests, and a new one after a rejection", async () => {
    await using own = await mounted();
    const all = () =>
      Promise.all(Array.from({ length: 12 }, () => streamed("entra/my-gpt", clientOf(own))));
    const first = fake.minted;
    await all();
    expect(fake.minted).toBe(first + 1);
    fake.good.clear();
    await all();
    expect(fake.minted).toBe(first + 2);
  });

  it("is requested with the scope of each API", async () => {
    fake.good.clear();
    await streamed("entra/my-gpt");
    await streamed("entra/claude-one");
    expect(new Set(fake.grants)).toContain("secret https://cognitiveservices.azure.com/.default");
    expect(new Set(fake.grants)).toContain("secret https://ai.azure.com/.default");
  });

  it("accepts a managed identity and a federated workload", async () => {
    expect(await streamed("machine/my-gpt")).toBe(DUE);
    expect(await streamed("workload/my-gpt")).toBe(DUE);
    expect(fake.grants).toEqual([
      "machine https://cognitiveservices.azure.com",
      "federated https://cognitiveservices.azure.com/.default",
    ]);
  });

  it("is the gateway's error if it returns no token", async () => {
    await expect(streamed("wrong/my-gpt")).rejects.toMatchObject({ status: 502 });
    expect(rowsOf(at).map(({ state }) => state)).toEqual(["void"]);
  });
});

it("the ledger equals the fake service's bill", async () => {
  const one = fc.record({
    model: fc.constantFrom("v1/my-gpt", "legacy/my-gpt", "entra/my-gpt", "v1/claude-one"),
    stream: fc.boolean(),
    usage: fc.record({
      input: fc.nat(100_000),
      output: fc.integer({ min: 1, max: 9_000 }),
      cache_read: fc.nat(50_000),
    }),
    chunks: fc.constantFrom<Chunks>("pieces", "whole", { seed: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 5 }), async (asked) => {
      fake.up.reset();
      (at.storeCommands as unknown[]).length = 0;
      for (const { model, stream, usage, chunks } of asked) {
        fake.says = say("Hello there").usage(usage);
        fake.chunks = chunks;
        if (stream) await streamed(model);
        else await openai.chat.completions.create({ model, messages });
      }
      expect(settled(at)).toEqual(billOf(fake.up));
      expect(rowsOf(at).map(({ state }) => state)).toEqual(asked.map(() => "exact"));
    }),
    { numRuns: trialCount(20) },
  );
});
