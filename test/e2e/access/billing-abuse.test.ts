// Attempts of a client to avoid payment, or to see what others paid.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LedgerEntry, JsonObject } from "tollgate/plugin";
import { parseKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import {
  startBillingUpstream,
  priced,
  type BillingUpstream,
  encodeScript,
} from "../../rig/money/billing-upstream.ts";
import { until } from "../../kit/wait.ts";

const PRICE = `price: { input: 3, cache_read: 0.3, output: 15 }`;
const yaml = (url: string, hold: string) => `
frontends: [chat-completions, messages, responses, usage]
middleware: [auth, { use: limits, with: { hold: ${hold} } }, { use: usage, with: { label_headers: [x-rig, team] } }]
store: memory
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/chat/v1", api_key: k }, models: { model: { ${PRICE}, limits: { context: 100000, output: 4096 } } } }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/messages/v1", api_key: k }, models: { model: { ${PRICE}, limits: { context: 100000, output: 4096 } } } }
`;

let upstream: BillingUpstream;
let expected: InProcessGateway;
let hard: InProcessGateway;
beforeAll(async () => {
  upstream = await startBillingUpstream();
  [expected, hard] = await Promise.all([
    startInProcess({ yaml: yaml(upstream.up.url, "expected") }),
    startInProcess({ yaml: yaml(upstream.up.url, "hard") }),
  ]);
});
afterAll(async () => {
  await Promise.all([expected[Symbol.asyncDispose](), hard[Symbol.asyncDispose]()]);
  await upstream[Symbol.asyncDispose]();
});

async function keyOf(at: InProcessGateway, nano: number, more: object = {}) {
  const limits = [formatLimit({ unit: "nano_usd", max: nano, per: "total" })];
  const { secret } = (await at.ask("keys.create", { limits, ...more } as JsonObject)) as {
    secret: string;
  };
  return { secret, id: parseKey(secret)!.id };
}

const post = (
  at: InProcessGateway,
  key: string,
  path: string,
  body: object,
  init: RequestInit = {},
) =>
  fetch(`${at.url}${path}`, {
    ...init,
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      "x-api-key": key,
      "anthropic-version": "2023-06-01",
      ...(init.headers as Record<string, string>),
    },
    body: JSON.stringify(body),
  });

const chat = (
  tag: string,
  more: object = {},
  of: { words?: number; thought?: number; gap?: number } = {},
) => ({
  model: "chat/model",
  max_tokens: 1_000,
  messages: [
    {
      role: "user",
      content: encodeScript({
        tag,
        words: of.words ?? 10,
        gap: of.gap ?? 1,
        thought: of.thought ?? 0,
      }),
    },
  ],
  ...more,
});

async function settled(at: InProcessGateway, key: string): Promise<LedgerEntry[]> {
  let settles: LedgerEntry[] = [];
  await until(async () => {
    const { items } = (await at.ask("ledger.entries", { key, limit: 1_000 })) as unknown as {
      items: LedgerEntry[];
    };
    settles = items.filter(({ kind }) => kind === "settle");
    return items.length === 2 * settles.length;
  });
  return settles;
}

describe("disconnecting early", () => {
  it.each([
    ["an answer that comes whole", {}, { words: 300, thought: 400 }],
    [
      "a stream that thinks first",
      { stream: true, reasoning_effort: "high" },
      { words: 50, thought: 400 },
    ],
  ])("%s is billed at least its actual cost", async (what, more, of) => {
    const { secret, id } = await keyOf(expected, 100_000_000);
    const before = upstream.bill.length;
    let refused = 0;
    for (let i = 0; i < 40 && refused === 0; i++) {
      const away = new AbortController();
      const asked = post(
        expected,
        secret,
        "/v1/chat/completions",
        chat(`${what.length}.${i}`, more, of),
        {
          signal: away.signal,
        },
      ).then(
        (res) => res.status,
        () => 0,
      );
      const seen = upstream.bill.length;
      let over = false;
      void asked.then(() => (over = true));
      await until(() => upstream.bill.length > seen || over);
      away.abort();
      if ((await asked) === 429) refused++;
      await settled(expected, id);
    }
    const rows = await settled(expected, id);
    const paid = rows.reduce((sum, { costNano }) => sum + BigInt(costNano ?? 0), 0n);
    const owed = upstream.bill.slice(before).reduce((sum, one) => sum + priced(one.usage()), 0n);
    expect(paid).toBeGreaterThanOrEqual(owed);
    expect(rows.some(({ state }) => state === "estimated")).toBe(true);
    // It ends, because the budget of ten cents is spent.
    expect(refused).toBe(1);
  });
});

it("a client that does not wait for the response still pays for the work", async () => {
  const { secret, id } = await keyOf(expected, 1e9);
  const body = chat("hurry", { max_tokens: 4_000 }, { words: 100, thought: 3_500, gap: 2_000 });
  const headers = { "x-stainless-timeout": "0.1" };
  const { status } = await post(expected, secret, "/v1/chat/completions", body, { headers });
  expect(status).toBe(504);
  const [row] = await settled(expected, id);
  const billed = upstream.bill.find(({ tag }) => tag === "hurry")!;
  expect(row!.state).toBe("estimated");
  // What a provider can produce in that time. The upstream here produces all of it immediately.
  expect(BigInt(row!.costNano!)).toBeGreaterThan(priced(billed.usage()) / 2n);
});

describe("unusual numbers", () => {
  it("are rejected or reserved; none of them frees budget", async () => {
    const { secret, id } = await keyOf(expected, 40_000_000);
    for (const odd of [
      { n: -5 },
      { n: 0 },
      { n: 1.5 },
      { n: 1e300 },
      { n: "128" },
      { max_tokens: -1 },
      { max_tokens: 0 },
      { max_tokens: 1.5 },
      { max_tokens: 1e300 },
      { max_tokens: "5" },
      { max_completion_tokens: -1e9 },
      { max_tokens: 2 ** 53 },
    ]) {
      const { status } = await post(expected, secret, "/v1/chat/completions", chat("odd", odd));
      expect([200, 400, 429], JSON.stringify(odd)).toContain(status);
      const messages = { ...chat("odd", odd), model: "messages/model" };
      expect([200, 400, 402, 429]).toContain(
        (await post(expected, secret, "/v1/messages", messages)).status,
      );
    }
    for (const { costNano } of await settled(expected, id))
      expect(BigInt(costNano!)).toBeGreaterThanOrEqual(0n);
  });

  it("n: 128 reserves 128 responses", async () => {
    const { secret } = await keyOf(expected, 1_000_000_000);
    const answer = await post(expected, secret, "/v1/chat/completions", chat("many", { n: 128 }));
    expect(answer.status).toBe(429);
    expect(((await answer.json()) as any).error.message).toMatch(/would reserve \$1\.9/);
  });
});

describe("a hard budget", () => {
  it("cannot be evaded with two limits: one of them is sent, and it is the reserved one", async () => {
    const { secret, id } = await keyOf(hard, 20_000_000);
    const both = chat("both", { max_completion_tokens: 10, max_tokens: 4_000 });
    expect((await post(hard, secret, "/v1/chat/completions", both)).status).toBe(200);
    const left = JSON.parse(upstream.up.requests.at(-1)!.body.toString());
    expect([left.max_tokens, left.max_completion_tokens].filter((n) => n !== undefined)).toEqual([
      10,
    ]);
    const [row] = await settled(hard, id);
    expect(BigInt(row!.costNano!)).toBeLessThanOrEqual(BigInt(row!.holdNano!));
    expect(BigInt(row!.holdNano!)).toBeLessThan(1_000_000n);
    const spelled = chat("other", { max_tokens: 10, max_output_tokens: 4_000 });
    expect((await post(hard, secret, "/v1/chat/completions", spelled)).status).toBe(429);
  });

  it("cannot be evaded with a field that the gateway cannot parse, or that has another name", async () => {
    const { secret, id } = await keyOf(hard, 100_000_000);
    const ask = (more: object) => post(hard, secret, "/v1/chat/completions", chat("odd", more));
    for (const odd of [
      { parameters: { n: "1e1" } },
      { best_of: "+8" },
      { numGenerations: [8] },
      { max_new_tokens: "4e3" },
      { extra: { num_predict: -1 } },
    ]) {
      const before = upstream.up.requests.length;
      const answer = await ask(odd);
      expect(answer.status, JSON.stringify(odd)).toBe(400);
      const { error } = (await answer.json()) as { error: { code: string; param: string } };
      expect(error.code).toBe("unreadable_amount");
      expect(JSON.stringify(odd)).toContain(error.param.split(".").at(-1));
      expect(upstream.up.requests.length).toBe(before);
    }
    expect((await ask({ max_tokens: 10, max_new_tokens: 90_000 })).status).toBe(200);
    const left = upstream.up.requests.at(-1)!.json() as { [field: string]: unknown };
    expect(left).toMatchObject({ max_new_tokens: 4_096 });
    // It is reserved under another name too.
    expect((await ask({ max_tokens: 4_000, settings: { numSamples: 16 } })).status).toBe(429);
    for (const { costNano, holdNano } of await settled(hard, id))
      expect(BigInt(costNano!)).toBeLessThanOrEqual(BigInt(holdNano!));
  });

  it("reserves a document at the model's full input limit, because its pages cannot be counted", async () => {
    const { secret } = await keyOf(hard, 290_000_000);
    const pdf = {
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
    };
    const ask = (content: object[]) =>
      post(hard, secret, "/v1/messages", {
        model: "messages/model",
        max_tokens: 10,
        messages: [{ role: "user", content }],
      });
    const said = { type: "text", text: encodeScript({ tag: "pdf", words: 3, gap: 0 }) };
    expect((await ask([pdf, said])).status).toBe(402);
    expect((await ask([said])).status).toBe(200);
  });

  it("is never exceeded by concurrent requests, whatever limits they set themselves", async () => {
    const nano = 200_000_000;
    const { secret, id } = await keyOf(hard, nano);
    const all = Array.from({ length: 60 }, (_, i) =>
      post(
        hard,
        secret,
        "/v1/chat/completions",
        chat(`all.${i}`, { max_tokens: 400 + i * 60 }, { words: 300 }),
      ),
    );
    for (const answer of await Promise.all(all)) await answer.text();
    const rows = await settled(hard, id);
    const spent = rows.reduce((sum, { costNano }) => sum + BigInt(costNano!), 0n);
    expect(rows.length).toBeGreaterThan(0);
    expect(spent).toBeLessThanOrEqual(BigInt(nano));
  });
});

it("counting tokens is free, and a repeated request is billed again unless it has an idempotency key", async () => {
  const { secret, id } = await keyOf(expected, 1_000_000_000);
  const asked = { ...chat("count"), model: "messages/model" };
  await (await post(expected, secret, "/v1/messages/count_tokens", asked)).text();
  const counted = await settled(expected, id);
  expect(counted.map(({ costNano }) => costNano)).toEqual(["0"]);
  const again = { headers: { "x-stainless-retry-count": "1" } };
  for (let i = 0; i < 2; i++)
    await (await post(expected, secret, "/v1/chat/completions", chat("twice"), again)).text();
  const rows = (await settled(expected, id)).slice(1);
  expect(rows.map(({ state }) => state)).toEqual(["exact", "exact"]);
  expect(upstream.bill.filter(({ tag }) => tag === "twice").length).toBe(2);
});

describe("usage of other keys", () => {
  it("is never disclosed, whatever the query", async () => {
    const [rich, poor] = await Promise.all([keyOf(expected, 1e9), keyOf(expected, 1e9)]);
    await (await post(expected, rich.secret, "/v1/chat/completions", chat("rich"))).text();
    for (const query of [
      "",
      `?key=${rich.id}`,
      `?key=&by=label`,
      `?by=key`,
      `?by=model,key`,
      `?from=2000-01-01&key[]=${rich.id}`,
    ]) {
      const answer = await fetch(`${expected.url}/v1/usage${query}`, {
        headers: { authorization: `Bearer ${poor.secret}` },
      });
      const text = await answer.text();
      expect(text).not.toContain(rich.id);
      if (answer.status === 200) expect(JSON.parse(text).total.calls).toBe(0);
      else expect(answer.status).toBe(400);
    }
    // Nor with the hash or the name of a key in place of a key.
    for (const secret of [rich.id, `tg_${rich.id}`, "a".repeat(64)])
      expect(
        (
          await fetch(`${expected.url}/v1/usage`, {
            headers: { authorization: `Bearer ${secret}` },
          })
        ).status,
      ).toBe(401);
  });

  it("cannot be caused by a client: labels of a key override those of the client", async () => {
    const { secret, id } = await keyOf(expected, 1e9, { labels: { team: "red" } });
    const headers = { team: "blue", "x-rig": "mine" };
    await (await post(expected, secret, "/v1/chat/completions", chat("label"), { headers })).text();
    expect((await settled(expected, id))[0]!.labels).toEqual({ team: "red", "x-rig": "mine" });
  });
});
