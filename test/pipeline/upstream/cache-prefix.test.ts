// Prompt caches: two turns of one conversation leave prefix-equal, from every frontend to every
// provider, in passthrough mode and translated, with and without hooks, and at each retry.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  defineMiddleware,
  type Body,
  type ChatRequest,
  type ClientHalf,
  type Operation,
} from "tollgate/plugin";
import {
  createCallContext,
  encodeOutgoing,
  jsonResponse,
  startTestGateway,
  startUpstream,
  type TestGateway,
  type TestUpstream,
} from "tollgate/testing";
import { cachedText } from "../../protocols/generators/cached-text.ts";
import { chats } from "../../protocols/generators/codecs.ts";

const CONVERSATION: ChatRequest = {
  operation: "chat",
  model: "model",
  stream: false,
  instructions: [
    { type: "text", text: "You are a helper." },
    { type: "text", text: "Answer in one line." },
  ],
  tools: [
    { type: "function", name: "weather", schema: { type: "object", properties: { z: {}, a: {} } } },
    { type: "function", name: "clock", schema: { type: "object", properties: {} } },
  ],
  turns: [
    { role: "user", blocks: [{ type: "text", text: "What is the weather?" }] },
    {
      role: "assistant",
      blocks: [
        { type: "text", text: "I will look." },
        { type: "call", id: "call_1", name: "weather", tool: "function", args: '{"z":1,"a":2}' },
        { type: "call", id: "call_2", name: "clock", tool: "function", args: "{}" },
      ],
    },
    {
      role: "tool",
      blocks: [
        {
          type: "result",
          callId: "call_1",
          blocks: [{ type: "text", text: "Rain" }],
          isError: false,
        },
        {
          type: "result",
          callId: "call_2",
          blocks: [{ type: "text", text: "12:00" }],
          isError: true,
        },
      ],
    },
    { role: "assistant", blocks: [{ type: "text", text: "It rains." }] },
    { role: "user", blocks: [{ type: "text", text: "And tomorrow?" }] },
  ],
  output: { maxTokens: 100 },
  sampling: {},
  reasoning: { mode: "auto" },
  state: {},
  rest: {},
  ext: {},
};
const TURNS = [1, 3, 5].map((length) => ({
  ...CONVERSATION,
  turns: CONVERSATION.turns.slice(0, length),
}));

const rewriting = defineMiddleware({
  api: 1,
  name: "rewriting",
  summary: "Forces translation, and adds to the request",
  stability: "beta",
  sends: "nowhere",
  setup: () => ({
    rewrite: (request) => ({
      ...request,
      ...("turns" in request && { turns: [...request.turns] }),
    }),
    prepare: (out) => out.set("x_added", { at: "the end" }),
  }),
});

const FRONTENDS: { readonly [protocol: string]: (model: string) => string } = {
  "chat-completions": () => "/v1/chat/completions",
  messages: () => "/v1/messages",
  responses: () => "/v1/responses",
  gemini: (model) => `/v1beta/models/${model}:generateContent`,
};
const PROVIDERS = ["compatible", "claude", "openai", "google"];
const protocolAt = (path: string): string =>
  Object.entries({ chat: "chat-completions", messages: "messages", responses: "responses" }).find(
    ([word]) => path.includes(`/${word}`),
  )?.[1] ?? "gemini";

const BREAKPOINTS = "{ use: prompt-caches, with: { breakpoints: true } }";

describe.each(["", "rewriting", BREAKPOINTS])("with the hooks [%s]", (hooks) => {
  let up: TestUpstream;
  let at: TestGateway;
  beforeAll(async () => {
    up = await startUpstream({ "*": jsonResponse({ error: { message: "busy" } }, 503) });
    at = await startTestGateway({
      plugins: { rewriting },
      yaml: `
frontends: [chat-completions, messages, responses, gemini]
middleware: [door${hooks && `, ${hooks}`}]
retries: { per_target: 2, total: 4 }
providers:
  compatible: { use: openai-compatible, with: { base_url: "${up.url}/v1" } }
  claude: { use: anthropic, with: { base_url: "${up.url}", api_key: "\${env:KEY}" } }
  openai: { use: openai, with: { base_url: "${up.url}/v1", api_key: "\${env:KEY}" } }
  google: { use: google, with: { base_url: "${up.url}/v1beta", api_key: "\${env:KEY}" } }
`,
      env: { KEY: "sk-upstream-0000" },
    });
  });
  afterAll(async () => {
    await at[Symbol.asyncDispose]();
    await up.close();
  });

  const send = async (protocol: string, request: ChatRequest, model: string) => {
    const of = createCallContext({ model, stream: false });
    const { body } = encodeOutgoing(chats[protocol]!.client as ClientHalf<Operation>, request, of);
    const res = await fetch(at.url + FRONTENDS[protocol]!(model), {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ ...body, ...(protocol !== "gemini" && { model }) }),
    });
    await res.text();
  };

  it.each(
    Object.keys(FRONTENDS).flatMap((from) =>
      (hooks === BREAKPOINTS ? ["claude"] : PROVIDERS).map((to): [string, string] => [from, to]),
    ),
  )("from %s to %s", async (from, to) => {
    const model = `${to}/model-${from}`;
    const texts: ReturnType<typeof cachedText>[][] = [];
    for (const request of TURNS) {
      const before = up.requests.length;
      await send(from, request, model);
      // Model lists are read in the background.
      const left = up.requests.slice(before).filter(({ method }) => method === "POST");
      expect(left.length).toBeGreaterThan(0);
      texts.push(left.map((one) => cachedText(protocolAt(one.path), one.json() as Body)));
    }
    for (const [i, attempts] of texts.entries())
      for (const { whole } of attempts) {
        expect(whole).toBe(attempts[0]!.whole);
        if (i > 0) expect(whole.startsWith(texts[i - 1]![0]!.prefix)).toBe(true);
      }
  });
});
