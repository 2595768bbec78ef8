// Cached sums equal the sums of their entries: for any rows, queries, time zones, restarts, and
// losses.
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import * as fc from "fast-check";
import type {
  LedgerEntry,
  ResultPage,
  StoreCommand,
  LedgerTotal,
} from "../../../src/plugin/store/store.ts";
import {
  createTotals,
  isSettledRow,
  matchesQuery,
  type TotalsQuery,
} from "../../../src/store/index.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { turnEventLoop } from "../../kit/wait.ts";
import { makeSqlite } from "./stores-under-test.ts";
import { LongTasks } from "../../../plugins/stores/sqlite/threads/long-tasks.ts";
import { CompactionRun } from "../../../plugins/stores/sqlite/threads/ledger-maintenance.ts";
import { Reader } from "../../../plugins/stores/sqlite/read/reader.ts";
import type { WorkerThread } from "../../../plugins/stores/sqlite/threads/thread.ts";
import { createBatchEncoder } from "../../../plugins/stores/sqlite/data/batch-codec.ts";
import { Writer } from "../../../plugins/stores/sqlite/write/writer.ts";
import { trialCount } from "../../kit/law-effort.ts";

const SEED = process.env["SEED"] === undefined ? {} : { seed: Number(process.env["SEED"]) };
const HOUR = 3_600_000;
/** Clocks go forward on that day in Berlin, at 01:00 UTC. */
const MARCH = Date.UTC(2026, 2, 29);

const STOPPED = new Error("stopped");

/**
 * A ledger with its writer, without threads. A crash is a copy of the files, with the sums of now
 * or before.
 */
class Ledger {
  readonly #folder = mkdtempSync(join(tmpdir(), "tollgate-sums-"));
  #n = 0;
  #writer = this.#opened();
  #packer = createBatchEncoder();
  #reader: Reader | undefined;

  constructor() {
    onTestFinished(() => {
      this.#reader?.close();
      this.#writer.close();
      rmSync(this.#folder, { recursive: true, force: true });
    });
  }

  get file(): string {
    return join(this.#folder, `ledger-${this.#n}.db`);
  }

  get reader(): Reader {
    return (this.#reader ??= new Reader({ file: this.file }));
  }

  apply(batch: readonly StoreCommand[]): void {
    try {
      this.#writer.apply(this.#packer.encode(batch));
    } catch {
      // A rejected command has no effect.
    }
  }

  /** The writer is gone, and the sums with it if they were lost. */
  restart(keeps: boolean): void {
    const before = this.file;
    this.#n++;
    for (const end of ["", "-wal", ...(keeps ? [".rollups", ".rollups-wal"] : [])])
      if (existsSync(before + end)) copyFileSync(before + end, this.file + end);
    this.#reader?.close();
    this.#reader = undefined;
    this.#writer.close();
    this.#writer = this.#opened();
    this.#packer = createBatchEncoder();
  }

  /** `stops`: it is killed before pruned rows are swept. */
  async prune(before: number, stops = false): Promise<void> {
    const here = <S extends object>(of: S): WorkerThread<S> =>
      ({
        call: async (method: string, ...args: readonly unknown[]) => {
          if (stops && args[0] === "deleteCompacted" && this.base > 0) throw STOPPED;
          return (of as Record<string, (...args: readonly unknown[]) => unknown>)[method]!(...args);
        },
      }) as unknown as WorkerThread<S>;
    const writer = here(this.#writer);
    await new CompactionRun(here(new LongTasks({ file: this.file })), async () => ({
      thread: writer,
    }))
      .run(before)
      .catch((problem: unknown) => {
        if (problem !== STOPPED) throw problem;
      });
  }

  /** The last pruned entry. */
  get base(): number {
    const db = new DatabaseSync(this.file, { readOnly: true });
    const { last } = db.prepare("SELECT coalesce(max(last), 0) AS last FROM checkpoint").get()!;
    db.close();
    return Number(last);
  }

  /** The last entry in the sums, and pruned ones in none of them. */
  get summed(): { seq: number; pruned: number } | undefined {
    const db = new DatabaseSync(`${this.file}.rollups`);
    const row = db.prepare("SELECT seq, compacted_up_to FROM position").get();
    db.close();
    return row && { seq: Number(row["seq"]), pruned: Number(row["compacted_up_to"]) };
  }

  /** Its result without sums. */
  async told(questions: readonly TotalsQuery[]): Promise<(readonly LedgerTotal[])[]> {
    const file = `${this.file}.copy`;
    for (const end of ["", "-wal", ".rollups", ".rollups-wal", ".rollups-shm", "-shm"])
      rmSync(file + end, { force: true });
    for (const end of ["", "-wal"])
      if (existsSync(this.file + end)) copyFileSync(this.file + end, file + end);
    const reader = new Reader({ file });
    const told = [];
    for (const asked of questions) told.push(await reader.sumEntries(asked));
    reader.close();
    return told;
  }

  /** No reader is active any more. */
  leave(): void {
    this.#reader?.close();
    this.#reader = undefined;
  }

  #opened(): Writer {
    return new Writer({ file: this.file, durability: "process", ballastMb: 0 }, `i${this.#n}`);
  }
}

/** Entry by entry, from a listing. */
async function plain(
  reader: {
    listEntries(
      query: object,
      page: { after?: string; limit: number },
    ): Promise<ResultPage<LedgerEntry>>;
  },
  { by, zone, ...query }: TotalsQuery,
): Promise<readonly LedgerTotal[]> {
  const sums = createTotals(by, zone);
  let after: string | undefined;
  do {
    const page = await reader.listEntries({}, { ...(after && { after }), limit: 1_000 });
    for (const entry of page.items) {
      const row = entry as never;
      if (isSettledRow(row, query.state) && matchesQuery(row, query, false)) sums.add(row);
    }
    after = page.next ?? undefined;
  } while (after !== undefined);
  return sums.totals();
}

const name = fc.integer({ min: 0, max: 30 }).map((i) => `a${i}`);
const at = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.integer({ min: 0, max: 3 * 24 * HOUR }).map((ms) => MARCH - 24 * HOUR + ms),
  },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 40 * 24 * HOUR }).map((ms) => MARCH + ms) },
  { weight: 1, arbitrary: fc.constantFrom(NOON, 0, -1, 8.64e15, MARCH + HOUR, MARCH + HOUR - 1) },
);
const facts = fc.record({
  key: fc.constantFrom("alice", "bob", "a\nb"),
  account: fc.constantFrom(undefined, "acme", "acme/web", "other/web"),
  labels: fc.constantFrom({}, { team: "core" }, { team: "core", env: "dev" }, { "": "=" }),
  price: fc.constantFrom(null, "p1"),
  target: fc.constantFrom(
    { provider: "openai", model: "gpt", protocol: null, credential: "c" },
    { provider: "hub", model: "openai/gpt", protocol: null, credential: "d" },
  ),
  clientRequest: fc.constantFrom(undefined, {
    model: "fast",
    frontend: "messages",
    protocol: "messages",
    mode: "passthrough" as const,
    stream: true,
  }),
});
const usage = fc.record(
  { input: fc.nat(90), output: fc.nat(90), seconds: fc.constantFrom(0.1, 0.25, 1.3) },
  { requiredKeys: [] },
);
const end = fc.oneof(
  fc.record({
    state: fc.constantFrom("exact" as const, "estimated" as const),
    costNano: fc.bigInt(0n, 10n ** 12n),
    outcome: fc.constantFrom("ok", "timeout"),
    usage,
  }),
  fc.record({ state: fc.constant("unpriced" as const), costNano: fc.constant(null), usage }),
  fc.record({ state: fc.constant("void" as const), costNano: fc.constant(0n), usage }),
);
const command: fc.Arbitrary<StoreCommand> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(name, at, facts).map(([a, at, of]) => reserveCommand(a, { at, ...of })),
  },
  {
    weight: 5,
    arbitrary: fc.tuple(name, at, end).map(([a, at, of]) => settleCommand(a, { at, ...of })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(name, at, fc.bigInt(-900n, 900n))
      .map(([attempt, at, costNano]): StoreCommand => ({
        do: "adjust",
        at,
        attempt,
        costNano,
        reason: "r",
        actor: "x",
      })),
  },
);

const DIMENSIONS = [
  "key",
  "account",
  "accounts",
  "provider",
  "model",
  "credential",
  "frontend",
  "outcome",
  "state",
  "price",
  "day",
  "hour",
  "label",
  "labels",
] as const;
const ZONES = [
  undefined,
  "Europe/Berlin",
  "Europe/London",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "America/St_Johns",
  "Pacific/Apia",
];
const sometimes = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });
const question: fc.Arbitrary<TotalsQuery> = fc.record({
  by: fc.uniqueArray(fc.constantFrom(...DIMENSIONS), { maxLength: 3 }),
  zone: fc.constantFrom(...ZONES),
  from: sometimes(at),
  to: sometimes(at),
  key: sometimes(fc.constantFrom("alice", "a\nb")),
  account: sometimes(fc.constantFrom("acme", "web", "acme/web")),
  state: sometimes(fc.constantFrom("exact" as const, "void" as const, "estimated" as const)),
  provider: sometimes(fc.constantFrom("openai", "hub")),
  model: sometimes(fc.constantFrom("openai/gpt", "gpt", "hub/openai/gpt")),
  label: sometimes(fc.constantFrom("team=core", "==")),
  credential: sometimes(fc.constantFrom("c", "d")),
  frontend: sometimes(fc.constantFrom("messages")),
  outcome: sometimes(fc.constantFrom("ok", "recovered", "adjusted")),
});

/** Like pages: by one dimension, without filters. */
const plainly: fc.Arbitrary<TotalsQuery> = fc.record(
  {
    by: fc.uniqueArray(fc.constantFrom(...DIMENSIONS), { maxLength: 2 }),
    zone: fc.constantFrom(...ZONES),
    from: at,
    to: at,
    account: fc.constantFrom("acme", "web"),
  },
  { requiredKeys: ["by"] },
);
const asking = fc.oneof(question, plainly);

const step = fc.oneof(
  { weight: 3, arbitrary: asking },
  { weight: 8, arbitrary: fc.array(command, { minLength: 1, maxLength: 12 }) },
  { weight: 3, arbitrary: fc.constant("sum" as const) },
  { weight: 1, arbitrary: fc.constantFrom("restart" as const, "lose" as const) },
);

const isExact = async ({ reader }: Ledger, asked: TotalsQuery) =>
  expect(await reader.sumEntries(asked)).toEqual(await plain(reader, asked));

it("a report from sums equals one from entries", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 3, maxLength: 14 }),
      fc.array(asking, { minLength: 1, maxLength: 12 }),
      async (steps, questions) => {
        const ledger = new Ledger();
        for (const one of steps)
          if (one === "sum") await ledger.reader.updateRollups(1);
          else if (one === "restart" || one === "lose") ledger.restart(one === "restart");
          else if (Array.isArray(one)) ledger.apply(one);
          else await isExact(ledger, one as TotalsQuery);
        for (const asked of questions) await isExact(ledger, asked);
        expect(await ledger.reader.verify()).toEqual([]);
      },
    ),
    { numRuns: trialCount(25), ...SEED },
  );
});

const life = fc.oneof(
  { weight: 8, arbitrary: step },
  { weight: 2, arbitrary: fc.record({ before: at, stops: fc.boolean() }) },
);

it("a report from sums after a prune equals one without sums", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(life, { minLength: 4, maxLength: 16 }),
      fc.array(asking, { minLength: 1, maxLength: 8 }),
      async (steps, questions) => {
        const ledger = new Ledger();
        for (const one of steps)
          if (one === "sum") await ledger.reader.updateRollups(1);
          else if (one === "restart" || one === "lose") ledger.restart(one === "restart");
          else if (Array.isArray(one)) ledger.apply(one);
          else if ("before" in one) await ledger.prune(one.before, one.stops);
          else await ledger.reader.sumEntries(one as TotalsQuery);
        const told = await ledger.told(questions);
        for (const [i, asked] of questions.entries())
          expect(await ledger.reader.sumEntries(asked)).toEqual(told[i]);
        await ledger.reader.updateRollups(1);
        for (const [i, asked] of questions.entries())
          expect(await ledger.reader.sumEntries(asked)).toEqual(told[i]);
        expect(await ledger.reader.verify()).toEqual([]);
      },
    ),
    { numRuns: trialCount(25), ...SEED },
  );
});

/** Calls of a day, one per minute. */
function aDay(
  ledger: Ledger,
  calls = 600,
  labels = (_: number): Record<string, string> => ({}),
): void {
  for (let i = 0; i < calls; i += 50)
    ledger.apply(
      Array.from({ length: 50 }, (_, j) => [
        reserveCommand(`d${i + j}`, { at: MARCH + (i + j) * 60_000, labels: labels(i + j) }),
        settleCommand(`d${i + j}`, { at: MARCH + (i + j) * 60_000 }),
      ]).flat(),
    );
}
it("entries after the sums are read once, however often they are requested", async () => {
  const ledger = new Ledger();
  aDay(ledger, 600);
  await ledger.reader.updateRollups(1);
  for (let i = 0; i < 200; i++)
    ledger.apply([reserveCommand(`t${i}`, { at: MARCH }), settleCommand(`t${i}`, { at: MARCH })]);
  await ledger.reader.sumEntries({ by: ["key"] });
  const parse = vi.spyOn(JSON, "parse");
  onTestFinished(() => parse.mockRestore());
  for (const by of ["key", "label", "model", "state"] as const)
    await ledger.reader.sumEntries({ by: [by], from: MARCH - HOUR });
  expect(parse.mock.calls.length).toBeLessThan(200);
  parse.mockRestore();
  ledger.apply([
    reserveCommand("t-last", { at: MARCH + HOUR }),
    settleCommand("t-last", { at: MARCH + HOUR }),
  ]);
  await isExact(ledger, { by: ["label"], from: MARCH + 1, to: MARCH + 2 * HOUR });
});

it("a report of full hours reads no entry, also not of earlier hours", async () => {
  const ledger = new Ledger();
  for (let i = 0; i < 200; i++) {
    const at = MARCH + i * 60_000;
    ledger.apply([reserveCommand(`w${i}`, { at }), settleCommand(`w${i}`, { at })]);
  }
  await ledger.reader.updateRollups(1);
  const asked: TotalsQuery = { by: ["state"], from: MARCH + 2 * HOUR, to: MARCH + 3 * HOUR };
  const parse = vi.spyOn(JSON, "parse");
  onTestFinished(() => parse.mockRestore());
  await ledger.reader.sumEntries(asked);
  expect(parse.mock.calls.length).toBeLessThan(20);
  parse.mockRestore();
  await isExact(ledger, asked);
});

it("threads that are killed during a sum leave sums of complete commits, or none", async () => {
  const made = await makeSqlite();
  onTestFinished(() => made.dispose());
  let { store } = made;
  await store.open({ instance: "one" });
  const asked: TotalsQuery = { by: ["hour", "key"], zone: "Europe/Berlin" };
  for (let round = 0, n = 0; round < 3; round++) {
    for (let i = 0; i < 5; i++)
      await store.apply(
        Array.from({ length: 500 }, () => {
          const [attempt, at] = [`k${++n}`, MARCH + n * 7_000];
          return [
            reserveCommand(attempt, { at, key: `key${n % 9}` }),
            settleCommand(attempt, { at }),
          ];
        }).flat(),
      );
    void store.sumEntries(asked).catch(() => {});
    await turnEventLoop(round * 500);
    store = await made.crash();
    await store.open({ instance: `after-${round}` });
    const totals = await store.sumEntries(asked);
    expect(totals.reduce((sum, { costNano }) => sum + costNano, 0n)).toBe(BigInt(n) * 700n);
    expect(totals).toEqual(await plain(store, asked));
  }
  expect(await store.verify!()).toEqual([]);
});

const BY_DAY: TotalsQuery = { by: ["day", "label"] };

describe("the rollup file", () => {
  const sumsOf = (ledger: Ledger) => new DatabaseSync(`${ledger.file}.rollups`);

  it("that was changed is reported by verify, and rebuilt", async () => {
    const ledger = new Ledger();
    aDay(ledger);
    await ledger.reader.updateRollups(1);
    const sums = sumsOf(ledger);
    sums.exec(
      `UPDATE rollup SET rollup = replace(rollup, '"420000"', '"420001"') WHERE span = 86400000`,
    );
    expect((await ledger.reader.sumEntries({ by: [] }))[0]!.costNano).toBe(420_001n);
    const told = await ledger.reader.verify();
    expect(told.map(({ path }) => path)).toEqual([expect.stringMatching(/^[/]rollups/)]);
    await ledger.reader.updateRollups(1);
    expect((await ledger.reader.sumEntries({ by: [] }))[0]!.costNano).toBe(420_000n);
    expect(await ledger.reader.verify()).toEqual([]);
    sums.close();
  });

  it.each([false, true])(
    "survives a prune, with or without vacuum (%s): nothing is summed again",
    async (stops) => {
      const ledger = new Ledger();
      aDay(ledger, 1_400, (i) => ({ team: `t${i % 5}` }));
      await ledger.reader.updateRollups(1);
      const { seq } = ledger.summed!;
      await ledger.prune(MARCH + 10 * HOUR + 1_234_567, stops);
      const base = ledger.base;
      expect(base).toBeGreaterThan(1_000);
      const asked: TotalsQuery[] = [
        BY_DAY,
        { by: ["hour", "key"], zone: "Asia/Kathmandu" },
        { by: [], from: MARCH + 10 * HOUR + 1_200_000, to: MARCH + 11 * HOUR + 1 },
      ];
      const told = await ledger.told(asked);
      for (const [i, one] of asked.entries())
        expect(await ledger.reader.sumEntries(one)).toEqual(told[i]);
      expect(ledger.summed).toEqual({ seq, pruned: base });
      expect(await ledger.reader.verify()).toEqual([]);
    },
  );

  it("that is missing or invalid is rebuilt", async () => {
    const ledger = new Ledger();
    aDay(ledger);
    for (const spoil of [
      (path: string) => rmSync(path),
      (path: string) => writeFileSync(path, "no database"),
      (path: string) => writeFileSync(path, Buffer.alloc(8_192, 7)),
    ]) {
      await ledger.reader.updateRollups(1);
      ledger.restart(false);
      await ledger.reader.updateRollups(1);
      ledger.leave();
      spoil(`${ledger.file}.rollups`);
      expect(await ledger.reader.sumEntries(BY_DAY)).toEqual(await plain(ledger.reader, BY_DAY));
      expect(await ledger.reader.verify()).toEqual([]);
    }
  });

  it("of a ledger that a power failure shortened belongs to another ledger", async () => {
    const ledger = new Ledger();
    aDay(ledger, 600);
    await ledger.reader.updateRollups(1);
    ledger.leave();
    const sums = `${ledger.file}.rollups`;
    const kept = [sums, `${sums}-wal`].map((path) => existsSync(path) && readFileSync(path));
    const other = new Ledger();
    aDay(other, 100, () => ({ team: "core" }));
    for (const [i, end] of ["", "-wal"].entries())
      if (kept[i]) writeFileSync(`${other.file}.rollups${end}`, kept[i]);
    expect(await other.reader.sumEntries(BY_DAY)).toEqual(await plain(other.reader, BY_DAY));
  });

  it("has a maximum size: labels with a value per call are read from entries, and the rest is summed", async () => {
    const ledger = new Ledger();
    const few = new Ledger();
    aDay(ledger, 1_400, (i) => ({ user: `someone-${i}` }));
    aDay(few, 1_400);
    for (const one of [ledger, few]) {
      await one.reader.updateRollups(1);
      // A growing sum is complete now.
      one.apply([
        reserveCommand("z", { at: MARCH + 90_000_000 }),
        settleCommand("z", { at: MARCH + 90_000_000 }),
      ]);
      await one.reader.updateRollups(1);
      expect(await one.reader.sumEntries(BY_DAY)).toEqual(await plain(one.reader, BY_DAY));
    }
    const kept = (of: Ledger) => {
      const db = sumsOf(of);
      const row = db.prepare("SELECT sum(length(rollup)) AS n FROM rollup").get();
      db.close();
      return Number(row!["n"]);
    };
    expect(kept(ledger)).toBeLessThan(1.2 * kept(few));
  });
});
