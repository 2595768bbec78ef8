import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as fc from "fast-check";
import { getFault } from "../../../src/model/error.ts";
import type { JobTake } from "../../../src/plugin/store/job.ts";
import type { Limit } from "../../../src/plugin/store/limit.ts";
import type { CommandResult, Store, StoreCommand } from "../../../src/plugin/store/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { Reader } from "../../../plugins/stores/sqlite/read/reader.ts";
import { Writer } from "../../../plugins/stores/sqlite/write/writer.ts";
import {
  createBatchEncoder,
  decodeResults,
} from "../../../plugins/stores/sqlite/data/batch-codec.ts";
import { makeMemory } from "./stores-under-test.ts";
import { makePostgres } from "./postgres-under-test.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { trialCount } from "../../kit/law-effort.ts";

interface Real {
  apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]>;
  readLimits(limits: readonly Limit[]): Promise<readonly { used: bigint; reserved: bigint }[]>;
  crash(): Promise<number>;
  problems(): Promise<readonly unknown[]>;
  costNano(): Promise<bigint>;
  end(): Promise<void>;
}

const totalCost = (totals: Awaited<ReturnType<Store["sumEntries"]>>): bigint =>
  totals[0]?.costNano ?? 0n;

async function memory(): Promise<Real> {
  const { store, dispose } = await makeMemory();
  let instance = 0;
  await store.open({ instance: `i${instance}` });
  return {
    apply: (batch) => store.apply(batch),
    readLimits: (limits) => store.readLimits!(limits, NOON),
    crash: async () => (await store.open({ instance: `i${++instance}` })).recovered,
    problems: async () => [],
    costNano: async () => totalCost(await store.sumEntries({ by: ["key"] })),
    end: dispose,
  };
}

/** The writer without its thread. A crash is a copy of the current files. */
async function sqlite(): Promise<Real> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-job-model-"));
  const file = (n: number): string => join(folder, `ledger-${n}.db`);
  let n = 0;
  const open = () => new Writer({ file: file(n), durability: "process", ballastMb: 0 }, `i${n}`);
  let writer = open();
  let encoder = createBatchEncoder();
  const past: { close(): void }[] = [];
  const reader = (): Reader => {
    const one = new Reader({ file: file(n) });
    past.push(one);
    return one;
  };
  return {
    apply: async (batch) => decodeResults(batch, writer.apply(encoder.encode(batch))),
    readLimits: async (limits) => writer.readLimits(limits, NOON),
    async crash() {
      for (const end of ["", "-wal"])
        if (existsSync(file(n) + end)) copyFileSync(file(n) + end, file(n + 1) + end);
      past.push(writer);
      n++;
      writer = open();
      encoder = createBatchEncoder();
      return writer.openResult.recovered;
    },
    problems: async () => reader().verify(),
    costNano: async () => totalCost(await reader().sumEntries({ by: ["key"] })),
    async end() {
      for (const one of [...past, writer]) one.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function postgres(url: string): Promise<Real> {
  const { store: first, crash, dispose } = await makePostgres(url);
  let store = first;
  let n = 0;
  await store.open({ instance: `i${n}` });
  return {
    apply: (batch) => store.apply(batch),
    readLimits: (limits) => store.readLimits!(limits, NOON),
    async crash() {
      store = await crash();
      return (await store.open({ instance: `i${++n}` })).recovered;
    },
    problems: async () => (await store.verify?.()) ?? [],
    costNano: async () => totalCost(await store.sumEntries({ by: ["key"] })),
    end: dispose,
  };
}

// Recovery uses the machine's clock.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"], now: NOON }));
afterAll(() => void vi.useRealTimers());

const LIMITS = [
  { scope: "key:a", unit: "nano_usd", max: 1_000_000n, per: "month" },
  { scope: "key:a", unit: "requests", max: 1_000, per: "day" },
  { scope: "account:b", unit: "tokens", max: 1_000_000, per: "total" },
] as const satisfies readonly Limit[];
type Unit = (typeof LIMITS)[number]["unit"];
type Amounts = { readonly [U in Unit]: bigint };
const UNITS = LIMITS.map(({ unit }) => unit);

/** A settled or open line, and what it counts. */
interface Line {
  job: number;
  take: { [U in Unit]: bigint };
  used?: Amounts;
  isVoid?: boolean;
  costNano: bigint;
  hold: bigint;
  /** Whether recovery settled the line, and the actual cost has not arrived. */
  isRecovered?: boolean;
}
interface Job {
  take: Amounts;
  used?: Amounts;
  costNano: bigint;
}

/** The ledger of jobs in its simplest form: sums over all lines. */
class JobModel {
  jobs = new Map<number, Job>();
  lines = new Map<string, Line>();

  /** What no line took. Lines that are void gave their amounts back, except requests. */
  rest(n: number, unit: Unit): bigint {
    let rest = this.jobs.get(n)!.take[unit];
    for (const line of this.lines.values())
      if (line.job === n) rest -= line.isVoid ? line.used![unit] : line.take[unit];
    return rest;
  }

  line(id: string, n: number, wanted: Amounts, hold: bigint): boolean {
    if (this.lines.has(id)) return true;
    if (!this.jobs.has(n) || this.jobs.get(n)!.used) return false;
    const take = Object.fromEntries(
      UNITS.map((unit) => [unit, min(wanted[unit], this.rest(n, unit))]),
    ) as Line["take"];
    this.lines.set(id, { job: n, take, costNano: 0n, hold });
    return true;
  }

  settleLine(id: string, isVoid: boolean, costNano: bigint, tokens: bigint | undefined): boolean {
    const line = this.lines.get(id);
    if (!line) return false;
    if (line.used) {
      // The actual cost of a recovered line is a correction, once.
      if (line.isRecovered) this.correct(line, isVoid ? 0n : costNano);
      return true;
    }
    const { take } = line;
    line.isVoid = isVoid && !this.jobs.get(line.job)!.used;
    line.costNano = isVoid ? 0n : costNano;
    line.used = {
      requests: take.requests,
      nano_usd: line.costNano,
      tokens: isVoid ? 0n : (tokens ?? take.tokens),
    };
    return true;
  }

  private correct(line: Line, costNano: bigint): void {
    line.isRecovered = false;
    line.costNano = costNano;
    line.used = { ...line.used!, nano_usd: costNano };
  }

  settleJob(n: number, lost: bigint | undefined): boolean {
    const job = this.jobs.get(n);
    if (!job) return false;
    if (job.used) return true;
    const none = { requests: 0n, nano_usd: 0n, tokens: 0n };
    const { requests, tokens } = {
      requests: this.rest(n, "requests"),
      tokens: this.rest(n, "tokens"),
    };
    job.used = lost === undefined ? none : { requests, tokens, nano_usd: lost };
    job.costNano = lost ?? 0n;
    return true;
  }

  crash(): number {
    let recovered = 0;
    for (const [id, line] of this.lines)
      if (!line.used) {
        recovered++;
        this.settleLine(id, false, line.hold, undefined);
        line.isRecovered = true;
      }
    return recovered;
  }

  usage(unit: Unit): { used: bigint; reserved: bigint } {
    let [used, reserved] = [0n, 0n];
    for (const [n, job] of this.jobs) {
      if (job.used) used += job.used[unit];
      else reserved += this.rest(n, unit);
    }
    for (const line of this.lines.values())
      if (line.used) used += line.used[unit];
      else reserved += line.take[unit];
    return { used, reserved };
  }

  costNano(): bigint {
    const costs = [...this.lines.values(), ...this.jobs.values()].map(({ costNano }) => costNano);
    return costs.reduce((a, b) => a + b, 0n);
  }
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);

type Op =
  | { do: "job"; n: number; take: Amounts }
  | { do: "line"; n: number; line: number; take: Amounts; hold: bigint }
  | { do: "settle line"; n: number; line: number; isVoid: boolean; cost: bigint; tokens?: bigint }
  | { do: "settle job"; n: number; lost?: bigint }
  | { do: "crash" };

const n = fc.integer({ min: 0, max: 2 });
const line = fc.integer({ min: 0, max: 5 });
const amounts = (most: bigint) =>
  fc.record({
    nano_usd: fc.bigInt(0n, most),
    requests: fc.bigInt(0n, most < 10n ? most : 10n),
    tokens: fc.bigInt(0n, most),
  });
const oneLine = fc.record({
  nano_usd: fc.bigInt(0n, 300n),
  requests: fc.constant(1n),
  tokens: fc.bigInt(0n, 300n),
});
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("job" as const), n, take: amounts(1_000n) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("line" as const),
      n,
      line,
      take: oneLine,
      hold: fc.bigInt(0n, 300n),
    }),
  },
  {
    weight: 6,
    arbitrary: fc
      .record({
        n,
        line,
        isVoid: fc.nat(3).map((i) => i === 0),
        cost: fc.bigInt(0n, 400n),
        tokens: fc.option(fc.bigInt(0n, 400n), { nil: undefined }),
      })
      .map(({ tokens, ...of }) => ({
        do: "settle line" as const,
        ...of,
        ...(tokens !== undefined && { tokens }),
      })),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ n, lost: fc.option(fc.bigInt(0n, 500n), { nil: undefined }) })
      .map(({ n, lost }) => ({
        do: "settle job" as const,
        n,
        ...(lost !== undefined && { lost }),
      })),
  },
  { weight: 1, arbitrary: fc.constant({ do: "crash" as const }) },
);

const jobId = (of: number): string => `job-${of}.1`;
const lineId = (of: number, at: number): string => `job-${of}.line.${at}`;

function command(of: Exclude<Op, { do: "crash" }>): StoreCommand {
  switch (of.do) {
    case "job":
      return reserveCommand(jobId(of.n), {
        holdNano: of.take.nano_usd,
        claims: LIMITS.map((limit) => ({ ...limit, take: of.take[limit.unit] })),
        job: { attempt: jobId(of.n) },
      });
    case "line":
      return reserveCommand(lineId(of.n, of.line), {
        holdNano: of.hold,
        job: { attempt: jobId(of.n), take: of.take satisfies JobTake },
      });
    case "settle line":
      return settleCommand(
        lineId(of.n, of.line),
        of.isVoid
          ? { state: "void", costNano: 0n, usage: {} }
          : {
              costNano: of.cost,
              usage: of.tokens === undefined ? {} : { output: Number(of.tokens) },
            },
      );
    case "settle job":
      return settleCommand(jobId(of.n), {
        usage: {},
        ...(of.lost === undefined
          ? { state: "void", costNano: 0n }
          : { state: "estimated", costNano: of.lost }),
      });
  }
}

function applyToModel(model: JobModel, of: Exclude<Op, { do: "crash" }>): boolean {
  switch (of.do) {
    case "job":
      if (!model.jobs.has(of.n)) model.jobs.set(of.n, { take: of.take, costNano: 0n });
      return true;
    case "line":
      return model.line(lineId(of.n, of.line), of.n, of.take, of.hold);
    case "settle line":
      return model.settleLine(lineId(of.n, of.line), of.isVoid, of.cost, of.tokens);
    case "settle job":
      return model.settleJob(of.n, of.lost);
  }
}

async function compare(make: () => Promise<Real>, ops: readonly Op[]): Promise<void> {
  const real = await make();
  const model = new JobModel();
  try {
    for (const of of ops) {
      if (of.do === "crash") {
        expect(await real.crash()).toBe(model.crash());
      } else {
        const isAllowed = applyToModel(model, of);
        // Repeating the command changes nothing.
        for (let i = 0; i < 2; i++) {
          const said = await real.apply([command(of)]).then(
            () => true,
            (error: unknown) =>
              getFault(error)?.kind === "invalid" ? false : Promise.reject(error),
          );
          expect(said, JSON.stringify(of.do)).toBe(isAllowed);
        }
      }
      const usage = await real.readLimits(LIMITS);
      expect(usage.map(({ used, reserved }) => ({ used, reserved }))).toEqual(
        UNITS.map((unit) => model.usage(unit)),
      );
    }
    expect(await real.costNano()).toBe(model.costNano());
    expect(await real.problems()).toEqual([]);
  } finally {
    await real.end();
  }
}

const checkModel = (make: () => Promise<Real>, trials: number): Promise<void> =>
  fc.assert(
    fc.asyncProperty(fc.array(op, { maxLength: 40 }), (ops) => compare(make, ops)),
    { numRuns: trialCount(trials) },
  );

for (const [name, make, trials] of [
  ["memory", memory, 300],
  ["sqlite", sqlite, 40],
] as const)
  it(`the ${name} store keeps the money of jobs as the model does`, () => checkModel(make, trials));

describe.skipIf(!hasPostgres())("with a server", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  it("the postgres store keeps the money of jobs as the model does", () =>
    checkModel(() => postgres(url), 20));
});
