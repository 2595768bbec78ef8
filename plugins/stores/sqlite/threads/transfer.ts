// Exports and imports a ledger from the main thread. Each transfer has its own thread.
import type { LedgerTransfer, LedgerImport, LedgerExport } from "tollgate/plugin";
import type { LongTasks } from "./long-tasks.ts";
import type { WorkerThread } from "./thread.ts";

/**
 * Creates the transfer interface.
 * @param start Starts a thread for long tasks.
 */
export const createTransfer = (start: () => Promise<WorkerThread<LongTasks>>): LedgerTransfer => ({
  async openExport(): Promise<LedgerExport> {
    const thread = await start();
    const end = closeThread(thread);
    await thread
      .call("beginExport")
      .catch((error: unknown) => end().then(() => Promise.reject(error)));
    return {
      readRows: (after) => thread.call("exportRows", after),
      stopWrites: () => thread.call("stopWritesForExport"),
      readRemainder: () => thread.call("exportRemainder"),
      [Symbol.asyncDispose]: end,
    };
  },
  async openImport(): Promise<LedgerImport> {
    const thread = await start();
    const end = closeThread(thread);
    const after = await thread
      .call("beginImport")
      .catch((error: unknown) => end().then(() => Promise.reject(error)));
    return {
      after,
      writeRows: (rows) => thread.call("importRows", rows),
      finish: (rest) => thread.call("finishImport", rest),
      [Symbol.asyncDispose]: end,
    };
  },
});

const closeThread = (thread: WorkerThread<LongTasks>) => async (): Promise<void> => {
  await thread.close().catch(() => undefined);
  await thread.kill();
};
