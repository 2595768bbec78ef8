// The vendors' SDKs validate the fake: our package may be tested with what they accept and read.
import AnthropicBedrock from "@anthropic-ai/bedrock-sdk";
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  CountTokensCommand,
  InvokeModelCommand,
} from "@aws-sdk/client-bedrock-runtime";
import { BedrockAgentRuntimeClient, RerankCommand } from "@aws-sdk/client-bedrock-agent-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { say, think } from "tollgate/testing";
import {
  CLAUDE,
  fakeAws,
  KEYS,
  MODEL,
  refusing,
  REGION,
  vectorFor,
  type FakeAws,
} from "./aws-fake.ts";

let fake: FakeAws;
let client: BedrockRuntimeClient;
const about = () => ({
  region: REGION,
  endpoint: fake.url,
  maxAttempts: 1,
  requestHandler: new NodeHttpHandler(),
  credentials: { accessKeyId: KEYS.id, secretAccessKey: KEYS.secret },
});

beforeAll(async () => {
  fake = await fakeAws();
  client = new BedrockRuntimeClient(about());
});
afterAll(async () => {
  client.destroy();
  await fake[Symbol.asyncDispose]();
});
beforeEach(() => {
  fake.says = think("Hm.", "sig-1")
    .say("Grüße 🌍")
    .call("go", { to: "Rome" }, "tooluse_x")
    .usage({ input: 30, cache_read: 5, cache_write_5m: 7, output: 12 });
});

const ask = {
  modelId: MODEL,
  messages: [{ role: "user" as const, content: [{ text: "Hello" }] }],
};

describe("AWS's own SDK", () => {
  it("reads a non-streaming Converse response", async () => {
    const { output, stopReason, usage } = await client.send(new ConverseCommand(ask));
    expect(output!.message!.content).toEqual([
      { reasoningContent: { reasoningText: { text: "Hm.", signature: "sig-1" } } },
      { text: "Grüße 🌍" },
      { toolUse: { toolUseId: "tooluse_x", name: "go", input: { to: "Rome" } } },
    ]);
    expect([stopReason, usage!.inputTokens, usage!.outputTokens]).toEqual(["tool_use", 30, 12]);
  });

  it.each(["pieces", "bytes", 37] as const)("reads Converse's frames, in %s", async (chunks) => {
    fake.chunks = chunks;
    const { stream } = await client.send(new ConverseStreamCommand(ask));
    let [text, args] = ["", ""];
    let last: unknown;
    for await (const each of stream!) {
      const delta = each.contentBlockDelta?.delta;
      text += delta?.text ?? "";
      args += delta?.toolUse?.input ?? "";
      last = each;
    }
    fake.chunks = undefined;
    expect([text, args]).toEqual(["Grüße 🌍", '{"to":"Rome"}']);
    expect(last).toMatchObject({
      metadata: { usage: { inputTokens: 30, cacheReadInputTokens: 5 } },
    });
  });

  it("sends a guardrail as the gateway does, and reads its intervention", async () => {
    const guardrailConfig = { guardrailIdentifier: "blocks", guardrailVersion: "3" };
    const { stopReason } = await client.send(new ConverseCommand({ ...ask, guardrailConfig }));
    expect(stopReason).toBe("guardrail_intervened");
    expect(fake.up.requests.at(-1)!.json().guardrailConfig).toEqual(guardrailConfig);
  });

  it("recognizes each error by its name", async () => {
    for (const [status, name] of [
      [429, "ThrottlingException"],
      [403, "AccessDeniedException"],
      [400, "ValidationException"],
      [424, "ModelErrorException"],
      [503, "ServiceUnavailableException"],
    ] as const) {
      fake.next.push(refusing(status, name, "No."));
      await expect(client.send(new ConverseCommand(ask))).rejects.toMatchObject({
        name,
        message: "No.",
      });
    }
  });

  it("recognizes an exception in the middle of a stream", async () => {
    fake.says = say("Hel").fail("Too many requests.");
    const { stream } = await client.send(new ConverseStreamCommand(ask));
    const reading = (async () => {
      for await (const _ of stream!);
    })();
    await expect(reading).rejects.toMatchObject({ name: "ThrottlingException" });
  });

  it("reads the counts of CountTokens and the embeddings of InvokeModel", async () => {
    const counted = await client.send(
      new CountTokensCommand({ modelId: MODEL, input: { converse: { messages: ask.messages } } }),
    );
    expect(counted.inputTokens).toBeGreaterThan(0);
    const { body } = await client.send(
      new InvokeModelCommand({
        modelId: "amazon.titan-embed-text-v2:0",
        body: JSON.stringify({ inputText: "two words", dimensions: 8 }),
      }),
    );
    expect(JSON.parse(body.transformToString())).toEqual({
      embedding: vectorFor("two words", 8),
      inputTextTokenCount: 2,
    });
  });

  it("reranks", async () => {
    const agent = new BedrockAgentRuntimeClient(about() as never);
    const { results } = await agent.send(
      new RerankCommand({
        queries: [{ type: "TEXT", textQuery: { text: "q" } }],
        sources: ["a long one", "a"].map((text) => ({
          type: "INLINE",
          inlineDocumentSource: { type: "TEXT", textDocument: { text } },
        })),
        rerankingConfiguration: {
          type: "BEDROCK_RERANKING_MODEL",
          bedrockRerankingConfiguration: {
            modelConfiguration: {
              modelArn: `arn:aws:bedrock:${REGION}::foundation-model/cohere.rerank-v3-5:0`,
            },
            numberOfResults: 1,
          },
        },
      }),
    );
    expect(results!.map(({ index }) => index)).toEqual([1]);
    agent.destroy();
  });

  it("is rejected with a wrong secret, an expired token, and a wrong clock", async () => {
    const wrong = new BedrockRuntimeClient({
      ...about(),
      credentials: { accessKeyId: KEYS.id, secretAccessKey: "another" },
    });
    await expect(wrong.send(new ConverseCommand(ask))).rejects.toMatchObject({
      name: "InvalidSignatureException",
    });
    fake.keys.set("ASIA", { id: "ASIA", secret: "s", token: "t-1" });
    fake.over.add("t-1");
    const over = new BedrockRuntimeClient({
      ...about(),
      credentials: { accessKeyId: "ASIA", secretAccessKey: "s", sessionToken: "t-1" },
    });
    await expect(over.send(new ConverseCommand(ask))).rejects.toMatchObject({
      name: "ExpiredTokenException",
    });
    fake.aheadMs = 3600_000;
    const late = new BedrockRuntimeClient(about());
    await expect(late.send(new ConverseCommand(ask))).rejects.toMatchObject({
      name: "InvalidSignatureException",
    });
    fake.aheadMs = 0;
  });
});

describe("Anthropic's SDK for Bedrock", () => {
  const bedrock = () =>
    new AnthropicBedrock({
      awsRegion: REGION,
      awsAccessKey: KEYS.id,
      awsSecretKey: KEYS.secret,
      baseURL: fake.url,
      maxRetries: 0,
    });
  const asked = {
    model: CLAUDE,
    max_tokens: 100,
    messages: [{ role: "user" as const, content: "Hello" }],
  };

  it("reads Claude responses, streaming and non-streaming", async () => {
    const whole = await bedrock().messages.create(asked);
    expect(whole.content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
    expect(whole.usage.output_tokens).toBe(12);
    let text = "";
    for await (const each of await bedrock().messages.create({ ...asked, stream: true }))
      if (each.type === "content_block_delta" && each.delta.type === "text_delta")
        text += each.delta.text;
    expect(text).toBe("Grüße 🌍");
  });
});
