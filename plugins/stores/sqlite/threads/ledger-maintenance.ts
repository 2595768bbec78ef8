// A ledger's life, from this side of the threads.
import {
  type ErasureRequest,
  fail,
  type LedgerMaintenance,
  type LedgerState,
  type PrunePlan,
  type PruneResult,
  type PruneProgress,
} from "tollgate/plugin";
import type { FoundTexts } from "../retention/erasure.ts";
import { CompactionRun } from "./compaction-run.ts";
import type { WorkerThread } from "./thread.ts";

/** Hashes that one question names. */
const HASHES_PER_CALL = 10_000;

export interface MaintenanceThreads {
  /** Ends it when the work is done. */
  withLongTasks<T>(work: (thread: WorkerThread) => Promise<T>): Promise<T>;
  /** The one that writes; it is there as long as the store is open. */
  writer(): Promise<{ readonly thread: WorkerThread }>;
  reader(): Promise<{ readonly thread: WorkerThread }>;
}

export function createLedgerMaintenance({
  withLongTasks,
  writer,
  reader,
}: MaintenanceThreads): LedgerMaintenance {
  const erasureQueries =
    <N extends "backup" | "restore" | "archive" | "readArchive">(method: N) =>
    (...args: Parameters<Required<LedgerMaintenance>[N]>) =>
      withLongTasks((thread) =>
        thread.call<Awaited<ReturnType<Required<LedgerMaintenance>[N]>>>(method, ...args),
      );

  /** A step of the writer for some of them at a time, until none is left. */
  async function erased(thread: WorkerThread, what: ErasureRequest): Promise<string[]> {
    const values: string[] = [];
    for (let from = 0; ;) {
      const { hashes, after } = await thread.call<FoundTexts>("words", what, from);
      if (hashes.length === 0) return values;
      values.push(...(await (await writer()).thread.call<string[]>("erase", hashes, Date.now())));
      from = after;
    }
  }

  let under: Promise<PruneResult> | undefined;
  function once(work: () => Promise<PruneResult>): Promise<PruneResult> {
    if (under)
      return fail("conflict", "Rows are being pruned already.", { code: "prune_under_way" });
    return (under = work().finally(() => (under = undefined)));
  }
  const state = async () => (await reader()).thread.call<LedgerState>("state");
  async function pruned(
    before: number,
    progress: ((of: PruneProgress) => void) | undefined,
  ): Promise<PruneResult> {
    const room = (await state()).bytes;
    const done = await withLongTasks((thread) =>
      new CompactionRun(thread, writer, progress).run(before),
    );
    // Reports are told from sums again by the time that it is over.
    await (await reader()).thread.call("sum");
    const { bytes, oldestAt } = await state();
    return { ...done, bytes: Math.max(0, room - bytes), rowsSince: oldestAt };
  }

  return {
    backup: erasureQueries("backup"),
    restore: erasureQueries("restore"),
    archive: erasureQueries("archive"),
    readArchive: erasureQueries("readArchive"),
    planPrune: (before) => withLongTasks((thread) => thread.call<PrunePlan>("plan", before)),
    prune: (before, progress) => once(() => pruned(before, progress)),
    readState: state,
    erase: (what) =>
      withLongTasks(async (thread) => {
        if (!("hashes" in what)) return { hashes: await erased(thread, what) };
        const values: string[] = [];
        for (let from = 0; from < what.hashes.length; from += HASHES_PER_CALL) {
          const some = what.hashes.slice(from, from + HASHES_PER_CALL);
          values.push(...(await erased(thread, { hashes: some })));
        }
        return { hashes: values };
      }),
  };
}
