// Sums of sums equal the sums of their rows in any order, and have the same text.
import { expect, it } from "vitest";
import * as fc from "fast-check";
import {
  createRollup,
  createTotals,
  type RollupLevel,
  rollupLevelFor,
  ROLLUP_LEVELS,
  parseRollupGroups,
  parseRollup,
} from "tollgate/store";
import type { SummableRow, TotalsQuery } from "tollgate/store";
import { trialCount } from "../../kit/law-effort.ts";

/** What a result of each depth must contain. */
const SAYS: Readonly<Record<RollupLevel, TotalsQuery["by"]>> = {
  calls: ["provider", "model", "credential", "outcome", "price", "state"],
  holders: ["key", "accounts", "state"],
  tags: ["key", "account", "label", "state"],
  keys: ["provider", "model", "key", "accounts", "state"],
  labels: ["provider", "model", "key", "labels", "state"],
};

const row: fc.Arbitrary<SummableRow> = fc.record({
  kind: fc.constantFrom("settle" as const, "settle" as const, "adjust" as const),
  at: fc.constant(0),
  key: fc.constantFrom("a", "b", "words", "0"),
  labels: fc.constantFrom({}, { a: "b" }, { a: "b", c: '"' }, { c: '"', a: "b" }),
  account: fc.constantFrom(undefined, "", "x/y"),
  usage: fc.record(
    { input: fc.nat(), seconds: fc.integer({ min: 0, max: 9e6 }).map((n) => n / 1e6) },
    { requiredKeys: [] },
  ),
  costNano: fc.option(fc.bigInt(-(2n ** 63n), 2n ** 63n), { nil: null, freq: 4 }),
  state: fc.constantFrom("exact" as const, "estimated" as const, "void" as const),
  outcome: fc.constantFrom("ok", "timeout"),
  price: fc.constantFrom(null, "p"),
  clientRequest: fc.constant(undefined),
  target: fc.record({
    provider: fc.constantFrom("p", "q"),
    model: fc.constantFrom("m", "n/m", "é\ud800"),
    credential: fc.constant("c"),
  }),
});

it("are the same in any order and with any grouping, at every depth", () => {
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 40 }),
      fc.nat(40),
      fc.constantFrom(...ROLLUP_LEVELS),
      (rows, cut, depth) => {
        const whole = createRollup(depth);
        for (const each of rows) whole.add(each);
        const parts = createRollup(depth);
        for (const some of [rows.slice(cut), rows.slice(0, cut).toReversed()]) {
          const deep = createRollup("labels");
          for (const each of some) deep.add(each);
          parts.merge(parseRollup(deep.serialize()));
        }
        expect(parts.serialize()).toBe(whole.serialize());
        expect(parseRollup(whole.serialize()).serialize()).toBe(whole.serialize());
        const plain = createTotals(SAYS[depth]);
        const fast = createTotals(SAYS[depth]);
        for (const each of rows)
          if (each.kind === "adjust" || each.state !== "void") plain.add(each);
        for (const [facts, amounts] of parseRollupGroups(parts.serialize()))
          fast.addGroup(facts, amounts, 0, {});
        expect(fast.totals()).toEqual(plain.totals());
      },
    ),
    { numRuns: trialCount(300) },
  );
});

it("the lowest sufficient depth is used", () => {
  for (const depth of ROLLUP_LEVELS) expect(rollupLevelFor(SAYS[depth], {})).toBe(depth);
  expect(rollupLevelFor(["state", "day", "hour"], {})).toBeUndefined();
  expect(rollupLevelFor(["state"], { account: "a" })).toBe("holders");
  expect(rollupLevelFor(["key"], { outcome: "ok" })).toBe("keys");
  expect(rollupLevelFor([], { label: "a=b" })).toBe("tags");
  expect(rollupLevelFor(["model"], { label: "a=b" })).toBe("labels");
});

it("fractions are summed in decimal", () => {
  const sums = createTotals([]);
  const [one] = fc.sample(row, { numRuns: 1, seed: 1 });
  for (const seconds of [0.1, 0.2, 0.7])
    sums.add({ ...one!, kind: "settle", state: "exact", usage: { seconds } });
  expect(sums.totals()[0]!.usage.seconds).toBe(1);
});
