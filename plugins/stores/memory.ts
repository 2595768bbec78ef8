// Keeps the ledger in memory: for tests, demos, and gateways that need no billing. The data is lost
// when the process ends.
import { defineStore } from "tollgate/plugin";
import type { Store } from "tollgate/plugin";
import {
  checkCommand,
  createLedgerRules,
  createMemoryJournal,
  createJournalReads,
  createMemoryAuditLog,
  createMemoryJobs,
  isJobCall,
  recoveredSettle,
  recoveryTime,
} from "tollgate/store";

export default defineStore({
  api: 1,
  name: "memory",
  stability: "stable",
  summary: "Keep the ledger in memory; it is lost when the process exits",
  isVolatile: true,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      keep: {
        type: "integer",
        minimum: 1_000,
        default: 200_000,
        description: "Maximum number of ledger rows. The oldest settled rows are removed first",
      },
    },
  },
  setup: ({ keep }) => createMemoryStore(keep),
});

function createMemoryStore(keep: number): Store {
  let owner = "";
  const journal = createMemoryJournal(() => owner);
  const opened = () => createLedgerRules(journal, () => owner);
  let book: ReturnType<typeof opened> | undefined;
  let epoch = 0;

  return {
    async open({ instance }) {
      epoch++;
      if (book && instance === owner) return { epoch, recovered: 0 };
      const before = book;
      const remaining = [...(before?.openCalls.values() ?? [])];
      owner = instance;
      book = opened();
      for (const meter of before?.meters.values() ?? [])
        book.loadMeter({ ...meter, reserved: 0n, openCalls: 0 });
      for (const call of remaining) book.restoreCall(call);
      // A job outlives its process.
      const dead = remaining.filter(({ row }) => !isJobCall(row));
      const at = recoveryTime(dead, Date.now());
      for (const { row, progress } of dead) book.apply(recoveredSettle(row, progress, at));
      book.commit();
      journal.commit();
      return { epoch, recovered: dead.length };
    },
    async apply(batch) {
      if (!book) throw new Error("The store is not open.");
      batch.forEach(checkCommand);
      try {
        // Copies the batch, so that the caller cannot change the ledger later. If the store is in
        // another thread or process, it also receives copies.
        const verdicts = structuredClone(batch).map((command) => book!.apply(command));
        book.commit();
        journal.commit();
        book.dropIdleMeters();
        journal.dropOldest(keep, book.openCalls);
        return verdicts;
      } catch (error) {
        book.rollback();
        journal.rollback();
        throw error;
      }
    },
    async readLimits(limits, at) {
      if (!book) throw new Error("The store is not open.");
      return book.limitUsage(limits, at);
    },
    thresholds: {
      listUndelivered: async () => book?.undeliveredThresholds() ?? [],
      async markDelivered(crossings) {
        book?.markDelivered(crossings);
        book?.commit();
      },
    },
    ...createJournalReads(journal),
    audit: createMemoryAuditLog(),
    jobs: createMemoryJobs(),
  };
}
