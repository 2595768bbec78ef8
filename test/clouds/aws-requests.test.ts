// Requests of our codec to Converse: the vendor's own SDK writes the same, so it knows every
// member, and each is on the allowlist, so all of it may be sent under Service-ZDR.
import { BedrockRuntimeClient, ConverseCommand } from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ChatRequest, JsonObject, Protocol } from "tollgate/plugin";
import {
  mergeAllowlist,
  parseAllowances,
  findDisallowedField,
} from "tollgate/protocols/references";
import { createCallContext, createOutgoing } from "tollgate/testing";
import { bedrockClaude } from "../../plugins/providers/aws/claude.ts";
import { converse } from "../../plugins/providers/aws/converse/index.ts";
import { bedrockRerank } from "../../plugins/providers/aws/rerank.ts";
import { fakeAws, KEYS, MODEL, REGION, type FakeAws } from "./aws-fake.ts";

const PNG = Buffer.from("png").toString("base64");
const cache = { type: "ephemeral", ttl: "1h" };
const base: ChatRequest = {
  operation: "chat",
  model: MODEL,
  stream: false,
  instructions: [{ type: "text", text: "Be brief.", cache }],
  turns: [
    {
      role: "user",
      blocks: [
        { type: "text", text: "Hello" },
        { type: "image", media: { mime: "image/png", base64: PNG } },
        {
          type: "document",
          media: { mime: "application/pdf", base64: PNG },
          title: "A file, (1).pdf",
          context: "c",
          cite: true,
        },
        { type: "video", media: { mime: "video/mp4", base64: PNG } },
        { type: "audio", media: { mime: "audio/mpeg", base64: PNG }, cache },
      ],
    },
    {
      role: "assistant",
      blocks: [
        {
          type: "reasoning",
          text: "Hm.",
          proof: { origin: "converse", kind: "signature", data: "sig" },
        },
        { type: "reasoning", proof: { origin: "converse", kind: "redacted", data: PNG } },
        {
          type: "reasoning",
          text: "Not mine.",
          proof: { origin: "gemini", kind: "part", data: "x" },
        },
        {
          type: "call",
          id: "call 1",
          name: "look.up",
          tool: "function",
          args: '{"id":12345678901234567890}',
        },
      ],
    },
    {
      role: "tool",
      blocks: [
        {
          type: "result",
          callId: "call 1",
          isError: true,
          blocks: [
            { type: "text", text: "No." },
            { type: "image", media: { mime: "image/jpeg", base64: PNG } },
          ],
        },
      ],
    },
  ],
  tools: [
    {
      type: "function",
      name: "look.up",
      description: "d",
      schema: { type: "object", properties: {} },
      strict: true,
      cache,
    },
    { type: "custom", name: "free" },
  ],
  toolChoice: { names: ["look.up"], must: true },
  output: {
    maxTokens: 100,
    stop: ["END"],
    format: { type: "schema", schema: { type: "object" }, name: "n", description: "d" },
  },
  sampling: { temperature: 0.5, topP: 0.9 },
  reasoning: { mode: "effort", effort: "high" },
  tier: "flex",
  state: {},
  rest: {},
  ext: {},
};

const cases: readonly (readonly [string, ChatRequest])[] = [
  ["everything", base],
  ["tools of the history alone", { ...base, tools: [], toolChoice: undefined }],
  ["any tool", { ...base, toolChoice: "required" }],
  ["no tool", { ...base, toolChoice: "none" }],
  ["JSON by instruction", { ...base, output: { format: { type: "json" } } }],
  [
    "little",
    {
      ...base,
      instructions: [],
      tools: [],
      toolChoice: undefined,
      turns: [base.turns[0]!],
      output: {},
      sampling: {},
      reasoning: { mode: "auto" },
      tier: undefined,
    },
  ],
];

const asked = (r: ChatRequest, op: "generate" | "count" = "generate") =>
  converse().client!.encodeRequest(
    r,
    createCallContext({ actionType: op, model: MODEL }),
  ) as JsonObject;

let fake: FakeAws;
let client: BedrockRuntimeClient;
beforeAll(async () => {
  fake = await fakeAws();
  client = new BedrockRuntimeClient({
    region: REGION,
    endpoint: fake.url,
    maxAttempts: 1,
    requestHandler: new NodeHttpHandler(),
    credentials: { accessKeyId: KEYS.id, secretAccessKey: KEYS.secret },
  });
});
afterAll(async () => {
  client.destroy();
  await fake[Symbol.asyncDispose]();
});

/** Bytes in the SDK's form. */
const handed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(handed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      name === "bytes" || name === "redactedContent"
        ? Buffer.from(String(inner), "base64")
        : handed(inner),
    ]),
  );
};

describe.each(cases)("%s", (_name, r) => {
  it("is what the vendor's SDK would write, and the SDK knows every member", async () => {
    const ours = JSON.parse(JSON.stringify(asked(r)));
    await client.send(
      new ConverseCommand({ modelId: MODEL, ...(handed(ours) as object) } as never),
    );
    expect(fake.up.requests.at(-1)!.json()).toEqual(ours);
  });

  it("is allowed under Service-ZDR, for responses and for token counts", () => {
    for (const op of ["generate", "count"] as const)
      expect(
        findDisallowedField(
          asked(r, op),
          mergeAllowlist(converse().zdrAllowedFields!),
          parseAllowances([]),
        ),
      ).toBeUndefined();
  });
});

it("a member that is not on the allowlist is not sent", () => {
  const body = { ...asked(base), guardrailConfig: { guardrailIdentifier: "x" } };
  expect(
    findDisallowedField(body, mergeAllowlist(converse().zdrAllowedFields!), parseAllowances([]))
      ?.path,
  ).toBe("guardrailConfig");
});

it("the complete body is allowed for Claude and for reranking", () => {
  const protocol = bedrockClaude(["some-beta"]) as Protocol<"chat">;
  const of = createCallContext({ model: "anthropic.claude-opus-4-6" });
  const r = {
    ...base,
    turns: [{ role: "user" as const, blocks: [{ type: "text" as const, text: "Hello" }] }],
  };
  const out = createOutgoing(protocol.client!.encodeRequest(r, of) as never, {
    path: "/",
    headers: { "anthropic-beta": "some-beta,another" },
  });
  protocol.client!.prepare!(out, of);
  expect(out.body).toMatchObject({
    anthropic_beta: ["some-beta"],
    anthropic_version: "bedrock-2023-05-31",
  });
  expect(
    findDisallowedField(
      out.body as never,
      mergeAllowlist(protocol.zdrAllowedFields!),
      parseAllowances([]),
    ),
  ).toBeUndefined();
  const ranking = bedrockRerank((model) => `arn:${model}`);
  const body = ranking.client!.encodeRequest(
    {
      operation: "rerank",
      model: "m",
      stream: false,
      query: "q",
      documents: ["a", { text: "b" }, { title: "c" }],
      topN: 9,
      rest: {},
      ext: {},
    },
    createCallContext(),
  );
  expect(
    findDisallowedField(
      body as never,
      mergeAllowlist(ranking.zdrAllowedFields!),
      parseAllowances([]),
    ),
  ).toBeUndefined();
});

it("digits of an argument are preserved", () => {
  const text = JSON.stringify(asked(base));
  expect(text).toContain('"input":{"id":12345678901234567890}');
});

it("fields without an equivalent in Converse are reported or rejected", () => {
  const of = createCallContext({ model: MODEL });
  converse().client!.encodeRequest(
    {
      ...base,
      sampling: {
        seed: 1,
        topK: 5,
        presence: 1,
        frequency: 1,
        temperature: 2,
        logitBias: { a: 1 },
      },
      metadata: { a: "b" },
      user: "u",
      parallelToolCalls: false,
      reasoning: { mode: "off" },
      tier: "unheard-of",
    },
    of,
  );
  expect(of.losses.map(({ field }) => field).toSorted()).toEqual(
    [
      "frequency_penalty",
      "logit_bias",
      "metadata",
      "parallel_tool_calls",
      "presence_penalty",
      "reasoning",
      "seed",
      "service_tier",
      "temperature",
      "tools.custom",
      "top_k",
      "user",
    ].toSorted(),
  );
  for (const sampling of [{ n: 2 }, { logprobs: 1 }])
    expect(() => asked({ ...base, sampling })).toThrow();
  const far = { type: "image" as const, media: { url: "https://x/y.png" } };
  expect(() => asked({ ...base, turns: [{ role: "user", blocks: [far] }] })).toThrow(/by URL/);
});
