// Compares generated months of traffic with bills of a fake provider. What was planted is known, so
// each named cause can be checked.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  distribute,
  divideHalfEven,
  modelKey,
  parseDecimal,
  type BillLine,
} from "../../../plugins/observers/reconcile/bill-line.ts";
import {
  compareBill,
  type BillGroup,
  type Cause,
  type Comparison,
  type LedgerCall,
} from "../../../plugins/observers/reconcile/compare.ts";

const UNITS = ["input", "cache_read", "output"] as const;
type Tokens = Readonly<Record<(typeof UNITS)[number], number>>;
/** Pico-dollars per token. */
type Rates = Readonly<Record<(typeof UNITS)[number], number>>;

const tokens = fc.record({
  input: fc.integer({ min: 0, max: 200_000 }),
  cache_read: fc.integer({ min: 0, max: 200_000 }),
  output: fc.integer({ min: 1, max: 20_000 }),
});
const rates = fc.record({
  input: fc.integer({ min: 1, max: 30_000_000 }),
  cache_read: fc.integer({ min: 1, max: 3_000_000 }),
  output: fc.integer({ min: 1, max: 150_000_000 }),
});
const PLANTS = [
  "exact",
  "price",
  "estimated",
  "recovered",
  "unpriced",
  "failed",
  "outside",
  "unbilled",
] as const;
type Plant = (typeof PLANTS)[number];
const planted = fc.record({
  plant: fc.constantFrom<Plant>(...PLANTS),
  true: tokens,
  guess: tokens,
});

const costOf = (of: Tokens, at: Rates): bigint =>
  divideHalfEven(
    UNITS.reduce((sum, unit) => sum + BigInt(of[unit]) * BigInt(at[unit]), 0n),
    1_000n,
  );

interface Day {
  readonly day: string;
  readonly model: string;
  readonly rates: Rates;
  readonly calls: readonly {
    readonly plant: Plant;
    readonly true: Tokens;
    readonly guess: Tokens;
  }[];
  readonly countsCalls: boolean;
}

/** Returns the calls of the ledger and the lines of the bill. */
function play(days: readonly Day[]): { readonly calls: LedgerCall[]; readonly lines: BillLine[] } {
  const calls: LedgerCall[] = [];
  const lines: BillLine[] = [];
  for (const { day, model, rates: at, calls: made, countsCalls } of days) {
    const sums = { input: 0, cache_read: 0, output: 0 };
    let billed = 0;
    for (const [i, call] of made.entries()) {
      const { plant } = call;
      const attempt = `${day}.${model}.${i}`;
      const known = {
        attempt,
        day,
        startDay: day,
        model,
        credential: "main",
        recovered: plant === "recovered",
      };
      const other = {
        input: at.input * 2 + 1,
        cache_read: at.cache_read * 2 + 1,
        output: at.output * 2 + 1,
      };
      if (plant === "exact" || plant === "unbilled")
        calls.push({ ...known, state: "exact", usage: call.true, nano: costOf(call.true, at) });
      if (plant === "price")
        calls.push({ ...known, state: "exact", usage: call.true, nano: costOf(call.true, other) });
      if (plant === "estimated" || plant === "recovered")
        calls.push({
          ...known,
          state: "estimated",
          usage: call.guess,
          nano: costOf(call.guess, at),
        });
      if (plant === "unpriced")
        calls.push({ ...known, state: "unpriced", usage: call.true, nano: 0n });
      if (plant === "failed") calls.push({ ...known, state: "void", usage: {}, nano: 0n });
      if (plant === "unbilled") continue;
      billed++;
      for (const unit of UNITS) sums[unit] += call.true[unit];
    }
    for (const unit of UNITS)
      if (sums[unit] > 0)
        lines.push({
          id: `${day}.${model}.${unit}`,
          day,
          model: `${model}-2025-08-07`,
          project: undefined,
          key: undefined,
          unit,
          count: BigInt(sums[unit]) * 1_000_000n,
          pico: BigInt(sums[unit]) * BigInt(at[unit]),
          description: "",
        });
    if (countsCalls)
      lines.push({
        id: `${day}.${model}.calls`,
        day,
        model,
        project: undefined,
        key: undefined,
        unit: "calls",
        count: BigInt(billed) * 1_000_000n,
        pico: undefined,
        description: "",
      });
  }
  return { calls, lines };
}

const month = (plants: readonly Plant[]): fc.Arbitrary<readonly Day[]> =>
  fc.uniqueArray(
    fc.record({
      day: fc.integer({ min: 1, max: 30 }).map((day) => `2026-11-${String(day).padStart(2, "0")}`),
      model: fc.constantFrom("gpt-6", "gpt-6-mini"),
      rates,
      calls: fc.array(
        planted.filter(({ plant }) => plants.includes(plant)),
        { maxLength: 12 },
      ),
      countsCalls: fc.boolean(),
    }),
    { selector: ({ day, model }) => `${day} ${model}`, maxLength: 12 },
  );

const sumOf = ({ differences }: Pick<BillGroup, "differences">): bigint =>
  differences.reduce((sum, { nano }) => sum + nano, 0n);
const causesOf = ({ groups }: Comparison): ReadonlySet<Cause> =>
  new Set(groups.flatMap(({ differences }) => differences.map(({ cause }) => cause)));
const adjusted = (
  calls: readonly LedgerCall[],
  { corrections }: Comparison,
): readonly LedgerCall[] => {
  const by = new Map(corrections.map(({ attempt, nano }) => [attempt, nano]));
  return calls.map((call) => ({ ...call, nano: call.nano + (by.get(call.attempt) ?? 0n) }));
};

describe("a bill", () => {
  it("law: the causes of each group add up to its difference, to the nano-dollar", () => {
    fc.assert(
      fc.property(month(PLANTS), (days) => {
        const { calls, lines } = play(days);
        const compared = compareBill(calls, lines);
        for (const group of compared.groups)
          expect(sumOf(group)).toBe(group.theirsNano - group.oursNano);
        const ours = calls.reduce((sum, { nano }) => sum + nano, 0n);
        expect(compared.groups.reduce((sum, { oursNano }) => sum + oursNano, 0n)).toBe(ours);
      }),
    );
  });

  it.each(PLANTS)("law: if only %s calls differ, no other cause is named", (plant) => {
    fc.assert(
      fc.property(month(plant === "exact" ? ["exact"] : ["exact", plant]), (days) => {
        const { calls, lines } = play(days);
        const compared = compareBill(calls, lines);
        const allowed: Cause[] = plant === "exact" ? [] : [plant];
        // Without a count of calls, a failed call is usage that the ledger does not have. Usage that
        // exceeds twice an estimate is not attributed to it.
        if (plant === "failed" || plant === "estimated" || plant === "recovered")
          allowed.push("outside");
        // A call that was not billed, on a day without other calls, has no rate.
        expect(
          [...causesOf(compared)].filter(
            (cause) => cause !== "rounding" && !allowed.includes(cause),
          ),
        ).toEqual([]);
      }),
    );
  });

  it("law: rounding is at most one nano-dollar per call and line", () => {
    fc.assert(
      fc.property(month(PLANTS), (days) => {
        const { calls, lines } = play(days);
        for (const { differences, day, model } of compareBill(calls, lines).groups)
          for (const { cause, nano } of differences)
            if (cause === "rounding") {
              const count = calls.filter((call) => call.day === day && call.model === model).length;
              expect(nano < 0n ? -nano : nano).toBeLessThanOrEqual(BigInt(count + 12));
            }
      }),
    );
  });

  it("law: after the corrections, only causes that concern no call remain", () => {
    fc.assert(
      fc.property(month(PLANTS), (days) => {
        const { calls, lines } = play(days);
        const compared = compareBill(calls, lines);
        const again = compareBill(adjusted(calls, compared), lines);
        const total = (of: Comparison, cause: Cause) =>
          of.groups
            .flatMap(({ differences }) => differences)
            .filter((each) => each.cause === cause)
            .reduce((sum, { nano }) => sum + nano, 0n);
        for (const cause of ["outside", "unbilled", "failed"] as const)
          expect(total(again, cause)).toBe(total(compared, cause));
        const left = again.groups.reduce(
          (sum, { theirsNano, oursNano }) => sum + theirsNano - oursNano,
          0n,
        );
        const named = (["outside", "unbilled", "failed", "rounding"] as const).reduce(
          (sum, cause) => sum + total(compared, cause),
          0n,
        );
        expect(left).toBe(named);
      }),
    );
  });

  const line = (more: Partial<BillLine>): BillLine => ({
    id: "1",
    day: "2026-11-27",
    model: "gpt-6",
    project: undefined,
    key: undefined,
    unit: undefined,
    count: undefined,
    pico: undefined,
    description: "",
    ...more,
  });
  const call = (more: Partial<LedgerCall>): LedgerCall => ({
    attempt: "a",
    startDay: "2026-11-27",
    day: "2026-11-27",
    model: "gpt-6",
    credential: "main",
    state: "exact",
    recovered: false,
    usage: { input: 10 },
    nano: 20n,
    ...more,
  });
  const billed = line({ unit: "input", count: 10_000_000n, pico: 20_000n });

  it("names taxes, credits, and charges for usage without a count", () => {
    const tax = line({ id: "tax", model: undefined, pico: 5_000n });
    const search = line({ id: "search", pico: 7_000n, description: "web search" });
    const { groups } = compareBill([call({})], [billed, tax, search]);
    expect(groups.flatMap(({ differences }) => differences)).toMatchObject([
      { cause: "other_charge", nano: 5n, lines: ["tax"] },
      { cause: "uncounted", nano: 7n, lines: ["search"] },
    ]);
  });

  it("counts a call that spanned midnight on the day on which the provider billed it", () => {
    const late = call({ day: "2026-11-28" });
    expect(causesOf(compareBill([late], [billed]))).toEqual(new Set());
    expect(causesOf(compareBill([late], [{ ...billed, day: "2026-11-28" }]))).toEqual(new Set());
  });

  it("compares models by their names without date, region, vendor, and edition", () => {
    for (const [bill, ledger] of [
      ["gpt-5-2025-08-07", "gpt-5"],
      [
        "Claude Sonnet 4.5 (Amazon Bedrock Edition)",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
      ],
      ["NovaLite", "amazon.nova-lite-v1:0"],
      ["Gemini 2.5 Flash", "gemini-2.5-flash"],
      ["claude-opus-5@20260528", "claude-opus-5"],
    ] as const)
      expect(modelKey(bill)).toBe(modelKey(ledger));
    expect(modelKey("gpt-5-mini")).not.toBe(modelKey("gpt-5"));
  });

  it("parses decimals with exponents, and rounds further digits half to even", () => {
    expect(parseDecimal("1.5e-7", 12)).toBe(150_000n);
    expect(parseDecimal("0.8958740000000000", 12)).toBe(895_874_000_000n);
    expect(parseDecimal("-0.0000000000005", 12)).toBe(0n);
    expect(parseDecimal("0.0000000000015", 12)).toBe(2n);
    expect(() => parseDecimal("1,5", 12)).toThrow(/not a number/);
  });

  it("reports only the requested days, and looks for a call that spanned midnight on the days next to them", () => {
    const late = call({ day: "2026-11-28" });
    const next = { ...billed, day: "2026-11-28" };
    const days = { first: "2026-11-27", last: "2026-11-27" };
    const before = compareBill([late], [billed], days);
    expect(
      before.groups.map(({ day, oursNano, differences }) => [day, oursNano, differences]),
    ).toEqual([["2026-11-27", 20n, []]]);
    const after = compareBill([late], [next], days);
    expect(after).toEqual({ groups: [], corrections: [] });
  });

  it("names calls whose rows were pruned, and corrects none of them", () => {
    const sum = call({ attempt: "", summed: 7, usage: { input: 10 }, nano: 20n });
    const { groups, corrections } = compareBill([sum], [billed]);
    expect(groups).toMatchObject([{ calls: 7, differences: [] }]);
    const wrong = compareBill([{ ...sum, nano: 5n }], [billed]);
    expect(wrong.groups[0]!.differences).toEqual([
      { cause: "pruned", nano: 15n, calls: 7, attempts: [], lines: [] },
    ]);
    const estimated = compareBill(
      [{ ...sum, state: "estimated", nano: 20n }],
      [line({ unit: "input", count: 15_000_000n, pico: 30_000n })],
    );
    expect(estimated.groups[0]!.differences).toMatchObject([
      { cause: "pruned", nano: 10n, calls: 7 },
    ]);
    expect([...corrections, ...wrong.corrections, ...estimated.corrections]).toEqual([]);
  });

  describe("by credential", () => {
    const credentials = new Map([
      ["key_a", "a"],
      ["key_b", "b"],
    ]);
    const usage = (key: string, count: bigint, project = "p") =>
      line({ id: `usage ${key}`, key, project, unit: "input", count });
    const cost = line({ id: "cost", project: "p", unit: "input", pico: 60_000n });

    it("divides the cost of a project among its keys", () => {
      const calls = [
        call({ attempt: "1", credential: "a", usage: { input: 10 }, nano: 20n }),
        call({ attempt: "2", credential: "b", usage: { input: 20 }, nano: 30n }),
      ];
      const lines = [cost, usage("key_a", 10_000_000n), usage("key_b", 20_000_000n)];
      const { groups, corrections } = compareBill(calls, lines, { credentials });
      expect(groups).toMatchObject([
        {
          credential: "a",
          projects: ["p"],
          keys: ["key_a"],
          oursNano: 20n,
          theirsNano: 20n,
          differences: [],
        },
        {
          credential: "b",
          keys: ["key_b"],
          theirsNano: 40n,
          differences: [{ cause: "price", nano: 10n }],
        },
      ]);
      expect(corrections).toEqual([{ attempt: "2", nano: 10n, cause: "price" }]);
    });

    it("uses counts of keys only as shares, if the cost itself has a count", () => {
      const counted = { ...cost, count: 30_000_000n };
      const shares = [usage("key_a", 10n), usage("key_b", 20n)].map((each) => ({
        ...each,
        isShare: true,
      }));
      const { groups } = compareBill([], [counted, ...shares], { credentials });
      expect(groups.map(({ credential, theirs }) => [credential, theirs])).toEqual([
        ["a", { input: 10_000_000n }],
        ["b", { input: 20_000_000n }],
      ]);
      expect(compareBill([], [counted, ...shares]).groups).toMatchObject([
        { theirs: { input: 30_000_000n }, theirsNano: 60n },
      ]);
    });

    it("counts other keys and projects as usage that did not pass the gateway", () => {
      const lines = [
        cost,
        usage("key_a", 10_000_000n),
        usage("key_other", 20_000_000n),
        line({ id: "2", project: "q", unit: "input", count: 5_000_000n, pico: 5_000n }),
      ];
      const calls = [call({ credential: "a", usage: { input: 10 }, nano: 20n })];
      const { groups } = compareBill(calls, lines, { credentials });
      expect(
        groups.map(({ credential, differences }) => [credential, differences[0]?.cause]),
      ).toEqual([
        [undefined, "outside"],
        ["a", undefined],
      ]);
      expect(groups[0]!.theirsNano).toBe(45n);
    });

    it("compares a model as a whole if a cost cannot be divided", () => {
      const calls = [
        call({ attempt: "1", credential: "a" }),
        call({ attempt: "2", credential: "b", usage: { input: 20 }, nano: 40n }),
      ];
      const lines = [
        line({ id: "x", model: "gpt-5", key: "key_a", project: "p", unit: "input", count: 1n }),
        line({ id: "y", model: "gpt-5", key: "key_b", project: "p", unit: "input", count: 1n }),
        { ...cost, count: 30_000_000n },
      ];
      const groups = compareBill(calls, lines, { credentials }).groups.filter(
        ({ model }) => model === "gpt-6",
      );
      expect(groups).toMatchObject([{ credential: undefined, calls: 2, differences: [] }]);
    });

    it("accepts IDs of projects, workspaces, and accounts", () => {
      const accounts = new Map([
        ["111", "prod"],
        ["222", "test"],
      ]);
      const lines = ["111", "222"].map((project) => ({ ...billed, id: project, project }));
      const calls = [
        call({ attempt: "1", credential: "prod" }),
        call({ attempt: "2", credential: "test", nano: 15n }),
      ];
      const { groups } = compareBill(calls, lines, { credentials: accounts });
      expect(groups.map(({ credential, differences }) => [credential, differences.length])).toEqual(
        [
          ["prod", 0],
          ["test", 1],
        ],
      );
    });

    it("law: the parts of a month add up to the month, and each part's causes to its difference", () => {
      const keys = ["key_a", "key_b", "key_other"] as const;
      fc.assert(
        fc.property(
          month(PLANTS),
          fc.infiniteStream(fc.record({ key: fc.constantFrom(...keys), weight: fc.nat(9) })),
          (days, draws) => {
            const { calls, lines } = play(days);
            const drawn = calls.map((each, i) => ({
              ...each,
              credential: i % 2 === 0 ? "a" : "b",
            }));
            // Each count of the bill is divided among keys, and each cost is that of the project.
            const split = lines.flatMap((each): BillLine[] => {
              const project = { ...each, project: "p" };
              if (each.unit === "calls" || each.count === undefined) return [project];
              const weights = keys.map(() => BigInt(draws.next().value!.weight));
              return [
                project,
                ...distribute(each.count, weights).map((count, i) => ({
                  ...project,
                  key: keys[i],
                  count,
                  pico: undefined,
                  isShare: true,
                })),
              ];
            });
            const whole = compareBill(drawn, split);
            const parts = compareBill(drawn, split, { credentials });
            const sum = (of: Comparison, what: (group: BillGroup) => bigint) =>
              of.groups.reduce((all, each) => all + what(each), 0n);
            for (const group of parts.groups)
              expect(sumOf(group)).toBe(group.theirsNano - group.oursNano);
            expect(sum(parts, ({ oursNano }) => oursNano)).toBe(
              sum(whole, ({ oursNano }) => oursNano),
            );
            // Each part is rounded once.
            const off =
              sum(parts, ({ theirsNano }) => theirsNano) -
              sum(whole, ({ theirsNano }) => theirsNano);
            expect(off < 0n ? -off : off).toBeLessThanOrEqual(BigInt(parts.groups.length));
          },
        ),
      );
    });
  });

  it("distributes an amount without a remainder", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -1_000n, max: 1_000n }),
        fc.array(fc.bigInt({ min: 0n, max: 50n }), { minLength: 1 }),
        (amount, weights) => {
          expect(distribute(amount, weights).reduce((sum, part) => sum + part, 0n)).toBe(amount);
        },
      ),
    );
  });
});
