// The gateway is never worse than calling the provider directly. For each way in which upstreams fail: the share of requests that
// succeeds, the calls that it costs, and what one key's requests do to another's. `npm run rig goodput` runs each way in each shape.
import { describe, expect, it } from "vitest";
import { judged, load, PATTERNS, SHAPES } from "./law.ts";
import { gateway, type Upstreams } from "./simulation.ts";

const CASES = Object.entries(PATTERNS).map(([name, upstreams], i) => {
  const shape = SHAPES[i % SHAPES.length]!;
  return { name, upstreams, shape, ...shape };
});

it.each(CASES)("$name: $targets targets, $processes processes", async ({ upstreams, shape }) => {
  expect(await judged(load(shape), upstreams)).toEqual([]);
});

it("a recovered candidate that fails far more often is called after a better one in cooldown", async () => {
  const of = load({ targets: 2, processes: 1, rates: { a: 20 }, seed: 11 });
  expect(await judged(of, PATTERNS["the first is better than the others"]!)).toEqual([]);
});

const poisoned =
  (failing: ReturnType<ReturnType<Upstreams>>): Upstreams =>
  () =>
  ({ key }) =>
    key === "poison" ? failing : { ms: 40 };

const POISON: readonly { readonly name: string; readonly upstreams: Upstreams }[] = [
  { name: "a 500", upstreams: poisoned({ ms: 5, kind: "upstream" }) },
  { name: "no answer in time", upstreams: poisoned({ ms: 20_000, kind: "timeout" }) },
  {
    name: "429 Request too large, with retry-after",
    upstreams: poisoned({
      ms: 5,
      kind: "rate_limited",
      message: "Request too large for m on tokens per min (TPM): Limit 10000, Requested 12000.",
      retryAfterMs: 60_000,
      headers: { "x-ratelimit-remaining-requests": "0" },
    }),
  },
  { name: "429 without a word", upstreams: poisoned({ ms: 5, kind: "rate_limited" }) },
];

describe.each([1, 2, 5])("with %i targets", (targets) => {
  it.each(POISON)("a key whose requests get $name changes nothing for another key", async (of) => {
    for (const processes of [1, 2]) {
      const rates = { poison: 10, other: 5 };
      const its = load({ targets, processes, requests: 3_000, rates });
      const { of: shares, moved, calls, asked } = await gateway(its, of.upstreams);
      expect([shares["other"], moved["other"]]).toEqual([1, undefined]);
      expect(calls).toBeLessThanOrEqual(1.1 * asked);
    }
  });
});

it("hedging costs at most the retry budget, and nothing if calls are fast", async () => {
  for (const slow of [0, 0.05, 1]) {
    const upstreams: Upstreams =
      () =>
      ({ target, luck }) => ({ ms: target === 0 && luck < slow ? 5_000 : 40 });
    const its = load({ targets: 2, processes: 1, requests: 3_000, rates: { one: 10 } });
    const { calls, asked, goodput, at } = await gateway({ ...its, hedgeMs: 200 }, upstreams);
    expect(goodput).toBe(1);
    expect(calls).toBeLessThanOrEqual(1.1 * asked);
    if (slow === 0) expect(calls).toBe(asked);
    else expect(at[1]).toBeGreaterThan(0);
  }
});
