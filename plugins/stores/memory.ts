// The ledger in memory: for tests, demonstrations, and gateways without a bill. It ends with the process.
import { defineStore } from "tollgate/plugin";
import type { Store } from "tollgate/plugin";
import {
  checkCommand,
  createBook,
  createMemoryJournal,
  journalReads,
  auditInMemory,
  presumed,
  recoveryAt,
} from "tollgate/store";

export default defineStore({
  api: 1,
  name: "memory",
  stability: "stable",
  summary: "Keeps the ledger in memory, and loses it with the process",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      keep: {
        type: "integer",
        minimum: 1_000,
        default: 200_000,
        description: "Ledger rows kept; the oldest settled ones go first",
      },
    },
  },
  setup: ({ keep }) => memoryStore(keep),
});

function memoryStore(keep: number): Store {
  let owner = "";
  const journal = createMemoryJournal(() => owner);
  const opened = () => createBook(journal, () => owner);
  let book: ReturnType<typeof opened> | undefined;
  let epoch = 0;

  return {
    async open({ instance }) {
      epoch++;
      if (book && instance === owner) return { epoch, presumed: 0 };
      const before = book;
      const left = [...(before?.open.values() ?? [])];
      owner = instance;
      book = opened();
      for (const meter of before?.meters.values() ?? []) book.load({ ...meter, held: 0n, open: 0 });
      for (const call of left) book.restore(call);
      const at = recoveryAt(left, Date.now());
      for (const { row, heard } of left) book.apply(presumed(row, heard, at));
      book.done();
      journal.done();
      return { epoch, presumed: left.length };
    },
    async apply(batch) {
      if (!book) throw new Error("The store is not open.");
      batch.forEach(checkCommand);
      try {
        // A copy, as a store in another thread or process has one: the ledger cannot be changed from outside.
        const verdicts = structuredClone(batch).map((command) => book!.apply(command));
        book.done();
        journal.done();
        book.sweep();
        journal.trim(keep, book.open);
        return verdicts;
      } catch (error) {
        book.undo();
        journal.undo();
        throw error;
      }
    },
    async counted(limits, at) {
      if (!book) throw new Error("The store is not open.");
      return book.counted(limits, at);
    },
    crossings: {
      untold: async () => book?.untold() ?? [],
      async told(crossings) {
        book?.told(crossings);
        book?.done();
      },
    },
    ...journalReads(journal),
    audit: auditInMemory(),
  };
}
