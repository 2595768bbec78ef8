// Inputs of a route hook: cooldowns with reasons, weights of credentials, and the cost of a
// request.
import { createCallFacts } from "../../kit/call-facts.ts";
import { describe, expect, it } from "vitest";
import type { Candidate, Context, Hooks, Price, Usage } from "tollgate/plugin";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import type { HostCandidate } from "../../../src/pipeline/exchange/mounted.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const LINE = JSON.stringify({
  id: "u",
  model: "m",
  say: "x",
  usage: { input: 1, output: 1 },
  end: "stop",
});
const answering = () =>
  startBackend((_req, res) => {
    res.setHeader("content-type", "application/json");
    res.end(LINE);
  });
const perMillion = (input: string, output: string): Price => ({
  lines: [
    { unit: "input", usd: input, per: 1_000_000 },
    { unit: "output", usd: output, per: 1_000_000 },
  ],
});
const provider = (base: string, more: object = {}) => ({
  endpoints: [{ protocol: createToyProtocol(), base, auth: "none" as const }],
  ...more,
});

type Stage = Awaited<ReturnType<typeof startTestServices>>;
const candidateOf = ({ built }: Stage, model: string): HostCandidate =>
  built.gen.resolver.resolve(built.frontends[0]!, model, false).candidates[0]!;
const limited = ({ house }: Stage, candidate: HostCandidate, retryAfterMs: number) =>
  house.targetHealth.recordFailure(
    candidate,
    { kind: "rate_limited", message: "Busy.", retryAfterMs },
    // A response to a call before the end of the last cooldown would not count.
    createCallFacts({ startedAt: performance.now() }),
  );

describe("a route hook", () => {
  it("sees cooldowns with reason and end, only while they last", async () => {
    const seen: Record<string, Candidate["cooldown"]>[] = [];
    const calls: Candidate[] = [];
    const hook: Hooks = {
      route(list) {
        seen.push(Object.fromEntries(list.map(({ provider: name, cooldown }) => [name, cooldown])));
        return [...list];
      },
      settle: (_x, outcome) => void calls.push(...outcome.calls.map(({ candidate }) => candidate)),
    };
    await using bad = await startBackend((_req, res) => {
      res.writeHead(429, { "content-type": "application/json", "retry-after": "60" });
      res.end("{}");
    });
    await using up = await answering();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { a: provider(bad.base), b: provider(up.base) },
      models: { any: ["a/m", "b/m"] },
      hooks: [hook],
    });
    for (let i = 0; i < 2; i++) await (await s.ask({ model: "any", text: "x" })).text();
    expect(seen[0]).toEqual({ a: undefined, b: undefined });
    const [rest] = s.house.targetHealth.describeCooldowns();
    expect(seen[1]).toEqual({ a: { until: rest!.until, reason: "rate_limited" }, b: undefined });
    expect([bad.asked.length, up.asked.length]).toEqual([1, 2]);
    // A current response ends it.
    s.house.targetHealth.recordSuccess(calls[0] as HostCandidate, performance.now(), "k1");
    await (await s.ask({ model: "any", text: "x" })).text();
    expect(seen[2]).toEqual({ a: undefined, b: undefined });
    // It is in cooldown again, and the only candidate left: the longer of two cooldowns is
    // reported.
    await (await s.ask({ model: "a/m", text: "x" })).text();
    expect(seen[3]!["a"]?.reason).toBe("rate_limited");
    expect(calls.map(({ cooldown }) => cooldown)).toEqual(Array(6).fill(undefined));
  });

  it("may order the list freely: candidates in cooldown are tried last nevertheless", async () => {
    await using up = await answering();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { a: provider(up.base), b: provider(up.base) },
      models: { any: ["a/m", "b/m"] },
      hooks: [
        { route: (list) => list.toSorted((a, b) => Number(!!b.cooldown) - Number(!!a.cooldown)) },
        { route: async (list) => [...list] },
      ],
    });
    limited(s, candidateOf(s, "a/m"), 60_000);
    const text = await (await s.ask({ model: "any", text: "x" })).text();
    expect(text).toContain("b/m");
  });

  it("sees the credential's configured weight, and so does every call", async () => {
    const seen: number[] = [];
    await using up = await answering();
    const credential = (name: string, weight: number) => ({
      name,
      fields: {},
      weight,
      models: undefined,
      zdr: undefined,
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        p: provider(up.base, { credentials: [credential("x", 3), credential("y", 7)] }) as never,
      },
      hooks: [
        {
          route: (list) => list.toSorted((a, b) => b.weight - a.weight),
          charge: ({ weight, cooldown }) => void seen.push(cooldown ? -1 : weight),
        },
      ],
    });
    for (let i = 0; i < 6; i++) await (await s.ask({ model: "p/m", text: "x" })).text();
    expect(seen).toEqual(Array(6).fill(7));
  });

  it("finds the cheapest candidate for the request", async () => {
    let ctx: Context | undefined;
    const quotes: (bigint | null)[] = [];
    const cost = (candidate: Candidate, input: number) =>
      ctx!.quoteCost(candidate, { input, output: 100 } satisfies Usage);
    await using up = await answering();
    const priced = (price: Price | undefined) =>
      provider(up.base, { facts: new Map([["m", price ? { price } : {}]]) as never });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        dear: priced(perMillion("10", "10")),
        unknown: priced(undefined),
        // Cheap input and expensive output: the size of the request decides.
        reader: priced(perMillion("1", "100")),
      },
      models: { any: ["dear/m", "unknown/m", "reader/m"] },
      hooks: [
        {
          lent: (c) => void (ctx = c),
          route(list, x) {
            quotes.push(...list.map((candidate) => cost(candidate, x.inputSize.tokens)));
            const sum = (one: Candidate) => Number(cost(one, x.inputSize.tokens) ?? Infinity);
            return list.toSorted((a, b) => sum(a) - sum(b));
          },
        },
      ],
    });
    const asked = async (text: string) => (await s.ask({ model: "any", text })).text();
    expect(await asked("x")).toContain("dear/m");
    expect(await asked("x".repeat(30_000))).toContain("reader/m");
    expect(quotes.map((quote) => quote === null)).toEqual([false, true, false, false, true, false]);
    expect(s.journal.filter((row) => row.do === "reserve")).toHaveLength(2);
  });
});

it("two cooldowns of one candidate are reported as the longer one", async () => {
  await using up = await answering();
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { p: provider(up.base) },
  });
  const one = candidateOf(s, "p/m");
  const { targetHealth } = s.house;
  const now = createCallFacts();
  targetHealth.recordFailure(one, { kind: "upstream_auth", message: "No." }, now);
  limited(s, one, 1_000);
  expect(targetHealth.cooldownOf(one, "k1")?.reason).toBe("upstream_auth");
  limited(s, one, 200_000);
  expect(targetHealth.cooldownOf(one, "k1")?.reason).toBe("rate_limited");
});
