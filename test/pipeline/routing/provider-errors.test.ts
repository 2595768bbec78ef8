// With one candidate, an error is the provider's: its status, its `retry-after`, its message. This
// holds for the first failure and for the hundredth, in every protocol, streaming and
// non-streaming, in both modes. No earlier failure makes a later request fail.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  jsonResponse,
  say,
  startGateway,
  type ScriptedResponse,
  type StartedGateway,
  type UpstreamRequest,
} from "tollgate/testing";
import { everyNth, NIGHTLY } from "../../kit/law-effort.ts";

const WORDS = "the reactor is being refueled";
/** The provider's next responses. Empty: it works. */
let failures: ScriptedResponse[] = [];
let at: StartedGateway;
beforeAll(async () => {
  const works = (asked: UpstreamRequest): ScriptedResponse =>
    asked.path.includes("enerateContent")
      ? gemini(asked.path.includes("stream"))
      : say("Hello").usage({ input: 7, output: 2 }).toResponse(asked);
  at = await startGateway({
    upstream: {
      "GET /*": jsonResponse({ object: "list", data: [{ id: "m", object: "model" }] }),
      "POST /*": (asked) => failures.shift() ?? works(asked),
    },
    config: {
      frontends: ["chat-completions", "messages", "responses", "gemini"],
      retries: { per_target: 1 },
      providers: {
        chat: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1", api_key: "c" } },
        messages: {
          use: "anthropic-compatible",
          with: { base_url: "${env:UPSTREAM}/v1", api_key: "c" },
        },
        responses: {
          use: "openai",
          with: { base_url: "${env:UPSTREAM}/v1", api_key: "c" },
          models: { m: { protocols: ["responses"] } },
        },
        gemini: { use: "google", with: { base_url: "${env:UPSTREAM}", api_key: "c" } },
      },
    },
  });
});
afterAll(() => at?.[Symbol.asyncDispose]());

function gemini(stream: boolean): ScriptedResponse {
  const answer = {
    candidates: [
      { index: 0, content: { role: "model", parts: [{ text: "Hello" }] }, finishReason: "STOP" },
    ],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
  };
  return stream
    ? {
        headers: { "content-type": "text/event-stream" },
        body: `data: ${JSON.stringify(answer)}\n\n`,
      }
    : jsonResponse(answer);
}

const user = [{ role: "user", content: "Hi" }];
type Request = (model: string, stream: boolean) => readonly [path: string, body: object];
const CLIENTS: Readonly<Record<string, Request>> = {
  chat: (model, stream) => ["/v1/chat/completions", { model, stream, messages: user }],
  messages: (model, stream) => ["/v1/messages", { model, stream, max_tokens: 9, messages: user }],
  responses: (model, stream) => ["/v1/responses", { model, stream, input: "Hi" }],
  gemini: (model, stream) => [
    `/v1beta/models/${encodeURIComponent(model)}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
  ],
};

async function post([path, body]: readonly [string, object]) {
  const res = await fetch(`${at.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      authorization: "Bearer k",
      "x-api-key": "k",
      "x-goog-api-key": "k",
    },
    body: JSON.stringify(body),
  });
  return { status: res.status, retryAfter: res.headers.get("retry-after"), text: await res.text() };
}

const failure = (status: number, retryAfter?: string): ScriptedResponse => ({
  ...jsonResponse(
    { type: "error", error: { message: WORDS, type: "some_error", code: "some_code" } },
    status,
  ),
  ...(retryAfter !== undefined && {
    headers: { "content-type": "application/json", "retry-after": retryAfter },
  }),
});
const FAILURES: readonly (readonly [status: number, retryAfter: string | null])[] = [
  [400, null],
  [404, null],
  [413, null],
  [422, null],
  [429, null],
  [429, "7"],
  [500, null],
  [502, null],
  [503, null],
  [503, "3"],
  [504, null],
  [529, null],
];
const PAIRS = Object.keys(CLIENTS)
  .flatMap((client) =>
    Object.keys(CLIENTS).flatMap((provider) =>
      [false, true].map((stream) => ({ client, provider, stream })),
    ),
  )
  .map((pair, column) => ({ ...pair, column }));

describe.each(PAIRS)("a client of $client, a provider of $provider, stream: $stream", (pair) => {
  const request = CLIENTS[pair.client]!(`${pair.provider}/m`, pair.stream);

  it.each(everyNth(3, FAILURES, pair.column))(
    "status %i, retry-after %s",
    async (status, retryAfter) => {
      failures = [failure(status, retryAfter ?? undefined)];
      const answer = await post(request);
      expect(answer).toMatchObject({ status, retryAfter });
      expect(answer.text).toContain(WORDS);
    },
  );

  it("works directly afterwards", async () => expect((await post(request)).status).toBe(200));
});

it.each(Object.keys(CLIENTS))(
  "%s: a late failure has the same error as the first",
  async (client) => {
    const request = CLIENTS[client]!(`${client}/m`, false);
    const seen = new Set<string>();
    for (let n = 0; n < (NIGHTLY ? 100 : 25); n++) {
      failures = [failure(500)];
      const { status, retryAfter, text } = await post(request);
      seen.add(JSON.stringify([status, retryAfter, text.includes(WORDS)]));
    }
    expect([...seen]).toEqual(["[500,null,true]"]);
    expect((await post(request)).status).toBe(200);
  },
);

describe("official SDKs against a provider that fails between requests", () => {
  const openai = () => new OpenAI({ apiKey: "k", baseURL: `${at.url}/v1`, maxRetries: 0 });
  const anthropic = () => new Anthropic({ apiKey: "k", baseURL: at.url, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Hi" }];
  const CALLS: Readonly<Record<string, () => Promise<unknown>>> = {
    chat: () => openai().chat.completions.create({ model: "chat/m", messages }),
    "chat, streamed": async () => {
      const events = await openai().chat.completions.create({
        model: "chat/m",
        messages,
        stream: true,
      });
      for await (const _ of events);
    },
    responses: () => openai().responses.create({ model: "responses/m", input: "Hi" }),
    messages: () => anthropic().messages.create({ model: "messages/m", max_tokens: 9, messages }),
    "messages, streamed": () =>
      anthropic().messages.stream({ model: "messages/m", max_tokens: 9, messages }).finalMessage(),
  };

  it.each(Object.entries(CALLS))("%s", async (_, call) => {
    for (let round = 0; round < (NIGHTLY ? 3 : 1); round++)
      for (const [status, retryAfter] of FAILURES) {
        failures = [failure(status, retryAfter ?? undefined)];
        await expect(call()).rejects.toMatchObject({ status });
        await call();
      }
  });
});
