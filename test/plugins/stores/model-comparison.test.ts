import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import * as fc from "fast-check";
import { getFault } from "../../../src/model/error.ts";
import type { StoreCommand, Store, CommandResult } from "../../../src/plugin/store/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { Reader } from "../../../plugins/stores/sqlite/read/reader.ts";
import { Writer } from "../../../plugins/stores/sqlite/write/writer.ts";
import {
  createBatchEncoder,
  decodeResults,
} from "../../../plugins/stores/sqlite/data/batch-codec.ts";
import { Impossible, LedgerModel, type Op } from "./ledger-model.ts";
import { makeMemory } from "./stores-under-test.ts";
import { trialCount } from "../../kit/law-effort.ts";

/** Functions that a test needs of a store, the same for both. */
interface Real {
  apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]>;
  crash(): Promise<number>;
  store(): Pick<Store, "listEntries" | "sumEntries"> & { verify?: Store["verify"] };
  end(): Promise<void>;
}

async function memory(): Promise<Real> {
  const made = await makeMemory();
  let instance = 0;
  await made.store.open({ instance: `i${instance}` });
  return {
    apply: (batch) => made.store.apply(batch),
    crash: async () => (await made.store.open({ instance: `i${++instance}` })).recovered,
    store: () => made.store,
    end: () => made.dispose(),
  };
}

/** The writer and the reader without their threads. A crash is a copy of the current files. */
async function sqlite(): Promise<Real> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-model-"));
  const file = (n: number): string => join(folder, `ledger-${n}.db`);
  let n = 0;
  const open = () => new Writer({ file: file(n), durability: "process", ballastMb: 0 }, `i${n}`);
  let writer = open();
  let packer = createBatchEncoder();
  const past: { close(): void }[] = [];
  return {
    apply: async (batch) => decodeResults(batch, writer.apply(packer.encode(batch))),
    async crash() {
      for (const end of ["", "-wal"])
        if (existsSync(file(n) + end)) copyFileSync(file(n) + end, file(n + 1) + end);
      past.push(writer);
      n++;
      writer = open();
      packer = createBatchEncoder();
      return writer.openResult.recovered;
    },
    store: () => {
      const reader = new Reader({ file: file(n) });
      past.push(reader);
      return {
        listEntries: async (query, page) => reader.listEntries(query, page),
        sumEntries: (query) => reader.sumEntries(query),
        verify: () => reader.verify(),
      };
    },
    async end() {
      for (const one of [...past, writer]) one.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

// Recovery uses the machine's clock. Other times are not faked.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterAll(() => void vi.useRealTimers());

const DAY = 86_400_000;
const SEED = process.env["SEED"] === undefined ? {} : { seed: Number(process.env["SEED"]) };
const scope = fc.constantFrom("key:a", "key:b");
const attempt = fc.integer({ min: 0, max: 25 }).map((i) => `a${i}`);
const cost = fc.option(fc.bigInt(0n, 900n), { nil: null, freq: 8 });

/** Every claim of a key in this model. The amount differs. */
const claims = fc
  .tuple(scope, fc.bigInt(0n, 400n), fc.bigInt(0n, 60n), fc.bigInt(0n, 1n))
  .map(([scope, money, tokens, one]) => [
    { scope, unit: "nano_usd", max: 5_000n, per: "total", take: money } as const,
    { scope, unit: "nano_usd", max: 1_500n, per: "day", take: money } as const,
    { scope, unit: "tokens", max: 300, per: "month", take: tokens } as const,
    { scope, unit: "concurrent", max: 4, per: "open", take: one } as const,
    { scope, unit: "requests", max: 6, per: "minute", take: one } as const,
  ]);

/**
 * Times: mostly minutes, sometimes out of order, and sometimes with a clock that was set days
 * forward or back.
 */
const step = fc.oneof(
  { weight: 10, arbitrary: fc.integer({ min: 0, max: 20_000 }) },
  { weight: 3, arbitrary: fc.integer({ min: -5_000, max: 0 }) },
  { weight: 1, arbitrary: fc.constantFrom(DAY, -DAY, 40 * DAY, -3_600_000, DAY / 2) },
);

type Draw = (at: number) => Op;
const op: fc.Arbitrary<Draw> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ attempt, claims, hold: cost }).map(
      ({ attempt, claims, hold }): Draw =>
        (at) =>
          reserveCommand(attempt, { at, claims, holdNano: hold }),
    ),
  },
  {
    weight: 5,
    arbitrary: fc
      .record({ attempt, cost, output: fc.nat(90), voids: fc.nat(3).map((i) => i === 0) })
      .map(
        ({ attempt, cost, output, voids }): Draw =>
          (at) =>
            voids
              ? settleCommand(attempt, { at, state: "void", costNano: 0n, usage: {} })
              : settleCommand(attempt, {
                  at,
                  state: cost === null ? "unpriced" : "exact",
                  costNano: cost,
                  usage: { output },
                }),
      ),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({ attempt, cost: fc.bigInt(0n, 900n) })
      .map(({ attempt, cost }): Draw => (at) => ({
        do: "progress",
        at,
        attempt,
        usage: { output: 1 },
        costNano: cost,
      })),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ attempt, cost: fc.bigInt(-50n, 50n), reason: fc.constantFrom("x", "y") })
      .map(({ attempt, cost, reason }): Draw => (at) => ({
        do: "adjust",
        at,
        attempt,
        costNano: cost,
        reason,
        actor: "t",
      })),
  },
);

interface Seen {
  model: LedgerModel;
  time: number;
}

class Batch implements fc.AsyncCommand<Seen, Real> {
  readonly ops: readonly Draw[];
  readonly twice: boolean;
  readonly step: number;
  constructor(ops: readonly Draw[], twice: boolean, step: number) {
    this.ops = ops;
    this.twice = twice;
    this.step = step;
  }
  check = (): boolean => true;
  async run(seen: Seen, real: Real): Promise<void> {
    seen.time += this.step;
    const batch = this.ops.map((draw) => draw(seen.time));
    for (let i = 0; i < (this.twice ? 2 : 1); i++) await compare(seen, real, batch);
  }
  toString = (): string =>
    `batch(${this.ops.map((draw) => show(draw(0)))}, +${this.step}${this.twice ? ", twice" : ""})`;
}

async function compare(seen: Seen, real: Real, batch: readonly Op[]): Promise<void> {
  const next = seen.model.copy();
  let expected;
  try {
    expected = batch.map((op) => next.apply(op));
  } catch (error) {
    if (!(error instanceof Impossible)) throw error;
    const said = await real.apply(batch).then(
      () => undefined,
      (e: unknown) => e,
    );
    expect(getFault(said)?.kind).toBe("invalid");
    return;
  }
  const verdicts = await real.apply(batch);
  seen.model = next;
  verdicts.forEach((verdict, i) => {
    const want = expected[i] ?? { ok: true, left: undefined };
    expect(verdict.ok, show(batch[i]!)).toBe(want.ok);
    if (verdict.ok && want.left) {
      const left = (verdict.limits ?? []).map((limit) => BigInt(limit.remaining));
      expect(left, show(batch[i]!)).toEqual(want.left);
    }
  });
}

class Crash implements fc.AsyncCommand<Seen, Real> {
  check = (): boolean => true;
  async run(seen: Seen, real: Real): Promise<void> {
    vi.setSystemTime(seen.time);
    expect(await real.crash()).toBe(seen.model.crash(seen.time));
    await audit(seen.model, real);
  }
  toString = (): string => "crash";
}

/** Every call has its rows once, the sums are right, and the store is consistent. */
async function audit(model: LedgerModel, real: Real): Promise<void> {
  const store = real.store();
  const entries = (await store.listEntries({}, { limit: 1_000 })).items;
  const found = new Map<string, string[]>();
  for (const { attempt, kind, costNano } of entries)
    found.set(attempt, [
      ...(found.get(attempt) ?? []),
      `${kind} ${kind === "reserve" ? "" : costNano}`,
    ]);
  const wanted = new Map<string, string[]>();
  for (const [attempt, { settled, adjusted }] of model.calls)
    wanted.set(attempt, [
      "reserve ",
      ...(settled ? [`settle ${settled.cost}`] : []),
      ...[...adjusted.values()].map((cost) => `adjust ${cost}`),
    ]);
  expect(new Map([...found].sort())).toEqual(new Map([...wanted].sort()));
  const [totals] = await store.sumEntries({ by: [] });
  expect(totals?.costNano ?? 0n).toBe(model.total());
  if (store.verify) expect(await store.verify()).toEqual([]);
}

const show = (op: Op): string =>
  JSON.stringify(op, (_key, v: unknown) => (typeof v === "bigint" ? `${v}n` : v)).slice(0, 200);

const commands = fc.commands(
  [
    fc
      .tuple(fc.array(op, { minLength: 1, maxLength: 4 }), fc.boolean(), step)
      .map(([ops, twice, step]) => new Batch(ops, twice, step)),
    fc.constant(new Crash()),
  ],
  { maxCommands: 60, size: "+1" },
);

for (const [name, make, numRuns] of [
  ["memory", memory, 200],
  ["sqlite", sqlite, 40],
] as const)
  it(`the ${name} store behaves like a map of calls`, async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (commands) => {
        const real = await make();
        const seen: Seen = { model: new LedgerModel(), time: NOON };
        try {
          await fc.asyncModelRun(() => ({ model: seen, real }), commands);
          await audit(seen.model, real);
        } finally {
          await real.end();
        }
      }),
      // RUNS=20 for a long run, SEED=280303986 to repeat one.
      { numRuns: trialCount(numRuns) * Number(process.env["RUNS"] ?? 1), ...SEED },
    );
  });

/** How much of six requests per minute key:a has left at that moment. The query uses none. */
async function leftAt(real: Real, at: number, attempt: string): Promise<bigint> {
  const none = { scope: "key:a", unit: "requests", max: 6, per: "minute", take: 0n } as const;
  const [verdict] = await real.apply([
    reserveCommand(attempt, { at, claims: [none], holdNano: 0n }),
  ]);
  return verdict?.ok ? BigInt(verdict.limits![0]!.remaining) : -1n;
}

for (const [name, make, numRuns] of [
  ["memory", memory, 200],
  ["sqlite", sqlite, 20],
] as const)
  it(`the ${name} store recovers at one moment: a clock that is set back returns no time`, async () => {
    const began = fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(began, fc.integer({ min: 0, max: 2 * DAY }), async (ats, back) => {
        const real = await make();
        try {
          const one = {
            scope: "key:a",
            unit: "requests",
            max: 6,
            per: "minute",
            take: 1n,
          } as const;
          const inOrder = ats.map((at) => NOON + at).sort((a, b) => a - b);
          for (const [i, at] of inOrder.entries())
            await real.apply([
              reserveCommand(`idle${i}`, { at, claims: [], holdNano: 1n }),
              reserveCommand(`busy${i}`, { at, claims: [one], holdNano: 1n }),
            ]);
          const last = inOrder.at(-1)!;
          const before = await leftAt(real, last, "before");
          vi.setSystemTime(last - back);
          await real.crash();
          expect(await leftAt(real, last - back, "after")).toBe(before);
        } finally {
          await real.end();
        }
      }),
      { numRuns: trialCount(numRuns, 5) },
    );
  });
