// Ledger maintenance, called from the main thread: backup, archive, compaction, and erasure.
import { type ErasureRequest, type LedgerMaintenance } from "tollgate/plugin";
import { createPrune } from "tollgate/store";
import type { Reader } from "../read/reader.ts";
import type { Writer } from "../write/writer.ts";
import { CompactionRun } from "./compaction-run.ts";
import type { LongTasks } from "./long-tasks.ts";
import type { MethodArgs, MethodResult, WorkerThread } from "./thread.ts";

/** Maximum number of hashes per call to a thread. */
const HASHES_PER_CALL = 10_000;

export interface MaintenanceThreads {
  /** Starts a thread for long tasks and ends it when the work is done. */
  withLongTasks<T>(work: (thread: WorkerThread<LongTasks>) => Promise<T>): Promise<T>;
  /** Returns the writer thread, which lives as long as the store is open. */
  writer(): Promise<{ readonly thread: WorkerThread<Writer> }>;
  reader(): Promise<{ readonly thread: WorkerThread<Reader> }>;
}

export function createLedgerMaintenance({
  withLongTasks,
  writer,
  reader,
}: MaintenanceThreads): LedgerMaintenance {
  const callLongTask =
    <M extends "backup" | "restore" | "archive" | "readArchive">(method: M) =>
    (...args: MethodArgs<LongTasks, M>): Promise<MethodResult<LongTasks, M>> =>
      withLongTasks((thread) => thread.call(method, ...args));

  /** Erases texts in writer steps until none is left. Returns the erased hashes. */
  async function erased(thread: WorkerThread<LongTasks>, what: ErasureRequest): Promise<string[]> {
    const values: string[] = [];
    for (let from = 0; ;) {
      const { hashes, after } = await thread.call("findTexts", what, from);
      if (hashes.length === 0) return values;
      values.push(...(await (await writer()).thread.call("erase", hashes, Date.now())));
      from = after;
    }
  }

  const readState = async () => (await reader()).thread.call("readState");
  const prune = createPrune(readState, async (before, progress) => {
    const done = await withLongTasks((thread) =>
      new CompactionRun(thread, writer, progress).run(before),
    );
    // Reports can use rollups again when the compaction returns.
    await (await reader()).thread.call("updateRollups");
    return done;
  });

  return {
    backup: callLongTask("backup"),
    restore: callLongTask("restore"),
    archive: callLongTask("archive"),
    readArchive: callLongTask("readArchive"),
    planPrune: (before) => withLongTasks((thread) => thread.call("planCompaction", before)),
    prune,
    readState,
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
