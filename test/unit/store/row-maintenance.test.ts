// A store that keeps complete rows gets retention, archives, and erasure from the kit, even during
// writes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import type { StoreCommand } from "../../../src/plugin/index.ts";
import {
  createJournalBackend,
  createJournalReads,
  createLedgerRules,
  createMemoryJournal,
  createRowMaintenance,
  readArchive,
  RollupChain,
  type LedgerBackend,
} from "../../../src/store/index.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { trialCount } from "../../kit/law-effort.ts";

function createLedger(change: (backend: LedgerBackend) => LedgerBackend = (backend) => backend) {
  const journal = createMemoryJournal(() => "one");
  const rules = createLedgerRules(journal, () => "one");
  const apply = (...commands: StoreCommand[]) => {
    for (const command of commands) rules.apply(command);
    rules.commit();
    journal.commit();
  };
  const backend = createJournalBackend(journal, (attempt) => !!rules.openCalls.get(attempt));
  const maintenance = createRowMaintenance(change(backend));
  return { journal, apply, backend, maintenance, reads: createJournalReads(journal) };
}

const by = ["day", "key", "model", "state"] as const;
const BEFORE = NOON + 50;

const step = fc.tuple(fc.constantFrom("reserve", "settle", "adjust"), fc.nat(5), fc.nat(99));

it("a prune keeps the sums of every history, and the reserves of open calls", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(3), async (steps, prunes) => {
      const { journal, apply, maintenance, reads } = createLedger();
      const state = new Map<string, "open" | "over">();
      for (const [kind, call, at] of steps) {
        const attempt = `a${call}`;
        if (kind === "reserve" && !state.has(attempt)) {
          apply(reserveCommand(attempt, { at: NOON + at, labels: { user: `u${call}` } }));
          state.set(attempt, "open");
        } else if (kind === "settle" && state.get(attempt) === "open") {
          apply(settleCommand(attempt, { at: NOON + at, costNano: BigInt(at) }));
          state.set(attempt, "over");
        } else if (kind === "adjust" && state.get(attempt) === "over")
          apply({
            do: "adjust",
            at: NOON + at,
            attempt,
            costNano: 1n,
            reason: `${at}`,
            actor: "x",
          });
      }
      const before = await reads.sumEntries({ by });
      const rows = [...journal.rows];
      for (let n = 0; n <= prunes; n++) {
        const until = BEFORE + n * 10;
        const plan = await maintenance.planPrune(until);
        expect((await maintenance.prune(until)).rows).toBe(plan.rows);
        expect(await reads.sumEntries({ by })).toEqual(before);
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
