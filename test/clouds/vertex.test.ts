// The vendors' SDKs validate the fake. Then the package is tested in a gateway with that fake.
import Anthropic from "@anthropic-ai/sdk";
import { AnthropicVertex } from "@anthropic-ai/vertex-sdk";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { JWT } from "google-auth-library";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  startTestGateway,
  jsonResponse,
  say,
  think,
  type Chunks,
  type TestGateway,
} from "tollgate/testing";
import vertex from "../../plugins/providers/vertex/index.ts";
import {
  ACCOUNT,
  EMAIL,
  fakeGoogle,
  federated,
  PEM,
  throttled,
  vectorFor,
  type FakeGoogle,
} from "./google-fake.ts";
import { billOf, rowsOf, settled } from "./rows.ts";
import { trialCount } from "../kit/law-effort.ts";

const CLAUDE = "claude-sonnet-4-5@20250929";
const GEMINI = "gemini-3-pro-preview";
const VECTORS = "text-embedding-005";
const LLAMA = "meta/llama-4-maverick-17b-128e-instruct-maas";

let fake: FakeGoogle;
let at: TestGateway;
let openai: OpenAI;
let anthropic: Anthropic;

const mounted = () => {
  const reached = `project: my-project, base_url: "${fake.url}", token_url: "${fake.url}/token"`;
  return startTestGateway({
    plugins: { vertex },
    env: { ACCOUNT_KEY: ACCOUNT },
    yaml: `
frontends: [chat-completions, messages, gemini, embeddings]
providers:
  vertex:
    use: vertex
    with: { ${reached}, service_account: "\${env:ACCOUNT_KEY}" }
    models:
      "${CLAUDE}": { price: { input: "3", output: "15", cache_read: "0.3", cache_write_5m: "3.75" } }
      "${GEMINI}": { price: { input: "2", output: "12", cache_read: "0.2" } }
      "${VECTORS}": { price: { input: "0.1" } }
      "${LLAMA}": { price: { input: "0.35", output: "1.15", cache_read: "0.1" } }
  anew: { use: vertex, with: { ${reached}, location: eu, service_account: "\${env:ACCOUNT_KEY}" } }
  adc: { use: vertex, with: { ${reached}, from: adc } }
  express: { use: vertex, with: { base_url: "${fake.url}", api_key: express-key } }
`,
  });
};
const clientOf = ({ url }: TestGateway) =>
  new OpenAI({ apiKey: "any", maxRetries: 0, baseURL: `${url}/v1` });

const folder = mkdtempSync(join(tmpdir(), "tollgate-google-"));

beforeAll(async () => {
  fake = await fakeGoogle();
  // A federated workload: the library finds it without contacting a machine.
  const file = join(folder, "subject");
  writeFileSync(file, "federated-1");
  const account = join(folder, "account.json");
  writeFileSync(account, JSON.stringify(federated(fake, file)));
  process.env["GOOGLE_APPLICATION_CREDENTIALS"] = account;
  // Otherwise the library would request it from Google.
  process.env["GOOGLE_CLOUD_PROJECT"] = "my-project";
  at = await mounted();
  const about = { apiKey: "any", maxRetries: 0 };
  openai = clientOf(at);
  anthropic = new Anthropic({ ...about, baseURL: at.url });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await fake[Symbol.asyncDispose]();
  delete process.env["GOOGLE_APPLICATION_CREDENTIALS"];
  delete process.env["GOOGLE_CLOUD_PROJECT"];
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  fake.says = think("Hm.", "c2ln")
    .say("Grüße 🌍")
    .call("go", { to: "Rome" }, "call_x")
    .usage({ input: 30, cache_read: 5, output: 12, reasoning: 3 });
  fake.up.reset();
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
  it("google-auth-library gets a token with the same account", async () => {
    const client = new JWT({
      email: EMAIL,
      key: PEM,
      keyId: "key-1",
      scopes: ["https://www.googleapis.com/auth/cloud-platform"],
      transporterOptions: {
        fetchImplementation: ((url: URL | string, init: object) =>
          fetch(String(url).replace(/^https:\/\/[^/]*/, fake.url), init)) as typeof fetch,
      },
    });
    const { token } = await client.getAccessToken();
    expect(fake.good.has(token!)).toBe(true);
  });

  it("Anthropic's SDK for Vertex calls it, streams, and counts tokens", async () => {
    fake.good.add("judge");
    const authClient = {
      getRequestHeaders: async () => new Headers({ authorization: "Bearer judge" }),
    };
    const client = new AnthropicVertex({
      authClient: authClient as never,
      projectId: "my-project",
      region: "global",
      baseURL: `${fake.url}/v1`,
      maxRetries: 0,
    });
    const asked = { model: CLAUDE, max_tokens: 50, messages };
    const { content } = await client.messages.create(asked);
    expect(content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
    const stream = client.messages.stream(asked);
    expect((await stream.finalMessage()).usage.output_tokens).toBe(12);
    expect(
      (await client.messages.countTokens({ model: CLAUDE, messages })).input_tokens,
    ).toBeGreaterThan(0);
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
  ["Claude", `vertex/${CLAUDE}`],
  ["Gemini", `vertex/${GEMINI}`],
  ["a partner's model", `vertex/${LLAMA}`],
])("%s", (_name, model) => {
  it("responds non-streaming", async () => {
    const { choices, usage } = await openai.chat.completions.create({ model, messages, tools });
    expect(choices[0]!.message.content).toBe("Grüße 🌍");
    expect(choices[0]!.message.tool_calls).toMatchObject([{ function: { name: "go" } }]);
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

describe("Claude in its own protocol", () => {
  it("is sent without a model, with Vertex's version, and with betas as a header; reasoning is sent back", async () => {
    const asked = { model: `vertex/${CLAUDE}`, max_tokens: 50, messages };
    const { content } = await anthropic.beta.messages
      .stream({ ...asked, betas: ["some-beta-2026-01-01"] })
      .finalMessage();
    const [, sent] = [0, fake.up.requests.at(-1)!];
    expect(sent.path).toBe(
      `/v1/projects/my-project/locations/global/publishers/anthropic/models/${CLAUDE}:streamRawPredict`,
    );
    expect(sent.headers["anthropic-beta"]).toBe("some-beta-2026-01-01");
    expect(sent.json()).not.toHaveProperty("model");
    expect(sent.json().anthropic_version).toMatch(/^vertex-|^20/);
    await anthropic.messages.create({
      ...asked,
      messages: [
        ...messages,
        { role: "assistant", content: content as never },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "call_x", content: "There." }],
        },
      ],
    });
    expect(fake.up.requests.at(-1)!.body.toString()).toContain('"signature":"c2ln"');
  });

  it("is counted by the service under the model's name", async () => {
    const { input_tokens } = await anthropic.messages.countTokens({
      model: `vertex/${CLAUDE}`,
      messages,
    });
    const asked = fake.up.requests.at(-1)!;
    expect(asked.path).toMatch(/publishers\/anthropic\/models\/count-tokens:rawPredict$/);
    expect(asked.json().model).toBe(CLAUDE);
    expect(input_tokens).toBe(asked.body.length);
  });
});

describe("Gemini in its own protocol", () => {
  it("is forwarded unchanged, streaming and non-streaming, and counted", async () => {
    const ask = (verb: string) =>
      fetch(`${at.url}/v1beta/models/vertex/${GEMINI}:${verb}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-goog-api-key": "any" },
        body: JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Hello" }] }] }),
      });
    const whole = (await (await ask("generateContent")).json()) as any;
    expect(whole.candidates[0].content.parts.map((part: any) => part.text)).toContain("Grüße 🌍");
    expect(await (await ask("streamGenerateContent?alt=sse")).text()).toContain("functionCall");
    expect(await (await ask("countTokens")).json()).toEqual({ totalTokens: 7 });
    expect(fake.up.requests.at(-1)!.json()).toHaveProperty("contents");
  });

  it("accepts an express key without a project", async () => {
    const { choices } = await openai.chat.completions.create({
      model: `express/${GEMINI}`,
      messages,
    });
    expect(choices[0]!.message.content).toBe("Grüße 🌍");
    expect(fake.up.requests.at(-1)!.path).toBe(
      `/v1/publishers/google/models/${GEMINI}:generateContent`,
    );
  });
});

describe("embeddings", () => {
  it.each(["float", "base64"] as const)(
    "of several texts are returned in order, as %s",
    async (form) => {
      const input = ["two words", "one", "and three words"];
      const { data, usage } = await openai.embeddings.create({
        model: `vertex/${VECTORS}`,
        input,
        dimensions: 4,
        encoding_format: form,
      });
      const made = data.map(({ embedding }) =>
        typeof embedding === "string"
          ? [...new Float32Array(Uint8Array.from(Buffer.from(embedding, "base64")).buffer)]
          : embedding,
      );
      expect(made).toEqual(input.map((text) => vectorFor(text, 4)));
      expect(usage.prompt_tokens).toBe(6);
      const asked = fake.up.requests.at(-1)!;
      expect(asked.path).toMatch(/publishers\/google\/models\/text-embedding-005:predict$/);
      expect(asked.json()).toEqual({
        instances: input.map((content) => ({ content })),
        parameters: { outputDimensionality: 4 },
      });
      expect(settled(at)).toEqual(billOf(fake.up));
      expect(rowsOf(at).map(({ state }) => state)).toEqual(["exact"]);
    },
  );

  it("state their purpose in Google's terms, and a text that is too long is truncated or rejected", async () => {
    const ask = (more: object) =>
      openai.embeddings.create({ model: `vertex/${VECTORS}`, input: "Hello", ...more } as never);
    await ask({ input_type: "query" });
    expect(fake.up.requests.at(-1)!.json().instances).toEqual([
      { content: "Hello", task_type: "RETRIEVAL_QUERY" },
    ]);
  });

  it("of Gemini's own model are requested one at a time, and several are rejected before they are sent", async () => {
    const model = "vertex/gemini-embedding-001";
    const { data } = await openai.embeddings.create({ model, input: "one text" });
    expect(data).toHaveLength(1);
    fake.up.reset();
    await expect(openai.embeddings.create({ model, input: ["a", "b"] })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("accepts one text per request"),
    });
    expect(fake.up.requests).toEqual([]);
  });

  it("that are missing or have another width are an error", async () => {
    const predictions = [{ embeddings: { values: [1, 2], statistics: { token_count: 1 } } }];
    for (const body of [{ predictions }, { predictions: [] }, { predictions: [{}] }, {}]) {
      await using own = await mounted();
      // It is called again, with the same result.
      fake.next.push(...Array.from({ length: 4 }, () => jsonResponse(body as never)));
      await expect(
        clientOf(own).embeddings.create({
          model: `vertex/${VECTORS}`,
          input: "Hello",
          dimensions: 4,
        }),
      ).rejects.toMatchObject({ status: 502 });
      fake.next.length = 0;
    }
  });
});

describe("tokens", () => {
  it("are fetched once for concurrent requests, and again after the service rejects them", async () => {
    const all = (client?: OpenAI) =>
      Promise.all(Array.from({ length: 12 }, () => streamed(`vertex/${CLAUDE}`, client)));
    await using own = await mounted();
    const first = fake.minted;
    await all(clientOf(own));
    expect(fake.minted).toBe(first + 1);
    fake.good.clear();
    await all(clientOf(own));
    expect(fake.minted).toBe(first + 2);
    expect(rowsOf(own).map(({ state }) => state)).toEqual(
      Array.from({ length: 24 }, () => "exact"),
    );
  });

  it("are fetched with the service's time if the local clock is wrong", async () => {
    fake.good.clear();
    fake.aheadMs = -7200_000;
    expect(await streamed(`vertex/${CLAUDE}`)).toBe(DUE);
    fake.aheadMs = 0;
    fake.good.clear();
    expect(await streamed(`vertex/${CLAUDE}`)).toBe(DUE);
  });

  it("that cannot be fetched are the gateway's error", async () => {
    await using own = await mounted();
    fake.good.clear();
    fake.denies = true;
    await expect(streamed(`anew/${CLAUDE}`, clientOf(own))).rejects.toMatchObject({ status: 502 });
    fake.denies = false;
    expect(rowsOf(own).map(({ state }) => state)).toEqual(["void"]);
  });

  it("come from the machine's own credentials through Google's library", async () => {
    expect(await streamed(`adc/${CLAUDE}`)).toBe(DUE);
    expect(fake.exchanged).toBe(1);
    fake.good.clear();
    expect(await streamed(`adc/${CLAUDE}`)).toBe(DUE);
  });
});

it("the ledger equals the fake service's bill", async () => {
  const one = fc.record({
    model: fc.constantFrom(CLAUDE, GEMINI, LLAMA),
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
        if (stream) await streamed(`vertex/${model}`);
        else await openai.chat.completions.create({ model: `vertex/${model}`, messages });
      }
      expect(settled(at)).toEqual(billOf(fake.up));
      expect(rowsOf(at).map(({ state }) => state)).toEqual(asked.map(() => "exact"));
    }),
    { numRuns: trialCount(20) },
  );
});
