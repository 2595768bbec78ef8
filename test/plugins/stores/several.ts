// A ledger that several gateways open at once, in memory: all that a store of several instances has to be, without a database.
import { fail, type KeyRecord, type Store, type StoreNews, type StoreOwner } from "tollgate/plugin";
import { createBook } from "../../../plugins/stores/book/book.ts";
import { check } from "../../../plugins/stores/book/check.ts";
import { keyCursor, listed, sizeOf } from "../../../plugins/stores/book/page.ts";
import { matches, presumed, toEntry } from "../../../plugins/stores/book/row.ts";
import { counts, totalling } from "../../../plugins/stores/book/totals.ts";
import { createJournal } from "../../../plugins/stores/memory/journal.ts";

interface Instance extends StoreOwner {
  hear: (news: StoreNews) => void;
  state: "live" | "left" | "dead";
  heard: number;
}

export interface SharedLedger {
  store(): Store;
  /** Its lease is over, though it may live. */
  bury(instance: string): void;
}

export function sharedLedger(lease = { ms: 15_000, beatMs: 5_000 }): SharedLedger {
  const instances = new Map<string, Instance>();
  const decided = new Map<string, Promise<Uint8Array>>();
  let writing = "";
  const journal = createJournal(() => writing);
  const book = createBook(journal, "shared");

  const tell = (news: StoreNews, except: string) => {
    for (const { instance, hear, state } of instances.values())
      if (instance !== except && state === "live") hear(news);
  };

  function commit<T>(work: () => T): T {
    try {
      const result = work();
      book.done();
      journal.done();
      return result;
    } catch (error) {
      book.undo();
      journal.undo();
      throw error;
    }
  }

  /** What the dead have left open. */
  function recover(by: string): number {
    const left = [...book.open.values()].filter(
      ({ row }) => instances.get(row.instance)?.state !== "live",
    );
    const at = left.reduce((latest, { row }) => Math.max(latest, row.at), 0);
    writing = by;
    commit(() => left.forEach(({ row, heard }) => book.apply(presumed(row, heard, at))));
    const of = Map.groupBy(left, ({ row }) => row.instance);
    for (const [instance, calls] of of)
      tell({ type: "presumed", instance, calls: calls.length }, "");
    return left.length;
  }

  const all = <T>(found: readonly T[]) => ({ items: found });

  return {
    bury: (instance) => void (instances.get(instance)!.state = "dead"),
    store(): Store {
      let me = "";
      return {
        lease,
        async open({ instance, about }, hear = () => {}) {
          me = instance;
          instances.set(me, { instance, about, hear, state: "live", heard: Date.now() });
          return { epoch: instances.size, presumed: recover(me) };
        },
        async apply(batch) {
          const mine = instances.get(me);
          if (mine?.state !== "live")
            return fail("conflict", "This instance was taken for dead.", { code: "fenced" });
          batch.forEach(check);
          mine.heard = Date.now();
          writing = me;
          const verdicts = commit(() => structuredClone(batch).map(book.apply));
          if (batch.some(({ do: kind }) => kind === "key")) tell({ type: "keys" }, me);
          if (batch.some(({ do: kind }) => kind === "alive")) recover(me);
          return verdicts;
        },
        shared(name, make) {
          const known = decided.get(name);
          if (known) return known;
          const made = make();
          decided.set(name, made);
          made.catch(() => decided.delete(name));
          return made;
        },
        instances: async () => [...instances.values()].map(({ hear: _, ...each }) => ({ ...each })),
        key: async (digest) => journal.keys.get(digest),
        price: async (hash) => journal.prices.get(hash),
        keys: async (page) => {
          const found = [...journal.keys.values()]
            .filter((record: KeyRecord) => keyCursor(record) > (page?.after ?? ""))
            .sort((a, b) => (keyCursor(a) < keyCursor(b) ? -1 : 1));
          return listed(found, sizeOf(page), keyCursor);
        },
        async entries(query, page) {
          const found = [...journal.rows]
            .filter(([seq]) => seq > Number(page?.after ?? 0))
            .filter(([, row]) => matches(row, query, journal.closed(row.attempt)))
            .map(([seq, row]) => toEntry(row, seq));
          return page ? listed(found, sizeOf(page), ({ seq }) => String(seq)) : all(found);
        },
        async totals(query) {
          const sums = totalling(query.by);
          for (const row of journal.rows.values())
            if (counts(row, query.state) && matches(row, query, journal.closed(row.attempt)))
              sums.add(row);
          return sums.totals();
        },
      };
    },
  };
}
