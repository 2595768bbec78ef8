// A store that keeps complete rows gets retention, archives, erasure, verification, and transfer from
// the kit, even during writes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { StoreCommand } from "../../../src/plugin/index.ts";
import {
  createJournalBackend,
  createJournalReads,
  createLedgerRules,
  createMemoryAuditLog,
  createMemoryJournal,
  createRowMaintenance,
  createRowTransfer,
  readArchive,
  RollupChain,
  verifyRows,
  type LedgerBackend,
  type LedgerSnapshot,
  type TransferBackend,
} from "../../../src/store/index.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { trialCount } from "../../kit/law-effort.ts";

function createLedger(change: (backend: TransferBackend) => LedgerBackend = (backend) => backend) {
  const journal = createMemoryJournal(() => "one");
  const rules = createLedgerRules(journal, () => "one");
  const apply = (...commands: StoreCommand[]) => {
    for (const command of commands) rules.apply(command);
    rules.commit();
    journal.commit();
  };
  const audit = createMemoryAuditLog();
  const backend = createJournalBackend(journal, rules, audit);
  const maintenance = createRowMaintenance(change(backend));
  const reads = createJournalReads(journal);
  return { journal, rules, apply, audit, backend, maintenance, reads };
}
type Ledger = ReturnType<typeof createLedger>;

const by = ["day", "key", "model", "state"] as const;
const BEFORE = NOON + 50;

const LIMITS = [
  { scope: "key:alice", unit: "nano_usd", max: 10n ** 12n, per: "total" },
  { scope: "key:alice", unit: "nano_usd", max: 10n ** 12n, per: "day" },
  { scope: "key:alice", unit: "requests", max: 10n ** 6n, per: "month" },
] as const;
const claims = LIMITS.map((limit) => ({ ...limit, take: 100n }));

/** Applies the steps that are possible. */
function applySteps({ apply }: Pick<Ledger, "apply">, steps: readonly Step[]): void {
  const state = new Map<string, "open" | "over">();
  for (const [kind, call, at] of steps) {
    const attempt = `a${call}`;
    if (kind === "reserve" && !state.has(attempt)) {
      const labels = { user: `u${call}` };
      apply(reserveCommand(attempt, { at: NOON + at, labels, ...(call % 2 && { claims }) }));
      state.set(attempt, "open");
    } else if (kind === "settle" && state.get(attempt) === "open") {
      apply(settleCommand(attempt, { at: NOON + at, costNano: BigInt(at) }));
      state.set(attempt, "over");
    } else if (kind === "adjust" && state.get(attempt) === "over")
      apply({ do: "adjust", at: NOON + at, attempt, costNano: 1n, reason: `${at}`, actor: "x" });
  }
}

const step = fc.tuple(fc.constantFrom("reserve", "settle", "adjust"), fc.nat(5), fc.nat(99));
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

it("a prune keeps the sums of every history, and the reserves of open calls", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(3), async (steps, prunes) => {
      const ledger = createLedger();
      const { journal, maintenance, reads, backend } = ledger;
      applySteps(ledger, steps);
      const before = await reads.sumEntries({ by });
      const rows = [...journal.rows];
      for (let n = 0; n <= prunes; n++) {
        const until = BEFORE + n * 10;
        const plan = await maintenance.planPrune(until);
        expect((await maintenance.prune(until)).rows).toBe(plan.rows);
        expect(await reads.sumEntries({ by })).toEqual(before);
        expect(await verifyRows(backend)).toEqual([]);
        const last = journal.compacted?.checkpoint.last ?? 0;
        const expected = rows.filter(
          ([seq, { kind, attempt }]) =>
            seq > last ||
            (kind === "reserve" && rows.some(([at, row]) => at > last && row.attempt === attempt)),
        );
        expect([...journal.rows.keys()]).toEqual(expected.map(([seq]) => seq));
      }
      const { checkpoint, rollups } = journal.compacted ?? { rollups: [] };
      const chain = new RollupChain("/rollups");
      for (const rollup of rollups) expect([...chain.add(...rollup)]).toEqual([]);
      expect(chain.hash).toBe(checkpoint?.rollupHash ?? "");
    }),
    { numRuns: trialCount(40) },
  );
});

it("a correction during a prune keeps its call, and the prune is repeated", async () => {
  let tries = 0;
  const { journal, apply, maintenance, reads } = createLedger((backend) => ({
    ...backend,
    async putCheckpoint(...of) {
      if (++tries === 1)
        apply({ do: "adjust", at: BEFORE, attempt: "a", costNano: 1n, reason: "r", actor: "x" });
      return backend.putCheckpoint(...of);
    },
  }));
  apply(reserveCommand("a"), settleCommand("a", { at: NOON }));
  expect((await maintenance.prune(BEFORE)).rows).toBe(2);
  expect(tries).toBe(2);
  expect([...journal.rows.values()].map(({ kind }) => kind)).toEqual(["reserve", "adjust"]);
  expect((await reads.sumEntries({ by: [] }))[0]?.costNano).toBe(701n);
});

it("an archive ends with the hash that the checkpoint of its rows has", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-rows-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { journal, apply, maintenance } = createLedger();
  const labels = { user: "4711" };
  apply(reserveCommand("a", { labels }), settleCommand("a", { at: NOON + 1 }));
  apply(reserveCommand("b", { labels, at: BEFORE }), settleCommand("b", { at: BEFORE }));
  const file = join(folder, "rows.gz");
  const { lastHash, rows } = await maintenance.archive(file, { before: BEFORE, labels: true });
  expect(rows).toBe(2);
  await maintenance.prune(BEFORE);
  expect(journal.compacted?.checkpoint.hash).toBe(lastHash);
  const later = join(folder, "later.gz");
  const next = await maintenance.archive(later, { before: Infinity, labels: true });
  expect(next.previousHash).toBe(lastHash);
  const users: unknown[] = [];
  const { problems } = await readArchive(later, (some) =>
    users.push(...some.map((row) => row.labels["user"])),
  );
  expect([problems, users]).toEqual([[], ["4711", "4711"]]);
});

it("an erasure returns hashes, which erase the same text from another copy of the ledger", async () => {
  const labels = { user: "4711", team: "core" };
  const one = createLedger();
  const two = createLedger((backend) => ({ ...backend, secret: one.backend.secret }));
  for (const { apply } of [one, two])
    apply(reserveCommand("a", { labels }), settleCommand("a"), reserveCommand("open", { labels }), {
      do: "key",
      at: NOON,
      key: { id: "alice", digest: "d", created: NOON, labels },
    });
  const { hashes } = await one.maintenance.erase({ label: { name: "user", value: "4711" } });
  expect(await two.maintenance.erase({ hashes })).toEqual({ hashes });
  for (const { apply, journal } of [one, two]) {
    apply(settleCommand("open"));
    for (const row of journal.rows.values())
      expect(row.labels).toEqual({ user: "erased", team: "core" });
    expect(journal.keys.get("d")?.labels).toEqual({ user: "erased", team: "core" });
  }
});

async function transfer(from: Ledger, to: Ledger) {
  await using out = await createRowTransfer(from.backend).openExport();
  await using into = await createRowTransfer(to.backend).openImport();
  for (let more = true; more;) {
    const page = await out.readRows(into.after);
    await into.writeRows(page);
    ({ more } = page);
  }
  await out.stopWrites();
  return into.finish(await out.readRemainder());
}

it("a transfer keeps sums, limits, records, and open calls of every history, pruned or not", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, isPruned) => {
      const [one, two, three] = [createLedger(), createLedger(), createLedger()];
      applySteps(one, steps);
      one.apply(
        { do: "key", at: NOON, key: { id: "alice", digest: "d", created: NOON } },
        { do: "price", at: NOON, hash: "p", price: { usd: {} } as never },
      );
      await one.audit.begin({
        id: "x",
        at: NOON,
        actor: "a",
        role: "owner",
        channel: "socket",
        command: "c",
      });
      await one.audit.end({ id: "x", at: NOON, outcome: "done" });
      if (isPruned) await one.maintenance.prune(BEFORE);
      await transfer(one, two);
      await transfer(two, three);
      const stateOf = async ({ reads, rules, audit, maintenance, backend, journal }: Ledger) => ({
        sums: await reads.sumEntries({ by }),
        limits: rules.limitUsage(LIMITS, NOON + 99),
        open: (await backend.readSnapshot()).openCalls,
        keys: (await reads.listKeys()).items,
        prices: [...journal.prices],
        audit: await audit.list(),
        pruned: (await maintenance.readState()).prunedRows,
      });
      for (const copy of [two, three]) {
        expect(await verifyRows(copy.backend)).toEqual([]);
        expect(await stateOf(copy)).toEqual(await stateOf(one));
      }
      const rows = ({ journal }: Ledger) => [...journal.rows.values()];
      expect(rows(three)).toEqual(rows(two));
      if (!isPruned) expect(rows(two)).toEqual(rows(one));
    }),
    { numRuns: trialCount(40) },
  );
});

it("an import needs an empty store, and rejects other totals", async () => {
  const [one, two] = [createLedger(), createLedger()];
  applySteps(one, [
    ["reserve", 1, 1],
    ["settle", 1, 2],
  ]);
  await expect(createRowTransfer(one.backend).openImport()).rejects.toMatchObject({
    message: "The store already contains a ledger.",
  });
  await using into = await createRowTransfer(two.backend).openImport();
  await using out = await createRowTransfer(one.backend).openExport();
  await into.writeRows(await out.readRows(0));
  const rest = await out.readRemainder();
  await expect(into.finish({ ...rest, totals: [] })).rejects.toThrow("totals of the imported rows");
});

describe("verification finds", () => {
  async function createPruned() {
    const ledger = createLedger();
    ledger.apply(
      ...["a", "b"].flatMap((attempt) => [
        reserveCommand(attempt, { claims }),
        settleCommand(attempt, { at: NOON, costNano: 7n }),
      ]),
      { do: "adjust", at: BEFORE, attempt: "a", costNano: 1n, reason: "r", actor: "x" },
      reserveCommand("open", { at: BEFORE, claims }),
    );
    expect((await ledger.maintenance.prune(BEFORE)).rows).toBe(4);
    return ledger;
  }
  type Change = (backend: TransferBackend) => Partial<TransferBackend>;
  const without = (backend: TransferBackend, kind: string) =>
    function* (after: number) {
      for (const entry of backend.scanRows(after) as Iterable<readonly [number, { kind: string }]>)
        if (entry[1].kind !== kind) yield entry as never;
    };
  const changed = (
    backend: TransferBackend,
    change: (snapshot: LedgerSnapshot) => Partial<LedgerSnapshot>,
  ): Partial<TransferBackend> => ({
    async readSnapshot() {
      const snapshot = await backend.readSnapshot();
      return { ...snapshot, ...change(snapshot) };
    },
  });
  const changes: [string, string, Change][] = [
    ["nothing in a whole ledger", "", () => ({})],
    ["a rollup that is gone", "/rollups", () => ({ readRollups: async () => [] })],
    [
      "a rollup that was changed",
      "/rollups/1",
      (backend) => ({
        readRollups: async () =>
          (await backend.readRollups()).map(
            ([n, at, text, hash]) => [n, at, `${text} `, hash] as const,
          ),
      }),
    ],
    ["a checkpoint that is gone", "/rollups", () => ({ readCheckpoint: async () => undefined })],
    [
      "a reserve that is gone",
      "/retained/1",
      (backend) => ({ scanRows: without(backend, "reserve") }),
    ],
    [
      "a correction that is gone",
      "/meter/",
      (backend) => ({ scanRows: without(backend, "adjust") }),
    ],
    [
      "usage that no row explains",
      "/meter/",
      (backend) =>
        changed(backend, ({ meters }) => ({
          meters: meters.map((meter) => ({ ...meter, level: meter.level + 1n })),
        })),
    ],
    ["a meter that is gone", "/meter/", (backend) => changed(backend, () => ({ meters: [] }))],
    [
      "an open call that is not listed",
      "/open_call/open",
      (backend) => changed(backend, () => ({ openCalls: new Map() })),
    ],
    [
      "a call that is listed as open and has ended",
      "/open_call/a",
      (backend) =>
        changed(backend, ({ openCalls }) => ({
          openCalls: new Map([...openCalls, ["a", undefined]]),
        })),
    ],
  ];
  it.each(changes)("%s", async (_name, path, change) => {
    const { backend } = await createPruned();
    const problems = await verifyRows({ ...backend, ...change(backend) });
    if (path === "") expect(problems).toEqual([]);
    else expect(problems.map((each) => each.path).join(" ")).toContain(path);
  });

  it("a settle without its reserve", async () => {
    const { backend, apply } = createLedger();
    apply(reserveCommand("a"), settleCommand("a"));
    const problems = await verifyRows({ ...backend, scanRows: without(backend, "reserve") });
    expect(problems).toContainEqual({ path: "/entry/a", message: "The settle has no reserve." });
  });
});
