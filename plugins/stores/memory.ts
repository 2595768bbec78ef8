// The ledger in memory: for tests, demonstrations, and gateways without a bill. It ends with the process.
import { defineStore } from "tollgate/plugin";
import type { Store } from "tollgate/plugin";
import { createBook } from "./book/book.ts";
import { check } from "./book/check.ts";
import { keyCursor, listed, sizeOf } from "./book/page.ts";
import { matches, presumed, recoveryAt, toEntry } from "./book/row.ts";
import { counts, totalling } from "./book/totals.ts";
import { createJournal } from "./memory/journal.ts";

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
  const journal = createJournal(() => owner);
  const opened = () => createBook(journal, owner);
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
      batch.forEach(check);
      try {
        // A copy, as a store in another thread or process has one: the ledger cannot be changed from outside.
        const verdicts = structuredClone(batch).map(book.apply);
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
    key: async (digest) => journal.keys.get(digest),
    price: async (hash) => journal.prices.get(hash),
    async keys(page) {
      const after = page?.after ?? "";
      const found = [...journal.keys.values()]
        .filter((record) => keyCursor(record) > after)
        .sort((a, b) => (keyCursor(a) < keyCursor(b) ? -1 : 1));
      return listed(found, sizeOf(page), keyCursor);
    },
    async entries(query, page) {
      const after = Number(page?.after ?? 0);
      const size = sizeOf(page);
      const found = [];
      for (const [seq, row] of journal.rows) {
        if (seq <= after || !matches(row, query, journal.closed(row.attempt))) continue;
        found.push(toEntry(row, seq));
        if (found.length > size) break;
      }
      return listed(found, size, ({ seq }) => String(seq));
    },
    async totals(query) {
      const sums = totalling(query.by);
      for (const row of journal.rows.values())
        if (counts(row, query.state) && matches(row, query, journal.closed(row.attempt)))
          sums.add(row);
      return sums.totals();
    },
  };
}
