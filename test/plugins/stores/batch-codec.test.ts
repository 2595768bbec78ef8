// Messages between the threads, and to the file, are decoded unchanged, whatever they contain.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { StoreCommand, LimitState, CommandResult } from "tollgate/plugin";
import { type LedgerRow, reserveRow, settleRow, toEntry } from "tollgate/store";
import { Reader } from "../../../plugins/stores/sqlite/read/reader.ts";
import {
  createBatchEncoder,
  createBatchDecoder,
  decodeResults,
  encodeResults,
  type EncodedReserve,
} from "../../../plugins/stores/sqlite/data/batch-codec.ts";
import { Writer } from "../../../plugins/stores/sqlite/write/writer.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { codePoint } from "../../kit/code-points.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

type Told<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

const money = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
const amount = fc.option(money, { nil: null });
const word = fc.string({ unit: codePoint, maxLength: 12 });
/** Lookup keys are text. */
const name = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 12 })
  .filter((text) => !text.includes("\0") && text.isWellFormed());
const limit = fc.record({
  scope: word,
  unit: fc.constantFrom("requests" as const, "nano_usd" as const),
  max: fc.oneof(fc.nat(), fc.bigInt({ min: 0n, max: 2n ** 70n })),
  per: fc.constantFrom("minute" as const, "open" as const),
});
const usage = fc.record({ input: fc.nat(), output: fc.nat() }, { requiredKeys: [] });
const part = fc.record({
  model: word,
  usage,
  price: fc.option(word, { nil: null }),
  costNano: amount,
});
const asked = fc.record(
  {
    model: word,
    frontend: word,
    protocol: word,
    mode: fc.constantFrom("passthrough" as const, "translated" as const),
    stream: fc.boolean(),
    policyBasis: word,
  },
  { requiredKeys: ["model", "frontend", "protocol", "mode", "stream"] },
);

const reserve: fc.Arbitrary<Told<"reserve">> = fc.record(
  {
    do: fc.constant("reserve" as const),
    at: fc.nat(),
    attempt: name,
    request: word,
    number: fc.nat(),
    key: word,
    target: fc.record({
      provider: word,
      model: word,
      protocol: fc.option(word, { nil: null }),
      credential: word,
    }),
    privacy: fc.constantFrom("off" as const, "strict" as const),
    labels: fc.dictionary(fc.constantFrom("team", "rare", "holdNano"), word),
    claims: fc.constant([]),
    holdNano: amount,
    price: fc.option(word, { nil: null }),
    clientRequest: asked,
  },
  {
    noNullPrototype: true,
    requiredKeys: [
      "do",
      "at",
      "attempt",
      "request",
      "number",
      "key",
      "target",
      "privacy",
      "labels",
      "claims",
      "holdNano",
      "price",
    ],
  },
);

const settle: fc.Arbitrary<Omit<Told<"settle">, "attempt">> = fc.record(
  {
    do: fc.constant("settle" as const),
    at: fc.nat(),
    state: fc.constantFrom("exact" as const, "void" as const),
    usage,
    costNano: amount,
    outcome: word,
    upstreamId: word,
    upstreamCostNano: money,
    parts: fc.array(part, { maxLength: 2 }),
    finish: word,
    ms: fc.record({
      total: fc.nat(),
      headers: fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 }),
    }),
  },
  { noNullPrototype: true, requiredKeys: ["do", "at", "state", "usage", "costNano", "outcome"] },
);

test("calls and their entries have the same content", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-wire-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "ledger.db");
  const writer = new Writer({ file, durability: "relaxed", ballastMb: 0 }, "me");
  onTestFinished(() => writer.close());
  const packer = createBatchEncoder();
  let runs = 0;
  let seq = 0;
  const call = fc.tuple(reserve, settle);
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 6 }), fc.boolean(), async (calls, twice) => {
      runs++;
      const rows: LedgerRow[] = [];
      const batch: StoreCommand[] = [];
      for (const [i, [open, close]] of calls.entries()) {
        const one = { ...open, attempt: `${open.attempt}${runs}.${i}` };
        const end = { ...close, attempt: one.attempt };
        batch.push(one, end);
        const row = reserveRow(one, "me", []);
        rows.push(row, settleRow(row, end, "me"));
      }
      const text = packer.encode(batch);
      expect(decodeResults(batch, writer.apply(text))).toEqual(batch.map(() => ({ ok: true })));
      if (twice) writer.apply(packer.encode(batch));
      writer.apply(packer.encode([{ do: "price", at: 0, hash: `${runs}`, price: { lines: [] } }]));
      const reader = new Reader({ file });
      const found = (await reader.listEntries({}, { after: String(seq), limit: 100 })).items;
      reader.close();
      expect(found).toEqual(rows.map((row, i) => toEntry(row, seq + 1 + i)));
      seq += rows.length;
    }),
    { numRuns: trialCount(60) },
  );
});

test("rare fields are encoded unchanged", () => {
  const rare: fc.Arbitrary<StoreCommand> = fc.oneof(
    fc.record({
      do: fc.constant("progress" as const),
      at: fc.nat(),
      attempt: word,
      usage,
      costNano: amount,
    }),
    fc.record({
      do: fc.constant("adjust" as const),
      at: fc.nat(),
      attempt: word,
      costNano: fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }),
      reason: word,
      actor: word,
    }),
    fc.record({ do: fc.constant("heartbeat" as const), at: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.array(rare), (batch) => {
      expect(createBatchDecoder()(createBatchEncoder().encode(batch))).toEqual(batch);
    }),
  );
});

test("texts are sent once, and again after an eviction; attempts and claims are unchanged", () => {
  const claim = fc.tuple(limit, money).map(([limit, take]) => ({ ...limit, take }));
  const claiming = fc
    .tuple(reserve, fc.array(claim, { maxLength: 2 }))
    .map(([one, claims]) => ({ ...one, claims }));
  const packer = createBatchEncoder();
  const unpack = createBatchDecoder();
  const many = { ...fc.sample(reserve, 1)[0]!, attempt: "a" };
  let labelled = 0;
  fc.assert(
    fc.property(fc.array(claiming, { maxLength: 4 }), fc.nat(400), (batch, more) => {
      const others = Array.from({ length: more }, () => ({
        ...many,
        labels: { user: `${labelled++}` },
      }));
      const lines = unpack(packer.encode([...others, ...batch])).slice(more) as EncodedReserve[];
      expect(lines.map(({ at, attempt, claims }) => ({ at, attempt, claims }))).toEqual(
        batch.map(({ at, attempt, claims }) => ({ at, attempt, claims })),
      );
      for (const [i, { key, target, labels }] of batch.entries()) {
        const said = JSON.parse(lines[i]!.terms.text);
        expect([said[0], said[2], said[6]]).toEqual([key, target.model, { ...labels }]);
      }
      const again = packer.encode(batch);
      expect(again.startsWith("t\t")).toBe(false);
      expect(unpack(again).length).toBe(batch.length);
    }),
  );
  expect(labelled).toBeGreaterThan(1_000);
});

test("labels may have the names of inherited properties", () => {
  const one = { ...fc.sample(reserve, 1)[0]!, claims: [] };
  const name = fc.constantFrom("constructor", "toString", "hasOwnProperty", "__proto__", "team");
  const labels = fc
    .array(fc.tuple(name, word), { maxLength: 2 })
    .map((pairs) => Object.fromEntries(pairs));
  const packer = createBatchEncoder();
  const unpack = createBatchDecoder();
  fc.assert(
    fc.property(labels, (labels) => {
      const [line] = unpack(packer.encode([{ ...one, labels }])) as EncodedReserve[];
      expect(JSON.stringify(JSON.parse(line!.terms.text)[6])).toBe(JSON.stringify(labels));
    }),
  );
});

test("a stored result does not retain its batch", () => {
  const one = { ...fc.sample(reserve, 1)[0]!, claims: [] };
  const rest: StoreCommand[] = Array.from({ length: 500 }, (_, i) => ({
    ...one,
    attempt: `attempt-${i}`,
    request: "a request with a name of some length, as they have",
  }));
  const packer = createBatchEncoder();
  const unpack = createBatchDecoder();
  const open: unknown[] = [];
  const used = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = used();
  for (let i = 0; i < 200; i++) {
    const fresh = { ...one, key: `key-${i}`, holdNano: 10n ** 15n };
    open.push(unpack(packer.encode([fresh, ...rest]))[0]);
  }
  // The batches had 10 MB.
  expect(used() - before).toBeLessThan(2_000_000);
  expect(open.length).toBe(200);
});

test("results", () => {
  const encodings = new Set<string>();
  const left = fc.oneof(fc.nat(), fc.bigInt({ min: 0n, max: 2n ** 70n }));
  const state = fc.tuple(limit, left).map(([limit, left]): LimitState => ({
    ...limit,
    remaining: typeof limit.max === "bigint" ? BigInt(left) : Number(left),
    resetsAt: 1,
  }));
  const states = fc.uniqueArray(state, { selector: ({ scope }) => scope, maxLength: 3 });
  const verdict: fc.Arbitrary<[CommandResult, readonly LimitState[]]> = fc.oneof(
    fc.constant<[CommandResult, LimitState[]]>([{ ok: true }, []]),
    fc
      .tuple(
        states.filter(({ length }) => length > 0),
        fc.boolean(),
      )
      .map(([limits, isInOrder]): [CommandResult, readonly LimitState[]] => [
        { ok: true, limits },
        isInOrder ? limits : limits.toReversed(),
      ]),
    states
      .filter(({ length }) => length > 0)
      .map((limits): [CommandResult, LimitState[]] => [
        { ok: false, denied: limits[0]!, retryAfterMs: 1 },
        [...limits],
      ]),
  );
  fc.assert(
    fc.property(fc.array(verdict), (all) => {
      const batch = all.map(([, limits]) => ({
        do: "reserve",
        claims: limits.map(({ scope, unit, max, per }) => ({ scope, unit, max, per, take: 1n })),
      }));
      const verdicts = all.map(([verdict]) => verdict);
      const encoded = encodeResults(batch as never, verdicts);
      encodings.add(typeof encoded);
      expect(decodeResults(batch as never, encoded)).toEqual(verdicts);
    }),
    { numRuns: trialCount(300) },
  );
  expect([...encodings].toSorted()).toEqual(["number", "object", "string"]);
});
