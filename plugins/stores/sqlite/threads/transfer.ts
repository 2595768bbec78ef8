// A ledger that moves, from this side of the threads: a thread of its own for as long as that lasts.
import type { LedgerTransfer, LedgerImport, LedgerExport } from "tollgate/plugin";
import type { WorkerThread } from "./thread.ts";

/** `start`: a thread that is there while a ledger is copied or cut. */
export const createTransfer = (start: () => Promise<WorkerThread>): LedgerTransfer => ({
  async openExport(): Promise<LedgerExport> {
    const thread = await start();
    const end = closeThread(thread);
    await thread.call("leave").catch((error: unknown) => end().then(() => Promise.reject(error)));
    return {
      readRows: (after) => thread.call("leavingRows", after),
      stopWrites: () => thread.call("quiet"),
      readRemainder: () => thread.call("rest"),
      [Symbol.asyncDispose]: end,
    };
  },
  async openImport(): Promise<LedgerImport> {
    const thread = await start();
    const end = closeThread(thread);
    const after = await thread
      .call<number>("arrive")
      .catch((error: unknown) => end().then(() => Promise.reject(error)));
    return {
      after,
      writeRows: (rows) => thread.call("takeRows", rows),
      finish: (rest) => thread.call("finish", rest),
      [Symbol.asyncDispose]: end,
    };
  },
});

const closeThread = (thread: WorkerThread) => async (): Promise<void> => {
  await thread.call("close").catch(() => undefined);
  await thread.kill();
};
