// Order of candidates: credentials by weight, candidates by weight if the route configures it, and
// the final order of a route hook.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HostCandidate } from "../../../src/pipeline/exchange/mounted.ts";
import { chatOperation, type Price } from "tollgate/plugin";
import { ROUTING_STRATEGIES, type RoutingStrategy } from "../../../src/model/route-settings.ts";
import { computeShares, type NamePart } from "../../../src/pipeline/routing/resolver.ts";
import {
  type RoutingRuleInputs,
  applyRoutingRule,
  ROUTING_RULES,
} from "../../../src/pipeline/routing/routing-rules.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const perMillion = (input: string, output: string): Price => ({
  lines: [
    { unit: "input", usd: input, per: 1_000_000 },
    { unit: "output", usd: output, per: 1_000_000 },
  ],
});
const priced = (usd: string | undefined) =>
  usd === undefined ? {} : { price: perMillion(usd, usd) };

const seat = (id: string, credential: string, share: number, protocol = "chat"): HostCandidate =>
  ({ id, credential, protocol, info: {}, policy: {}, mounted: { share } }) as never;

const plain = (more: Partial<RoutingRuleInputs> = {}): RoutingRuleInputs => ({
  x: {
    identity: { id: "k1" },
    inputSize: { bytes: 0, tokens: 1_000 },
    headers: {},
    body: {},
  } as never,
  frontend: { server: undefined } as never,
  facts: { features: [] },
  operationSpec: chatOperation,
  outputHistory: { p95: () => undefined },
  random: Math.random,
  estimateLatency: () => 0,
  ...more,
});

/** How often each is first. */
function firsts(seats: readonly HostCandidate[], pick: RoutingStrategy, runs = 20_000) {
  const counts: Record<string, number> = {};
  // A fixed sequence of numbers: the shares are the same in each run.
  const chance = xorshift(7);
  for (let i = 0; i < runs; i++) {
    const [one] = applyRoutingRule(seats, ROUTING_RULES[pick], plain({ random: chance }));
    const name = `${one!.id}[${one!.credential}]`;
    counts[name] = (counts[name] ?? 0) + 1 / runs;
  }
  return counts;
}

function xorshift(seed: number): () => number {
  let at = seed;
  return () => {
    at ^= at << 13;
    at ^= at >>> 17;
    at ^= at << 5;
    return ((at >>> 0) + 0.5) / 2 ** 32;
  };
}

const some = fc.uniqueArray(
  fc.record({
    id: fc.constantFrom("a/m", "b/m", "c/m"),
    credential: fc.constantFrom("x", "y"),
    share: fc.constantFrom(0, 0.1, 0.5),
    ms: fc.constantFrom(0, 10, 20, 300),
    usd: fc.constantFrom(undefined, "0", "1", "2"),
    endpoints: fc.integer({ min: 1, max: 3 }),
  }),
  { maxLength: 6, selector: ({ id, credential }) => `${id} ${credential}` },
);

describe("candidates", () => {
  it("ordered: keeps the order of models, and orders credentials of one model by weight", () => {
    const seats = [seat("a/m", "x", 0.3), seat("a/m", "y", 0.1), seat("b/m", "z", 0.6)];
    const shares = firsts(seats, "ordered");
    expect(shares["a/m[x]"]).toBeCloseTo(0.75, 1);
    expect(shares["a/m[y]"]).toBeCloseTo(0.25, 1);
    expect(shares["b/m[z]"]).toBeUndefined();
  });

  it("weighted: each candidate is first in proportion to its weight, and likewise among the rest", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 2, maxLength: 5 }),
        (weights) => {
          const all = weights.reduce((a, b) => a + b, 0);
          fc.pre(all > 0);
          const seats = weights.map((weight, i) => seat(`${i}/m`, "x", weight / all));
          const runs = 20_000;
          const shares = firsts(seats, "weighted", runs);
          weights.forEach((weight, i) => {
            const share = weight / all;
            // Five standard deviations.
            const bound = 5 * Math.sqrt((share * (1 - share)) / runs) + 1e-9;
            expect(Math.abs((shares[`${i}/m[x]`] ?? 0) - share)).toBeLessThanOrEqual(bound);
          });
        },
      ),
      { numRuns: 12 },
    );
  });

  it("each strategy returns each candidate once, with its endpoints in their order", () => {
    fc.assert(
      fc.property(some, fc.constantFrom(...ROUTING_STRATEGIES), (of, pick) => {
        const ofOne = Map.groupBy(of, ({ id }) => id);
        const seats: HostCandidate[] = [...ofOne.values()]
          .flat()
          .flatMap(({ id, credential, share, endpoints, usd }) =>
            Array.from({ length: endpoints }, (_, i) =>
              Object.assign(seat(id, credential, share, `${i}`), { info: priced(usd) }),
            ),
          );
        const reckoned = ({ id, credential }: HostCandidate) =>
          of.find((one) => one.id === id && one.credential === credential)!.ms;
        const out = applyRoutingRule(
          seats,
          ROUTING_RULES[pick],
          plain({ estimateLatency: reckoned }),
        );
        expect(new Set(out)).toEqual(new Set(seats));
        expect(out).toHaveLength(seats.length);
        const nth = new Map(seats.map((one, i) => [one, i]));
        for (const way of Map.groupBy(out, (s) => `${s.id} ${s.credential}`).values())
          expect(way.map((s) => nth.get(s)!)).toEqual(
            way.map((s) => nth.get(s)!).toSorted((a, b) => a - b),
          );
        if (pick === "ordered")
          expect([...new Set(out.map((s) => s.id))]).toEqual([...new Set(seats.map((s) => s.id))]);
        if (pick === "fastest") {
          const ms = out.map(reckoned);
          expect(ms).toEqual(ms.toSorted((a, b) => a - b));
        }
      }),
    );
  });

  it("cheapest: orders by simple multiplication, unknown prices last, equal prices in their order", () => {
    const dollars = fc.option(fc.tuple(fc.nat(500), fc.nat(500)), { nil: undefined });
    fc.assert(
      fc.property(
        fc.array(dollars, { minLength: 2, maxLength: 6 }),
        fc.nat(100_000),
        fc.integer({ min: 1, max: 1_024 }),
        (prices, input, output) => {
          const seats: HostCandidate[] = prices.map((of, i) =>
            Object.assign(seat(`${i}/m`, "x", 1), {
              info: of ? { price: perMillion(`${of[0] / 100}`, `${of[1] / 100}`) } : {},
            }),
          );
          const x = { ...plain().x, inputSize: { bytes: 0, tokens: input } } as never;
          const survey = { features: [], maxOutput: output };
          const out = applyRoutingRule(seats, ROUTING_RULES.cheapest, plain({ x, facts: survey }));
          const cents = (one: HostCandidate) => {
            const of = prices[seats.indexOf(one)];
            return of ? of[0] * input + of[1] * output : Infinity;
          };
          const expected = [...seats].sort((a, b) =>
            cents(a) < cents(b) ? -1 : cents(a) > cents(b) ? 1 : 0,
          );
          // A nano-dollar is a tenth of the smallest counted amount, rounded up.
          const sums = (list: readonly HostCandidate[]) =>
            list.map((one) => Math.ceil(cents(one) / 10));
          expect(sums(out)).toEqual(sums(expected));
        },
      ),
    );
  });
});

describe("weights", () => {
  const leaf = (id: string, weight?: number) => ({ id, weight });
  const own = (id: string) => ({ "a/m": 1, "b/m": 2, "z/m": 0 })[id];

  it("are the credentials' by default, and a candidate's own if set", () => {
    const entries = (parts: Parameters<typeof computeShares>[0]) =>
      Object.fromEntries(computeShares(parts, own));
    expect(entries([leaf("a/m"), leaf("b/m")])).toEqual({ "a/m": 1 / 3, "b/m": 2 / 3 });
    expect(entries([leaf("a/m", 3), leaf("b/m", 1)])).toEqual({ "a/m": 0.75, "b/m": 0.25 });
    expect(entries([leaf("a/m", 3), leaf("gone/m", 5)])).toEqual({ "a/m": 1, "gone/m": 0 });
    expect(entries([leaf("z/m"), leaf("a/m")])).toEqual({ "z/m": 0, "a/m": 1 });
    const nested = { parts: [leaf("a/m"), leaf("b/m")], weight: 3 };
    expect(entries([nested, leaf("z/m", 1)])).toEqual({ "a/m": 0.25, "b/m": 0.5, "z/m": 0.25 });
    expect(entries([{ parts: [leaf("gone/m")], weight: 3 }, leaf("a/m", 1)])).toEqual({
      "gone/m": 0,
      "a/m": 1,
    });
  });

  it("sum to 1, or to 0", () => {
    const part: fc.Arbitrary<NamePart> = fc.letrec((tie) => ({
      part: fc.oneof(
        { maxDepth: 3 },
        fc.record({
          id: fc.constantFrom("a/m", "b/m", "z/m", "gone/m"),
          weight: fc.option(fc.nat(5), { nil: undefined }),
        }),
        fc.record({
          parts: fc.array(tie("part"), { maxLength: 3 }),
          weight: fc.option(fc.nat(5), { nil: undefined }),
        }),
      ),
    })).part as fc.Arbitrary<NamePart>;
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
        const sum = [...computeShares(parts, own).values()].reduce((a, b) => a + b, 0);
        expect(sum < 1e-9 || Math.abs(sum - 1) < 1e-9).toBe(true);
      }),
    );
  });
});

it.each([
  [
    "turned",
    "b",
    (list: readonly any[]) => list.toSorted((a, b) => (a.credential < b.credential ? 1 : -1)),
  ],
  [
    "sorted",
    "a",
    (list: readonly any[]) => list.toSorted((a, b) => (a.credential < b.credential ? -1 : 1)),
  ],
])("a route hook's order of credentials is kept: %s", async (_how, first, route) => {
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end('{"say":"x","end":"stop","usage":{"input":1,"output":1}}');
  });
  const credentials = ["a", "b"].map((name) => ({
    name,
    fields: { api_key: name },
    weight: 1,
    models: undefined,
    zdr: undefined,
  }));
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: {
        endpoints: [
          {
            protocol: createToyProtocol(),
            base: up.base,
            auth: { header: "x-key", field: "api_key" },
          },
        ],
        credentials,
      } as never,
    },
    hooks: [{ route }],
  });
  for (let i = 0; i < 12; i++) await (await s.ask({ model: "p/m", text: "x" })).text();
  expect(up.asked.map(({ headers }) => headers["x-key"])).toEqual(Array(12).fill(first));
});
