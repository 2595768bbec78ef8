// Replays bills that other gateways and trackers got wrong, with the figures of their issue threads.
// Each response passes a running gateway, and the cost is read from its ledger.
import {
  eventStreamResponse,
  jsonResponse,
  startUpstream,
  type ScriptedResponse,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";

interface Replay {
  readonly thread: string;
  readonly about: string;
  /** Cost in US dollars that the thread reports as wrong, and the right one. */
  readonly theirs: string;
  readonly right: string | null;
  readonly price?: string;
  readonly protocol: "messages" | "chat";
  readonly stream?: true;
  readonly usage: JsonObject;
  readonly tier?: string;
}

const REPLAYS: readonly Replay[] = [
  {
    thread: "BerriAI/litellm#37923",
    about: "A streamed response of Claude costs nothing",
    theirs: "0",
    right: "0.000545",
    price: "{ input: 5, output: 25 }",
    protocol: "messages",
    stream: true,
    usage: { input_tokens: 9, output_tokens: 20 },
  },
  {
    thread: "QuantumNous/new-api#5003",
    about: "Cached input is deducted from input that excludes it, so the cost is negative",
    theirs: "-0.008907",
    right: "0.064053",
    price: "{ input: 1, output: 5, cache_read: 0.1 }",
    protocol: "messages",
    usage: { input_tokens: 56_322, cache_read_input_tokens: 72_960, output_tokens: 87 },
  },
  {
    thread: "maximhq/bifrost#3451",
    about: "Cache writes are charged as input in addition",
    theirs: "1.85984625",
    right: "1.06376125",
    price: "{ input: 5, output: 25, cache_write_5m: 6.25 }",
    protocol: "messages",
    stream: true,
    usage: { input_tokens: 6, cache_creation_input_tokens: 159_217, output_tokens: 2_745 },
  },
  {
    thread: "BerriAI/litellm#11935",
    about: "Cache reads and writes are free",
    theirs: "0.54285",
    right: "5.844225",
    price: "{ input: 3, output: 15, cache_read: 0.3, cache_write_5m: 3.75 }",
    protocol: "messages",
    usage: {
      input_tokens: 450,
      cache_read_input_tokens: 14_000_000,
      cache_creation_input_tokens: 293_700,
      output_tokens: 36_100,
    },
  },
  {
    thread: "langwatch/langwatch#7030",
    about: "Cached input is charged at both rates",
    theirs: "0.0017527",
    right: "0.0017207",
    price: "{ input: 2, output: 10, cache_read: 0.2, cache_write_5m: 2.5 }",
    protocol: "messages",
    usage: {
      input_tokens: 853,
      cache_read_input_tokens: 11,
      cache_creation_input_tokens: 5,
      output_tokens: 0,
    },
  },
  {
    thread: "BerriAI/litellm#39245",
    about: "The flex tier is charged at the standard rate above 272,000 tokens",
    theirs: "3.045",
    right: "1.5225",
    price:
      "{ input: 5, output: 30, over: [{ above: 272000, input: 10, output: 45 }], tiers: { flex: { input: 2.5, output: 15 } } }",
    protocol: "chat",
    tier: "flex",
    usage: { prompt_tokens: 300_000, completion_tokens: 1_000, total_tokens: 301_000 },
  },
  {
    thread: "defog-ai/defog#303",
    about: "The flex tier is charged at the standard rate, with cached input",
    theirs: "0.001275",
    right: "0.0006375",
    price:
      "{ input: 0.25, output: 2, cache_read: 0.025, tiers: { flex: { input: 0.125, output: 1, cache_read: 0.0125 } } }",
    protocol: "chat",
    tier: "flex",
    usage: {
      prompt_tokens: 2_000,
      prompt_tokens_details: { cached_tokens: 1_000 },
      completion_tokens: 500,
      total_tokens: 2_500,
    },
  },
  {
    thread: "BerriAI/litellm#35925",
    about: "Reasoning is charged at the standard rate on the priority tier",
    theirs: "0.0014445",
    right: "0.00288",
    price: "{ input: 0, output: 9, tiers: { priority: { input: 0, output: 18 } } }",
    protocol: "chat",
    tier: "priority",
    usage: {
      prompt_tokens: 10,
      completion_tokens: 160,
      completion_tokens_details: { reasoning_tokens: 159 },
      total_tokens: 170,
    },
  },
  {
    thread: "BerriAI/litellm#36561",
    about: "A model without a known price costs nothing",
    theirs: "0",
    right: null,
    protocol: "chat",
    usage: { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 },
  },
];

const modelOf = (i: number) => `model-${i}`;
const sse = (...events: readonly JsonObject[]): string =>
  events
    .map((event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");

function messagesResponse({ usage, stream }: Replay, model: string): ScriptedResponse {
  const { output_tokens: output, ...input } = usage as { readonly output_tokens: number };
  const message = { id: "msg_1", type: "message", role: "assistant", model, stop_sequence: null };
  if (!stream)
    return jsonResponse({
      ...message,
      content: [{ type: "text", text: "Hi" }],
      stop_reason: "end_turn",
      usage,
    });
  const text = sse(
    {
      type: "message_start",
      message: {
        ...message,
        content: [],
        stop_reason: null,
        usage: { ...input, output_tokens: 1 },
      },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: output },
    },
    { type: "message_stop" },
  );
  return eventStreamResponse([text]);
}

const chatResponse = ({ usage, tier }: Replay, model: string): ScriptedResponse =>
  jsonResponse({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model,
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
    usage,
    ...(tier !== undefined && { service_tier: tier }),
  });

let up: TestUpstream;
let at: InProcessGateway;
beforeAll(async () => {
  const answer = (asked: UpstreamRequest) => {
    const { model } = asked.json() as { model: string };
    const replay = REPLAYS[Number(model.slice("model-".length))]!;
    return replay.protocol === "messages"
      ? messagesResponse(replay, model)
      : chatResponse(replay, model);
  };
  up = await startUpstream({ "POST /v1/messages": answer, "POST /v1/chat/completions": answer });
  const models = REPLAYS.flatMap(({ price }, i) =>
    price === undefined ? [] : [`      ${modelOf(i)}: { price: ${price} }`],
  );
  at = await startInProcess({
    yaml: `
frontends: [messages, chat-completions]
middleware: [auth, limits]
providers:
  messages:
    use: anthropic-compatible
    with: { base_url: "${up.url}", api_key: "k" }
    models:
${models.join("\n")}
  chat:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", api_key: "k" }
    models:
${models.join("\n")}
`,
  });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

it.each(REPLAYS.map((replay, i) => [replay.thread, replay, i] as const))(
  "%s",
  async (_, replay, i) => {
    const model = `${replay.protocol}/${modelOf(i)}`;
    const answer = await fetch(
      `${at.url}/v1/${replay.protocol === "messages" ? "messages" : "chat/completions"}`,
      {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(replay.protocol === "messages"
            ? { "x-api-key": at.key }
            : { authorization: `Bearer ${at.key}` }),
          "anthropic-version": "2023-06-01",
        },
        body: JSON.stringify({
          model,
          max_tokens: 64_000,
          messages: [{ role: "user", content: "hi" }],
          ...(replay.stream && { stream: true }),
          ...(replay.tier !== undefined && { service_tier: replay.tier }),
        }),
      },
    );
    expect(answer.status, await answer.clone().text()).toBe(200);
    await answer.text();
    const { items } = (await at.ask("ledger.entries", { model, limit: 10 })) as unknown as {
      readonly items: readonly {
        readonly kind: string;
        readonly state: string;
        readonly costNano: bigint | null;
      }[];
    };
    const settled = items.find(({ kind }) => kind === "settle")!;
    const usd = settled.costNano === null ? null : String(Number(settled.costNano) / 1e9);
    expect(usd).toBe(replay.right);
    expect(settled.state).toBe(replay.right === null ? "unpriced" : "exact");
  },
);

it("the page lists each replay with its figures", () => {
  const page = readFileSync(
    join(import.meta.dirname, "../../../docs/concepts/replayed-bills.md"),
    "utf8",
  );
  for (const { thread, about, theirs, right } of REPLAYS) {
    const [repo, number] = thread.split("#");
    const ours = right === null ? "unpriced" : `$${right}`;
    const wrong = theirs.startsWith("-") ? `-$${theirs.slice(1)}` : `$${theirs}`;
    expect(page).toContain(
      `| ${about} | [${thread}](https://github.com/${repo}/issues/${number}) | ${wrong} | ${ours} |`,
    );
  }
});
