// Series of a metric: up to a maximum, however long a found series is kept, and each observation
// beyond it is counted once.
import fc from "fast-check";
import { expect, it } from "vitest";
import { COUNTED_FAMILIES } from "../../../plugins/observers/metrics/families.ts";
import {
  createCounters,
  createHistograms,
  OTHER,
} from "../../../plugins/observers/metrics/series.ts";

const MOST = 4;

/** Two external names, and a label of the gateway, which is never folded. */
const asked = fc.array(
  fc.record({
    from: fc.constantFrom("a", "b", "c", OTHER),
    to: fc.constantFrom("a", "b", OTHER),
    kind: fc.constantFrom("x", "y"),
    /** Whether it is looked up again, or was kept from an earlier time. */
    kept: fc.boolean(),
    amount: fc.integer({ min: 0, max: 5 }),
  }),
  { maxLength: 60 },
);

it.each(["count", "money", "histogram"] as const)(
  "%s: the first series are kept; further ones are folded, kept, or reused",
  (type) =>
    fc.assert(
      fc.property(asked, (all) => {
        const labels = ["from", "to", "fault"];
        const money = createCounters({ ...COUNTED_FAMILIES.fallbacks, labels }, MOST);
        const times = createHistograms({ ...COUNTED_FAMILIES.requestSeconds, labels }, MOST);
        const series = type === "histogram" ? times : money;
        const add = (values: string[], amount: number, before?: unknown) => {
          if (type === "histogram") {
            const of = (before as ReturnType<typeof times.get>) ?? times.get(...values);
            of.observe(amount);
            return of;
          }
          const of = (before as ReturnType<typeof money.get>) ?? money.get(...values);
          if (type === "count") of.add(amount);
          else of.addNano(BigInt(amount));
          return of;
        };
        const held = new Map<string, unknown>();
        const own = new Set<string>();
        let beyond = 0;
        let total = 0;
        for (const { from, to, kind, kept, amount } of all) {
          const values = [from, to, kind];
          const name = values.join();
          if (own.size < MOST) own.add(name);
          if (!own.has(name)) beyond++;
          held.set(name, add(values, amount, kept ? held.get(name) : undefined));
          total += amount;
        }
        expect(series.overflowCount()).toBe(beyond);
        expect(series.overflowCount("x") + series.overflowCount("y")).toBe(beyond);
        // Two types of the name `other`, which are not folded together.
        expect(series.all.length).toBeLessThanOrEqual(MOST + 2);
        const names = series.all.map(({ values }) => values.join());
        expect(new Set(names).size).toBe(names.length);
        const sum = series.all.reduce(
          (before, { of }) => before + ("counts" in of ? of.sum : of.value + Number(of.nano)),
          0,
        );
        expect(sum).toBe(total);
      }),
    ),
);

it("a lookup without an addition is not folded", () => {
  const few = createCounters(COUNTED_FAMILIES.translationWarnings, 1);
  few.get("a").add();
  few.get("b");
  few.get("c");
  expect(few.overflowCount()).toBe(0);
});
