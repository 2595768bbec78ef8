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
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

interface Replay {
  readonly thread: string;
  readonly about: string;
  /** Cost in US dollars that the thread reports as wrong, and the right one. */
  readonly theirs: string;
  readonly right: string | null;
  readonly price?: string;
  /** Model in `REPLAYS` whose price applies. */
  readonly pricedAs?: number;
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
  {
    thread: "BerriAI/litellm#29145",
    about: "Cache reads and writes on Bedrock are free",
    theirs: "0.00105",
    right: "0.01155",
    price: "{ input: 3, output: 15, cache_read: 0.3, cache_write_5m: 3.75 }",
    protocol: "messages",
    stream: true,
    usage: {
      input_tokens: 100,
      cache_read_input_tokens: 10_000,
      cache_creation_input_tokens: 2_000,
      output_tokens: 50,
    },
  },
  {
    thread: "BerriAI/litellm#29432",
    about: "Cache writes for one hour are charged at the rate of five minutes",
    theirs: "0.0125",
    right: "0.02",
    price: "{ input: 5, output: 25, cache_write_5m: 6.25, cache_write_1h: 10 }",
    protocol: "messages",
    usage: {
      input_tokens: 0,
      cache_creation_input_tokens: 2_000,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 2_000 },
      output_tokens: 0,
    },
  },
  {
    thread: "QuantumNous/new-api#3259",
    about: "Uncached input is the prompt minus the cache, which is below zero",
    theirs: "-0.003914",
    right: "0.001086",
    price: "{ input: 1, output: 5, cache_read: 0.1 }",
    protocol: "messages",
    usage: { input_tokens: 86, cache_read_input_tokens: 5_000, output_tokens: 100 },
  },
  {
    thread: "QuantumNous/new-api#5756",
    about: "Cache writes without a lifetime are free",
    theirs: "0.0623588",
    right: "0.068494738",
    price: "{ input: 1.75, output: 8.75, cache_read: 0.175, cache_write_5m: 2.1875 }",
    protocol: "messages",
    usage: {
      input_tokens: 24_951,
      cache_read_input_tokens: 64_126,
      cache_creation_input_tokens: 2_805,
      output_tokens: 854,
    },
  },
  {
    thread: "QuantumNous/new-api#6144",
    about: "A stream loses its cached input, which its client receives",
    theirs: "0.006408",
    right: "0.002376",
    price: "{ input: 3, output: 15, cache_read: 0.75 }",
    protocol: "chat",
    stream: true,
    usage: {
      prompt_tokens: 1_816,
      prompt_tokens_details: { cached_tokens: 1_792 },
      completion_tokens: 64,
      total_tokens: 1_880,
    },
  },
  {
    thread: "BerriAI/litellm#31087",
    about: "A dated model name has no price, and the configured base model is ignored",
    theirs: "0",
    right: "0.003",
    pricedAs: 9,
    protocol: "chat",
    usage: { prompt_tokens: 1_000, completion_tokens: 0, total_tokens: 1_000 },
  },
  {
    thread: "maximhq/bifrost#2624",
    about: "The priority tier above 272,000 tokens is charged at the rates below",
    theirs: "1.53",
    right: "3.045",
    price:
      "{ input: 2.5, output: 15, over: [{ above: 272000, input: 5, output: 22.5, tiers: { priority: { input: 10, output: 45 } } }], tiers: { priority: { input: 5, output: 30 } } }",
    protocol: "chat",
    tier: "priority",
    usage: { prompt_tokens: 300_000, completion_tokens: 1_000, total_tokens: 301_000 },
  },
];

const BROKEN: readonly Outcome[] = [
  {
    threads: ["QuantumNous/new-api#4168"],
    about: "A stream fails before the provider accepts it, and the prompt is charged",
    theirs: "$0.3",
    ours: "$0, void",
  },
  {
    threads: ["QuantumNous/new-api#4168"],
    about: "A stream ends without an event, and the prompt is a final charge",
    theirs: "Final",
    ours: "estimated",
  },
  {
    threads: ["QuantumNous/new-api#5288", "QuantumNous/new-api#5289", "QuantumNous/new-api#5290"],
    about: "A stream breaks, and the text of the error is charged as output",
    theirs: "$0.01",
    ours: "$0.00004, estimated",
  },
];

const BUDGETS: readonly Outcome[] = [
  {
    threads: ["BerriAI/litellm#26672"],
    about: "20 concurrent calls of $1 on a budget of $3",
    theirs: "20 calls",
    ours: "3 calls",
  },
  {
    threads: ["BerriAI/litellm#34732"],
    about: "Two concurrent calls, with the rest of a budget for one",
    theirs: "2 calls",
    ours: "1 call",
  },
  {
    threads: ["BerriAI/litellm#40095"],
    about: "The first 8 calls of a new holder, concurrent, with a budget for one",
    theirs: "8 calls",
    ours: "1 call",
  },
  {
    threads: ["BerriAI/litellm#35524"],
    about: "A model without a known price, on a budget",
    theirs: "Sent without a reservation",
    ours: "Rejected before it is sent",
  },
  {
    threads: ["BerriAI/litellm#38647"],
    about: "8 concurrent cheap calls that may cost $4.80 each, on a budget of $25",
    theirs: "Rejected with $0 spent",
    ours: "8 calls",
  },
  {
    threads: ["BerriAI/litellm#40221"],
    about: "The budgets of 210 active keys",
    theirs: "Counters above 200 are evicted",
    ours: "Each budget holds",
  },
  {
    threads: ["BerriAI/litellm#40002"],
    about: "Reservation of 300,000 input tokens with a bracket above 272,000",
    theirs: "$0.75",
    ours: "At least $1.5",
  },
];

/** A response that breaks, or a budget under load. The figures of the thread are texts. */
interface Outcome {
  readonly threads: readonly string[];
  readonly about: string;
  readonly theirs: string;
  readonly ours: string;
}

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

const CHUNK = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1 };
const chunks = (...data: readonly object[]): string =>
  data.map((each) => `data: ${JSON.stringify({ ...CHUNK, ...each })}\n\n`).join("");

function chatResponse({ usage, tier, stream }: Replay, model: string): ScriptedResponse {
  if (stream)
    return eventStreamResponse([
      chunks(
        { model, choices: [{ index: 0, delta: { content: "Hi" }, finish_reason: null }] },
        { model, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
        { model, choices: [], usage },
      ),
      "data: [DONE]\n\n",
    ]);
  return jsonResponse({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model,
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
    usage,
    ...(tier !== undefined && { service_tier: tier }),
  });
}

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
  const models = REPLAYS.flatMap(({ price, pricedAs }, i) => {
    const setting =
      price === undefined
        ? pricedAs !== undefined && `priced_as: ${modelOf(pricedAs)}`
        : `price: ${price}`;
    return setting ? [`      ${modelOf(i)}: { ${setting} }`] : [];
  });
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
          ...(replay.stream &&
            replay.protocol === "chat" && { stream_options: { include_usage: true } }),
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

/** Sends a request of one user message, and returns its status. */
async function send(
  { url }: InProcessGateway,
  key: string,
  body: JsonObject,
): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ messages: [{ role: "user", content: "hi" }], ...body }),
  });
  // A stream that breaks is closed abruptly.
  return { status: answer.status, text: await answer.text().catch(() => "") };
}
interface Row {
  readonly kind: string;
  readonly state: string;
  readonly costNano: bigint | null;
  readonly holdNano?: bigint | null;
}
const rowsOf = async (gateway: InProcessGateway, model: string): Promise<readonly Row[]> =>
  ((await gateway.ask("ledger.entries", { model, limit: 100 })) as unknown as { items: Row[] })
    .items;
const usd = (nano: bigint | null | undefined): string => `$${Number(nano ?? 0n) / 1e9}`;

describe("a stream that breaks", () => {
  const prompt = "word ".repeat(100_000);
  const long = "Something is wrong with the server. ".repeat(140);

  it("costs nothing before its first event, and only its own text after it", async () => {
    let answer = (): ScriptedResponse => jsonResponse({ error: { message: "Busy." } }, 503);
    const broken = await startUpstream({ "POST /v1/chat/completions": () => answer() });
    await using gateway = await startInProcess({
      yaml: `
frontends: [chat-completions]
middleware: [auth, limits]
retries: { per_target: 1, total: 1 }
providers:
  up:
    use: openai-compatible
    with: { base_url: "${broken.url}/v1", api_key: "k" }
    models: { early: { price: { input: 3, output: 15 } }, late: { can: { reasoning: false }, price: { input: 0, output: 10 } } }
`,
    });
    const early = {
      model: "up/early",
      stream: true,
      messages: [{ role: "user", content: prompt }],
    };
    expect((await send(gateway, gateway.key, early)).status).toBe(503);
    answer = () => eventStreamResponse([]);
    expect((await send(gateway, gateway.key, early)).status).toBe(502);
    const rows = (await rowsOf(gateway, "up/early")).filter(({ kind }) => kind === "settle");
    expect(`${usd(rows[0]!.costNano)}, ${rows[0]!.state}`).toBe(BROKEN[0]!.ours);
    expect(rows[1]!.state).toBe(BROKEN[1]!.ours);
    answer = () =>
      eventStreamResponse([
        chunks({
          choices: [{ index: 0, delta: { content: "Hello there." }, finish_reason: null }],
        }),
        `data: ${JSON.stringify({ error: { message: long, type: "server_error" } })}\n\n`,
      ]);
    await send(gateway, gateway.key, { model: "up/late", stream: true });
    const [second] = (await rowsOf(gateway, "up/late")).filter(({ kind }) => kind === "settle");
    expect(`${usd(second!.costNano)}, ${second!.state}`).toBe(BROKEN[2]!.ours);
    await broken.close();
  });
});

describe("a budget", () => {
  const MILLION = 1_000_000;
  /** Resolves when this many calls have reached the provider. */
  let arrivals = { missing: 0, all: Promise.withResolvers<void>() };
  let provider: TestUpstream;
  const gateways: Record<string, InProcessGateway> = {};
  beforeAll(async () => {
    provider = await startUpstream({
      "POST /v1/chat/completions": async (asked) => {
        const { model } = asked.json() as { model: string };
        if (--arrivals.missing === 0) arrivals.all.resolve();
        if (model === "cheap") await arrivals.all.promise;
        const output = model === "cheap" ? 10 : MILLION;
        return chatResponse(
          {
            usage: { prompt_tokens: 1, completion_tokens: output, total_tokens: output + 1 },
          } as Partial<Replay> as Replay,
          model,
        );
      },
    });
    for (const hold of ["hard", "expected"])
      gateways[hold] = await startInProcess({
        yaml: `
frontends: [chat-completions]
middleware: [auth, { use: limits, with: { hold: ${hold} } }]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${provider.url}/v1", api_key: "k" }
    models:
      dollar: { price: { input: 0, output: 1 } }
      cheap: { price: { input: 0, output: 75 } }
      long: { price: { input: 2.5, output: 0, over: [{ above: 272000, input: 5, output: 0 }] } }
`,
      });
  });
  afterAll(async () => {
    for (const one of Object.values(gateways)) await one[Symbol.asyncDispose]();
    await provider.close();
  });

  const createKey = async (hold: string, limit: string): Promise<string> =>
    ((await gateways[hold]!.ask("keys.create", { limits: [limit] })) as { secret: string }).secret;
  /** Sends calls at once, and returns the number of calls that were served. */
  async function burst(hold: string, count: number, key: string, body: JsonObject) {
    const answers = await Promise.all(
      Array.from({ length: count }, () => send(gateways[hold]!, key, body)),
    );
    expect(answers.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
    const served = answers.filter(({ status }) => status === 200).length;
    return served === 1 ? "1 call" : `${served} calls`;
  }
  const dollar = { model: "up/dollar", max_tokens: MILLION };

  it.each([
    [20, 3, 0],
    [2, 1, 1],
    [8, 1, 2],
  ])("holds for %i concurrent calls with room for %i", async (count, room, row) => {
    const key = await createKey("hard", `usd=${room}/total`);
    expect(await burst("hard", count, key, dollar)).toBe(BUDGETS[row]!.ours);
    // Nothing is left, and the next call is rejected too.
    expect(await burst("hard", 1, key, dollar)).toBe("0 calls");
  });

  it("rejects a model without a known price before it is sent", async () => {
    const key = await createKey("expected", "usd=1/total");
    const before = provider.requests.length;
    const { status, text } = await send(gateways["expected"]!, key, { model: "up/unknown" });
    expect([status, text]).toEqual([expect.any(Number), expect.stringContaining("unpriced_model")]);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(provider.requests.length).toBe(before);
  });

  it("does not reject cheap calls because of what they may cost", async () => {
    arrivals = { missing: 8, all: Promise.withResolvers<void>() };
    const key = await createKey("expected", "usd=25/total");
    const cheap = { model: "up/cheap", max_tokens: 64_000 };
    expect(await burst("expected", 8, key, cheap)).toBe(BUDGETS[4]!.ours);
  });

  it("holds for each of many keys", async () => {
    const keys = await Promise.all(
      Array.from({ length: NIGHTLY ? 210 : 12 }, () => createKey("hard", "usd=1/total")),
    );
    const first = await Promise.all(keys.map((key) => burst("hard", 1, key, dollar)));
    expect(new Set(first)).toEqual(new Set(["1 call"]));
    const again = await Promise.all(keys.slice(0, 3).map((key) => burst("hard", 1, key, dollar)));
    expect(new Set(again)).toEqual(new Set(["0 calls"]));
  });

  it("reserves the rates of the bracket", async () => {
    const messages = [{ role: "user", content: "word ".repeat(300_000) }];
    await send(gateways["hard"]!, gateways["hard"]!.key, { model: "up/long", messages });
    const reserve = (await rowsOf(gateways["hard"]!, "up/long")).find(
      ({ kind }) => kind === "reserve",
    );
    expect(BigInt(reserve!.holdNano!)).toBeGreaterThanOrEqual(1_500_000_000n);
  });
});

const linkOf = (thread: string): string => {
  const [repo, number] = thread.split("#");
  return `[${thread}](https://github.com/${repo}/issues/${number})`;
};

it("the page lists each replay with its figures", () => {
  const page = readFileSync(
    join(import.meta.dirname, "../../../docs/concepts/replayed-bills.md"),
    "utf8",
  );
  for (const { thread, about, theirs, right } of REPLAYS) {
    const ours = right === null ? "unpriced" : `$${right}`;
    const wrong = theirs.startsWith("-") ? `-$${theirs.slice(1)}` : `$${theirs}`;
    expect(page).toContain(`| ${about} | ${linkOf(thread)} | ${wrong} | ${ours} |`);
  }
  for (const { threads, about, theirs, ours } of [...BROKEN, ...BUDGETS])
    expect(page).toContain(
      `| ${about} | ${threads.map(linkOf).join(", ")} | ${theirs} | ${ours} |`,
    );
});
