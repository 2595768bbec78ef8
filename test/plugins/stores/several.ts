// A ledger that several gateways open at once, in memory: all that a store of several instances has to be, without a database.
import { fail, type Store, type StoreNews, type StoreOwner } from "tollgate/plugin";
import {
  checkCommand,
  createBook,
  createMemoryJournal,
  journalReads,
  presumed,
} from "tollgate/store";

interface Instance extends StoreOwner {
  hear: (news: StoreNews) => void;
  state: "live" | "left" | "dead";
  heard: number;
  aheadMs?: number;
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
  const journal = createMemoryJournal(() => writing);
  const book = createBook(journal, () => writing);

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
          batch.forEach(checkCommand);
          mine.heard = Date.now();
          for (const command of batch)
            if (command.do === "alive") {
              mine.aheadMs = command.at - mine.heard;
              mine.about = command.about ?? mine.about;
            }
          writing = me;
          const verdicts = commit(() =>
            structuredClone(batch).map((command) => book.apply(command)),
          );
          if (batch.some(({ do: kind }) => kind === "key")) tell({ type: "keys" }, me);
          if (batch.some(({ do: kind }) => kind === "account")) tell({ type: "accounts" }, me);
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
        instances: async () =>
          [...instances.values()].map(({ hear: _, ...each }) => ({
            ...each,
            lagMs: 0,
            open: [...book.open.values()].filter(({ row }) => row.instance === each.instance)
              .length,
          })),
        counted: async (limits, at) => book.counted(limits, at),
        ...journalReads(journal),
      };
    },
  };
}
