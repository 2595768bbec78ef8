// The package in a gateway, with the fake that the vendors' SDKs have validated: responses, bills,
// and failures.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startTestGateway, say, think, type Chunks, type TestGateway } from "tollgate/testing";
import aws from "../../plugins/providers/aws/index.ts";
import {
  CLAUDE,
  fakeAws,
  KEYS,
  MODEL,
  pictureOf,
  refusing,
  REGION,
  vectorFor,
  type FakeAws,
} from "./aws-fake.ts";
import { billOf, rowsOf, settled } from "./rows.ts";
import { trialCount } from "../kit/law-effort.ts";

const CANVAS = "amazon.nova-canvas-v1:0";
const ULTRA = "stability.stable-image-ultra-v1:1";

let fake: FakeAws;
let at: TestGateway;
let openai: OpenAI;
let anthropic: Anthropic;

const yamlOf = (url: string): string => `
frontends: [chat-completions, messages, embeddings, images, rerank]
providers:
  bedrock:
    use: aws
    with:
      region: ${REGION}
      runtime_url: ${url}
      agent_url: ${url}
      access_key_id: ${KEYS.id}
      secret_access_key: ${KEYS.secret}
      betas: [context-1m-2025-08-07]
    models:
      "${MODEL}": { price: { input: "0.3", output: "2.5", cache_read: "0.075", cache_write_5m: "0.3" } }
      "${CLAUDE}": { price: { input: "3", output: "15", cache_read: "0.3", cache_write_5m: "3.75", cache_write_1h: "6" } }
      "amazon.titan-embed-text-v2:0": { price: { input: "0.02" } }
      "cohere.embed-multilingual-v3": { price: { input: "0.1" } }
      "cohere.rerank-v3-5:0": { price: { searches: "0.002" } }
      "${CANVAS}": { price: { images: "0.06" } }
      "${ULTRA}": { price: { images: "0.14" } }
  token: { use: aws, with: { region: ${REGION}, runtime_url: "${url}", api_key: bedrock-api-key } }
  ending: { use: aws, with: { region: ${REGION}, runtime_url: "${url}", access_key_id: ASIA, secret_access_key: s, session_token: t-1 } }
`;

const mounted = () => startTestGateway({ plugins: { aws }, yaml: yamlOf(fake.url) });
const clientOf = ({ url }: TestGateway) =>
  new OpenAI({ apiKey: "any", maxRetries: 0, baseURL: `${url}/v1` });

beforeAll(async () => {
  fake = await fakeAws();
  at = await mounted();
  const about = { apiKey: "any", maxRetries: 0 };
  openai = clientOf(at);
  anthropic = new Anthropic({ ...about, baseURL: at.url });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await fake[Symbol.asyncDispose]();
});
const SPEECH = think("Hm.", "sig-1")
  .say("Grüße 🌍")
  .call("go", { to: "Rome", id: 12 }, "tooluse_x")
  .usage({ input: 30, cache_read: 5, cache_write_5m: 7, output: 12 });
beforeEach(() => {
  fake.says = SPEECH;
  fake.up.reset();
  (at.storeCommands as unknown[]).length = 0;
});
afterEach(() => {
  fake.chunks = fake.bend = undefined;
  fake.next.length = 0;
});

const tools = [
  {
    type: "function" as const,
    function: {
      name: "go",
      parameters: { type: "object", properties: { to: { type: "string" } } },
    },
  },
];
const chat = (model: string, more: object = {}) => ({
  model,
  messages: [{ role: "user" as const, content: "Hello" }],
  tools,
  ...more,
});

async function streamed(model: string, client = openai): Promise<string> {
  let [text, name, args, reason, input] = ["", "", "", "", 0];
  for await (const { choices, usage } of await client.chat.completions.create({
    ...chat(model),
    stream: true as const,
    stream_options: { include_usage: true },
  })) {
    const [choice] = choices;
    text += choice?.delta.content ?? "";
    name += choice?.delta.tool_calls?.[0]?.function?.name ?? "";
    args += choice?.delta.tool_calls?.[0]?.function?.arguments ?? "";
    reason = choice?.finish_reason ?? reason;
    input = usage?.prompt_tokens ?? input;
  }
  return `${text}|${name} ${args}|${reason}|${input}`;
}
const DUE = 'Grüße 🌍|go {"to":"Rome","id":12}|tool_calls|42';

describe.each([
  ["Converse", `bedrock/${MODEL}`],
  ["InvokeModel", `bedrock/${CLAUDE}`],
  ["Converse with a bearer token", `token/${MODEL}`],
])("%s", (_name, model) => {
  it("responds non-streaming", async () => {
    const { choices, usage } = await openai.chat.completions.create(chat(model));
    const { message, finish_reason } = choices[0]!;
    expect(message.content).toBe("Grüße 🌍");
    expect(message.tool_calls).toMatchObject([{ id: "tooluse_x", function: { name: "go" } }]);
    expect([finish_reason, usage!.prompt_tokens, usage!.completion_tokens]).toEqual([
      "tool_calls",
      42,
      12,
    ]);
  });

  it.each(["pieces", "bytes", 37, { seed: 7 }] as Chunks[])(
    "streams, in pieces of %j",
    async (chunks) => {
      fake.chunks = chunks;
      expect(await streamed(model)).toBe(DUE);
    },
  );

  it("returns reasoning, and its signature is sent back to its origin", async () => {
    const body = {
      model,
      max_tokens: 2000,
      messages: [{ role: "user" as const, content: "Hello" }],
      thinking: { type: "enabled" as const, budget_tokens: 1024 },
      tools: [{ name: "go", input_schema: { type: "object" as const } }],
    };
    const { content } = await anthropic.messages.create(body);
    expect(content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
    await anthropic.messages.create({
      ...body,
      messages: [
        ...body.messages,
        { role: "assistant", content },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "tooluse_x", content: "There." }],
        },
      ],
    });
    const sent = fake.up.requests.at(-1)!.body.toString();
    expect(sent).toContain('"signature":"sig-1"');
    expect(sent).toContain("There.");
  });

  it("accepts images", async () => {
    const png =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await openai.chat.completions.create({
      model,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
          ],
        },
      ],
    });
    expect(fake.up.requests.at(-1)!.body.toString()).toContain(png);
  });

  // A failure causes a cooldown, so each of these has its own gateway.
  it("reports throttling as throttling", async () => {
    await using own = await mounted();
    fake.next.push(refusing(429, "ThrottlingException", "Too many requests."));
    await expect(clientOf(own).chat.completions.create(chat(model))).rejects.toMatchObject({
      status: 429,
    });
    expect(rowsOf(own).map(({ state }) => state)).toEqual(["void"]);
  });

  it("reports throttling in mid-stream, and the partial response is billed", async () => {
    await using own = await mounted();
    fake.says = say("Hello there").fail("Too many tokens.").usage({ input: 9, output: 1 });
    await expect(streamed(model, clientOf(own))).rejects.toThrow(/Too many tokens/);
    expect(rowsOf(own).map(({ state }) => state)).toEqual(["estimated"]);
  });

  it.each([0.2, 0.5, 0.8])("is never complete if a frame is truncated, at %f", async (share) => {
    await using own = await mounted();
    fake.bend = (answer) => {
      const length = [answer.body ?? []]
        .flat()
        .reduce((sum, piece: any) => sum + Buffer.from(piece.bytes ?? piece).length, 0);
      return { ...answer, truncation: { after: Math.floor(length * share), how: "close" } };
    };
    await expect(streamed(model, clientOf(own))).rejects.toThrow(/ended|broke|cut|closed/i);
    expect(fake.up.requests.length).toBeGreaterThan(0);
    expect(rowsOf(own).map(({ state }) => state)).not.toContain("exact");
  });
});

describe("a request to Claude in passthrough mode", () => {
  it("is sent without model and stream, and with the version and the betas in its body", async () => {
    const stream = anthropic.beta.messages.stream({
      model: `bedrock/${CLAUDE}`,
      max_tokens: 50,
      messages: [{ role: "user", content: "Hello" }],
      betas: [
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "extended-cache-ttl-2025-04-11",
        "unheard-of-2026-01-01",
      ],
      context_management: { edits: [] },
      cache_control: { type: "ephemeral", ttl: "1h" },
    });
    const { content, model } = await stream.finalMessage();
    expect(content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
    expect(model).toBe(`bedrock/${CLAUDE}`);
    const [asked] = fake.up.requests;
    expect(asked!.path).toBe(`/model/${encodeURIComponent(CLAUDE)}/invoke-with-response-stream`);
    expect(asked!.json()).toMatchObject({
      anthropic_beta: ["context-1m-2025-08-07"],
      max_tokens: 50,
    });
    // The body's part of a beta that Bedrock does not get is not sent. Bedrock needs no beta for
    // the lifetime of a cache mark.
    expect(asked!.json()).not.toHaveProperty("context_management");
    expect(asked!.json()).toMatchObject({ cache_control: { ttl: "1h" } });
    expect(asked!.json()).not.toHaveProperty("model");
    expect(asked!.json()).not.toHaveProperty("stream");
    expect(asked!.headers).not.toHaveProperty("anthropic-beta");
  });

  it("ends with its own protocol's error after a failure in mid-stream", async () => {
    fake.says = say("Hel").fail("Too many tokens.").usage({ input: 9, output: 1 });
    await using own = await mounted();
    const client = new Anthropic({ apiKey: "any", maxRetries: 0, baseURL: own.url });
    const stream = await client.messages.create({
      model: `bedrock/${CLAUDE}`,
      max_tokens: 50,
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
    });
    await expect(
      (async () => {
        for await (const _ of stream);
      })(),
    ).rejects.toThrow(/rate_limit_error/);
  });
});

it("gives the same result in both modes", async () => {
  const passthrough = await anthropic.messages.create({
    model: `bedrock/${CLAUDE}`,
    max_tokens: 50,
    messages: [{ role: "user", content: "Hello" }],
  });
  const translated = await anthropic.messages.create({
    model: `bedrock/${MODEL}`,
    max_tokens: 50,
    messages: [{ role: "user", content: "Hello" }],
  });
  expect(translated.content.map(({ type }) => type)).toEqual(
    passthrough.content.map(({ type }) => type),
  );
  expect(translated.usage.output_tokens).toBe(passthrough.usage.output_tokens);
});

describe("a wrong local clock", () => {
  it("is corrected once by the service's time, without the client's knowledge", async () => {
    fake.aheadMs = 3600_000;
    expect(await streamed(`bedrock/${MODEL}`)).toBe(DUE);
    expect(fake.up.requests).toHaveLength(2);
    expect(await streamed(`bedrock/${MODEL}`)).toBe(DUE);
    expect(fake.up.requests).toHaveLength(3);
    fake.aheadMs = 0;
    expect(await streamed(`bedrock/${MODEL}`)).toBe(DUE);
    expect(rowsOf(at).map(({ state }) => state)).toEqual(["exact", "exact", "exact"]);
  });
});

describe("an expired token", () => {
  it("is the gateway's error, and the client is not asked to authenticate", async () => {
    fake.keys.set("ASIA", { id: "ASIA", secret: "s", token: "t-1" });
    fake.over.add("t-1");
    await using own = await mounted();
    await expect(
      clientOf(own).chat.completions.create(chat(`ending/${MODEL}`)),
    ).rejects.toMatchObject({
      status: 502,
    });
    expect(rowsOf(own).map(({ state }) => state)).toEqual(["void"]);
  });
});

/**
 * A gateway whose operator has declared that AWS stores nothing. `more`: further provider options.
 */
const declared = (more = "") =>
  startTestGateway({
    plugins: { aws },
    yaml: `
frontends: [chat-completions, messages]
middleware: [door, zdr]
providers:
  bedrock:
    use: aws
    with: { region: ${REGION}, runtime_url: "${fake.url}"${more} }
    credentials: [{ name: main, with: { access_key_id: ${KEYS.id}, secret_access_key: ${KEYS.secret} }, zdr: { declared: true } }]
`,
  });

/** Asks under Service-ZDR. */
const privately = (own: TestGateway, path: string, body: object) =>
  fetch(`${own.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "service-zdr": "required" },
    body: JSON.stringify(body),
  });

describe("a guardrail in the operator's config", () => {
  const guarded = (more = "") => declared(`, guardrail: { id: blocks, version: "3" }${more}`);

  it.each([MODEL, CLAUDE])(
    "applies to every response of %s, streaming and non-streaming",
    async (model) => {
      await using own = await guarded();
      const client = clientOf(own);
      const { choices } = await client.chat.completions.create(chat(`bedrock/${model}`));
      expect([choices[0]!.finish_reason, choices[0]!.message.content]).toEqual([
        "content_filter",
        "Not here.",
      ]);
      expect(await streamed(`bedrock/${model}`, client)).toContain("Not here.|");
      for (const asked of fake.up.requests) {
        expect(asked.path).toMatch(/\/converse(-stream)?$/);
        expect(asked.json().guardrailConfig).toEqual({
          guardrailIdentifier: "blocks",
          guardrailVersion: "3",
        });
      }
      // No page states what AWS stores of blocked content.
      const refused = await privately(own, "/v1/chat/completions", {
        ...chat(`bedrock/${model}`),
        tools: undefined,
      });
      expect([refused.status, await refused.text()]).toEqual([
        400,
        expect.stringContaining("guardrailConfig"),
      ]);
      expect(fake.up.requests).toHaveLength(2);
    },
  );

  it("does not apply to models of other providers", async () => {
    await expect(guarded(', openai: ["openai.*"]')).rejects.toThrow(
      "A guardrail applies only to models that are called through Converse",
    );
  });
});

describe("Service-ZDR", () => {
  const schema = { type: "object", properties: { model: { type: "string" } }, tools: [{}] };
  const of = { messages: [{ role: "user", content: "Hello" }], max_tokens: 100 };
  const own = {
    "/v1/chat/completions": { type: "function", function: { name: "go", parameters: schema } },
    "/v1/messages": { name: "go", input_schema: schema },
  };

  it.each(
    Object.entries(own).flatMap(([path, tool]) =>
      [MODEL, CLAUDE].flatMap((model) =>
        [false, true].map((stream) => ({ path, model, stream, tool })),
      ),
    ),
  )("lets a client's own tools pass at $path to $model, stream: $stream", async (one) => {
    await using at = await declared();
    const { path, tool, stream } = one;
    const answer = await privately(at, path, {
      ...of,
      model: `bedrock/${one.model}`,
      stream,
      tools: [tool],
    });
    const said = await answer.text();
    expect([answer.status, said]).toEqual([200, expect.stringContaining('"go"')]);
    expect(fake.up.requests).toHaveLength(1);
  });
});

describe("embeddings and reranking", () => {
  it("Titan's are returned in order, with one call per text", async () => {
    const input = Array.from({ length: 20 }, (_, i) => "word ".repeat(i + 1).trim());
    const { data } = await openai.embeddings.create({
      model: "bedrock/amazon.titan-embed-text-v2:0",
      input,
      dimensions: 8,
    });
    expect(data.map(({ embedding }) => embedding)).toEqual(input.map((text) => vectorFor(text, 8)));
    expect(fake.up.requests).toHaveLength(20);
    const rows = rowsOf(at);
    expect(rows).toMatchObject([{ state: "exact", usage: { input: 210 } }]);
  });

  it("if one of them fails, there is no response, and the others are billed", async () => {
    fake.next.push(refusing(400, "ValidationException", "Too long."));
    await expect(
      openai.embeddings.create({
        model: "bedrock/amazon.titan-embed-text-v2:0",
        input: ["a", "b", "c"],
      }),
    ).rejects.toMatchObject({ status: 400 });
  });

  it("Cohere's are counted by a header", async () => {
    const input = ["two words", "one"];
    const { data, usage } = await openai.embeddings.create({
      model: "bedrock/cohere.embed-multilingual-v3",
      input,
    });
    expect(data.map(({ embedding }) => embedding)).toEqual(input.map((text) => vectorFor(text)));
    expect(usage.prompt_tokens).toBe(3);
  });

  it("documents are reranked", async () => {
    const res = await fetch(`${at.url}/v2/rerank`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer any" },
      body: JSON.stringify({
        model: "bedrock/cohere.rerank-v3-5:0",
        query: "q",
        documents: ["long one", "x"],
        top_n: 1,
      }),
    });
    expect(await res.json()).toMatchObject({ results: [{ index: 1 }] });
    expect(rowsOf(at)).toMatchObject([{ state: "exact", usage: { searches: 1 } }]);
  });
});

describe("images", () => {
  const draw = (more: object) =>
    openai.images.generate({ model: `bedrock/${CANVAS}`, prompt: "A lamp", ...more } as never);
  const sent = () => fake.up.requests.at(-1)!.json();

  it("Amazon's are requested in its own format, and billed by the number returned", async () => {
    const { data } = await draw({ n: 3, size: "1280x720", quality: "high", user: "u" });
    expect(data!.map(({ b64_json }) => b64_json)).toEqual(Array(3).fill(pictureOf(1280, 720)));
    expect(sent()).toEqual({
      taskType: "TEXT_IMAGE",
      textToImageParams: { text: "A lamp" },
      imageGenerationConfig: { width: 1280, height: 720, quality: "premium", numberOfImages: 3 },
    });
    expect(rowsOf(at)).toMatchObject([{ state: "exact", usage: { images: 3 } }]);
  });

  it("vendor fields are forwarded, and fields that must not be changed are not changed", async () => {
    await draw({
      taskType: "INPAINTING",
      textToImageParams: { negativeText: "fog", text: "another" },
      imageGenerationConfig: { cfgScale: 6.5, numberOfImages: 5 },
      seed: 7,
    });
    expect(sent()).toEqual({
      taskType: "TEXT_IMAGE",
      textToImageParams: { text: "A lamp", negativeText: "fog" },
      imageGenerationConfig: { cfgScale: 6.5, numberOfImages: 1, seed: 7 },
    });
  });

  it("if a filter blocks some images, the others are returned; if it blocks all, the request fails", async () => {
    const { data } = await draw({ n: 3, prompt: "hold 1" });
    expect(data).toHaveLength(2);
    expect(rowsOf(at)).toMatchObject([{ state: "exact", usage: { images: 2 } }]);
    for (const prompt of ["hold 2", "unfit"])
      await expect(draw({ n: 2, prompt })).rejects.toMatchObject({
        status: 400,
        code: "moderation_blocked",
      });
  });

  it("Stability's use an aspect ratio in place of a size", async () => {
    const model = `bedrock/${ULTRA}`;
    const { data } = await draw({ model, size: "1792x1024", negative_prompt: "fog" });
    expect(data![0]!.b64_json).toBe(pictureOf(16 * 64, 9 * 64));
    expect(sent()).toEqual({ prompt: "A lamp", aspect_ratio: "16:9", negative_prompt: "fog" });
    expect(rowsOf(at)).toMatchObject([{ state: "exact", usage: { images: 1 } }]);
    const refused = (prompt: string) => draw({ model, prompt });
    await expect(refused("unfit")).rejects.toMatchObject({ code: "moderation_blocked" });
    await expect(refused("broken")).rejects.toMatchObject({ status: 502 });
  });

  it("unsupported options are rejected before anything is sent", async () => {
    const model = `bedrock/${ULTRA}`;
    await expect(draw({ model, n: 2 })).rejects.toMatchObject({ status: 400, param: "n" });
    await expect(draw({ size: "wide" })).rejects.toMatchObject({ status: 400, param: "size" });
    expect(fake.up.requests).toEqual([]);
  });
});

describe("money", () => {
  it("the ledger equals the fake service's bill, for any request and any chunks", async () => {
    const one = fc.record({
      what: fc.constantFrom(
        "whole",
        "stream",
        "passthrough",
        "titan",
        "cohere",
        "canvas",
        "rerank",
      ),
      model: fc.constantFrom(MODEL, CLAUDE),
      usage: fc.record({
        input: fc.nat(100_000),
        output: fc.integer({ min: 1, max: 9_000 }),
        cache_read: fc.nat(50_000),
        cache_write_5m: fc.nat(9_000),
      }),
      chunks: fc.constantFrom<Chunks>("pieces", "whole", 37, { seed: 3 }),
      words: fc.integer({ min: 1, max: 9 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 6 }), async (asked) => {
        fake.up.reset();
        (at.storeCommands as unknown[]).length = 0;
        for (const { what, model, usage, chunks, words } of asked) {
          fake.says = say("Hello there").usage(usage);
          fake.chunks = chunks;
          const text = "word ".repeat(words).trim();
          if (what === "whole") await openai.chat.completions.create(chat(`bedrock/${model}`));
          else if (what === "stream") await streamed(`bedrock/${model}`);
          else if (what === "passthrough")
            await anthropic.messages.create({
              model: `bedrock/${model}`,
              max_tokens: 9_000,
              messages: [{ role: "user", content: text }],
            });
          else if (what === "canvas")
            await openai.images.generate({
              model: `bedrock/${CANVAS}`,
              prompt: "hold 1",
              n: 2 + (words % 4),
            });
          else if (what === "rerank")
            await (
              await fetch(`${at.url}/v2/rerank`, {
                method: "POST",
                headers: { "content-type": "application/json" },
                body: JSON.stringify({
                  model: "bedrock/cohere.rerank-v3-5:0",
                  query: "q",
                  documents: Array.from({ length: words * 40 }, () => text),
                }),
              })
            ).arrayBuffer();
          else
            await openai.embeddings.create({
              model:
                what === "titan"
                  ? "bedrock/amazon.titan-embed-text-v2:0"
                  : "bedrock/cohere.embed-multilingual-v3",
              input: [text, text],
            });
        }
        expect(settled(at)).toEqual(billOf(fake.up));
        expect(rowsOf(at).map(({ state }) => state)).toEqual(asked.map(() => "exact"));
      }),
      { numRuns: trialCount(25) },
    );
  });
});
