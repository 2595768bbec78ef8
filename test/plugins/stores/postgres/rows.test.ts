// A row that is split into columns and read again is the same row, including implied values.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ALL_COLUMNS, decodeColumns, type ColumnRow } from "tollgate/store";
import { TermsCache } from "../../../../plugins/stores/postgres/rows/call-terms.ts";
import { NO_SETTLE_FIELDS, type LedgerRow } from "../../../../src/store/index.ts";
import { trialCount } from "../../../kit/law-effort.ts";

const word = fc.oneof(fc.constantFrom("messages", "responses", "r.1", "", "."), fc.string());
const named = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(word, fc.nat(12)).map(([request, n]) => ({ request, n })) },
  fc.record({ request: word, n: fc.oneof(fc.integer(), fc.constantFrom(1.5, 1e21, -1)) }),
);
const said = fc.record({
  named,
  attempt: fc.option(fc.constantFrom("r.1", "r.01", "r.-1", "r.1.5", "r", ".0", "r\n.2"), {
    freq: 3,
    nil: undefined,
  }),
  protocol: fc.option(word),
  privacy: fc.constantFrom("off" as const, "zdr" as const),
  asked: fc.option(
    fc.record(
      {
        model: word,
        frontend: fc.constantFrom("messages", "chat"),
        protocol: word,
        lane: fc.constantFrom("passthrough" as const, "translated" as const),
        stream: fc.boolean(),
        basis: fc.string(),
      },
      { requiredKeys: ["model", "frontend", "protocol", "lane", "stream"] },
    ),
    { nil: undefined },
  ),
  taken: fc.array(fc.tuple(word, fc.bigInt(0n, 99n)), { maxLength: 2 }),
  labels: fc
    .dictionary(
      fc.oneof(fc.string(), fc.constantFrom("~bigint", "__proto__")),
      fc.oneof(fc.string(), fc.constant("12")),
      { maxKeys: 2 },
    )
    .map((of) => ({ ...of })),
  usage: fc.record(
    {
      input: fc.oneof(fc.nat(), fc.constantFrom(0.5, 1e21, 2 ** 53, -1)),
      cache_read: fc.nat(9),
      output: fc.nat(),
      reasoning: fc.nat(9),
      seconds: fc.constantFrom(0.25, 3),
    },
    { requiredKeys: [] },
  ),
});
const found = (row: LedgerRow): ColumnRow => {
  const { columns, terms } = new TermsCache().planRow(row, row.at);
  const all = [...columns, ...terms.columns];
  return {
    ...Object.fromEntries(ALL_COLUMNS.map((name, i) => [name, all[i]])),
    instance: "one",
  } as unknown as ColumnRow;
};

it("a reserve and its settle", () => {
  fc.assert(
    fc.property(said, ({ named: { request, n }, attempt, protocol, privacy, asked, ...more }) => {
      const { taken, labels, usage } = more;
      const row: LedgerRow = {
        ...NO_SETTLE_FIELDS,
        kind: "reserve",
        attempt: attempt ?? `${request}.${n}`,
        request,
        n,
        at: 1_000,
        instance: "one",
        key: "alice",
        target: { provider: "openai", model: "gpt", protocol, credential: "c" },
        privacy,
        labels,
        account: undefined,
        price: null,
        clientRequest: asked,
        meterAmounts: taken,
        holdNano: 5n,
        usage: {},
        costNano: null,
        state: "open",
        outcome: "",
      } as never;
      expect(decodeColumns(found(row))).toEqual(row);
      const settle: LedgerRow = {
        ...row,
        kind: "settle",
        state: "exact",
        meterAmounts: [],
        usage,
        costNano: 3n,
      };
      expect(decodeColumns(found(settle))).toEqual(settle);
    }),
    { numRuns: trialCount(500) },
  );
});

it("known texts are referenced from then on, and get a new number after they are evicted", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 40 }), (calls) => {
      const known = new TermsCache();
      const there = new Map<number, string>();
      for (const [model, lost] of calls) {
        const of = {
          ...NO_SETTLE_FIELDS,
          kind: "reserve",
          attempt: "r.1",
          request: "r",
          n: 1,
          at: 1,
          key: "a",
        };
        const target = { provider: "p", model: `m${model}`, protocol: null, credential: "c" };
        const row = { ...of, target, privacy: "off", labels: {}, price: null, meterAmounts: [] };
        const booked = known.planRow({ ...row, usage: {}, outcome: "" } as never, 1);
        const { fresh, known: named } = known.partition([booked, booked]);
        // In both cases it is written once.
        expect([...fresh.map(({ id }) => id), ...named]).toEqual([booked.terms.id]);
        for (const { id, cacheKey } of fresh) {
          expect(there.has(id)).toBe(false);
          there.set(id, cacheKey);
        }
        expect(there.get(booked.terms.id)).toBe(booked.terms.cacheKey);
        if (lost) known.invalidate();
        else known.markStored([booked]);
      }
    }),
  );
});

it("nothing is evicted within a batch, however many texts it has", () => {
  const known = new TermsCache();
  const of = {
    ...NO_SETTLE_FIELDS,
    kind: "reserve",
    attempt: "r.1",
    request: "r",
    n: 1,
    at: 1,
    key: "a",
  };
  const book = (model: string) => {
    const target = { provider: "p", model, protocol: null, credential: "c" };
    const row = { ...of, target, privacy: "off", labels: {}, price: null, meterAmounts: [] };
    return known.planRow({ ...row, usage: {}, outcome: "" } as never, 1);
  };
  known.beginBatch();
  known.markStored([book("first")]);
  for (let i = 0; i < 20_000; i++) book(`m${i}`);
  expect(known.partition([book("first"), book("another")])).toMatchObject({
    known: [1],
    fresh: [{ id: 20_002 }],
  });
  // Before the next one they exceed the limit.
  known.beginBatch();
  expect(known.partition([book("first")])).toMatchObject({ known: [], fresh: [{ id: 20_003 }] });
});
