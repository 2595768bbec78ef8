// A ledger that several gateways open at the same time, in memory: everything that a store of
// several instances needs, without a database.
import { fail, type Store, type StoreEvent, type StoreInstance } from "tollgate/plugin";
import {
  checkCommand,
  createLedgerRules,
  createMemoryJournal,
  createJournalReads,
  recoveredSettle,
  createJournalBackend,
  createMemoryAuditLog,
  createMemoryJobs,
  isJobCall,
  createRowMaintenance,
  createRowTransfer,
  verifyRows,
} from "tollgate/store";

interface Instance extends StoreInstance {
  hear: (news: StoreEvent) => void;
  state: "live" | "left" | "dead";
  lastHeartbeatAt: number;
  clockAheadMs?: number;
}

export interface SharedLedger {
  store(): Store;
  /** A store that can also be verified and moved. */
  createMovableStore(): Store;
  /** Its lease has expired, although it may be alive. */
  bury(instance: string): void;
}

export function sharedLedger(lease = { durationMs: 15_000, heartbeatMs: 5_000 }): SharedLedger {
  const instances = new Map<string, Instance>();
  const decided = new Map<string, Promise<Uint8Array>>();
  let writing = "";
  const journal = createMemoryJournal(() => writing);
  const book = createLedgerRules(journal, () => writing);

  const tell = (news: StoreEvent, except: string) => {
    for (const { instance, hear, state } of instances.values())
      if (instance !== except && state === "live") hear(news);
  };

  function commit<T>(work: () => T): T {
    try {
      const result = work();
      book.commit();
      journal.commit();
      return result;
    } catch (error) {
      book.rollback();
      journal.rollback();
      throw error;
    }
  }

  /** Open calls of dead instances. */
  function recover(by: string): number {
    const left = [...book.openCalls.values()].filter(
      ({ row }) => instances.get(row.instance)?.state !== "live" && !isJobCall(row),
    );
    const at = left.reduce((latest, { row }) => Math.max(latest, row.at), 0);
    writing = by;
    commit(() =>
      left.forEach(({ row, progress }) => book.apply(recoveredSettle(row, progress, at))),
    );
    const of = Map.groupBy(left, ({ row }) => row.instance);
    for (const [instance, calls] of of)
      tell({ type: "calls_recovered", instance, calls: calls.length }, "");
    return left.length;
  }

  const jobs = createMemoryJobs();
  const audit = createMemoryAuditLog();
  const backend = createJournalBackend(journal, book, audit, jobs);
  const maintenance = createRowMaintenance(backend);

  return {
    bury: (instance) => void (instances.get(instance)!.state = "dead"),
    createMovableStore: () => ({
      ...createStore(),
      audit,
      verify: () => verifyRows(backend),
      transfer: createRowTransfer(backend),
    }),
    store: createStore,
  };

  function createStore(): Store {
    let me = "";
    return {
      lease,
      async open({ instance, info }, hear = () => {}) {
        me = instance;
        instances.set(me, { instance, info, hear, state: "live", lastHeartbeatAt: Date.now() });
        return { epoch: instances.size, recovered: recover(me) };
      },
      async apply(batch) {
        const mine = instances.get(me);
        if (mine?.state !== "live")
          return fail("conflict", "This gateway was fenced because its lease expired.", {
            code: "fenced",
          });
        batch.forEach(checkCommand);
        mine.lastHeartbeatAt = Date.now();
        for (const command of batch)
          if (command.do === "heartbeat") {
            mine.clockAheadMs = command.at - mine.lastHeartbeatAt;
            mine.info = command.info ?? mine.info;
          }
        writing = me;
        const verdicts = commit(() => structuredClone(batch).map((command) => book.apply(command)));
        if (batch.some(({ do: kind }) => kind === "key")) tell({ type: "keys_changed" }, me);
        if (batch.some(({ do: kind }) => kind === "account"))
          tell({ type: "accounts_changed" }, me);
        if (batch.some(({ do: kind }) => kind === "heartbeat")) recover(me);
        return verdicts;
      },
      getOrCreateShared(name, make) {
        const known = decided.get(name);
        if (known) return known;
        const made = make();
        decided.set(name, made);
        made.catch(() => decided.delete(name));
        return made;
      },
      listInstances: async () =>
        [...instances.values()].map(({ hear: _, ...each }) => ({
          ...each,
          syncLagMs: 0,
          openCalls: [...book.openCalls.values()].filter(
            ({ row }) => row.instance === each.instance,
          ).length,
        })),
      readLimits: async (limits, at) => book.limitUsage(limits, at),
      ...createJournalReads(journal),
      jobs,
      maintenance,
    };
  }
}
