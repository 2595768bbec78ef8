// Starts the threads of SQLite stores from the bundle of `ledger-thread-bundle.ts`.
import { syncBuiltinESMExports } from "node:module";
import threads, { type Worker, type WorkerOptions } from "node:worker_threads";

export const LEDGER_THREAD = new URL(
  "../../node_modules/.cache/tests/ledger-thread.js",
  import.meta.url,
).pathname;

const Original = threads.Worker;
class BundledWorker extends Original {
  constructor(file: string | URL, options?: WorkerOptions) {
    if (String(file).endsWith("/stores/sqlite/threads/thread-entry.ts"))
      super(LEDGER_THREAD, { ...options, execArgv: [] });
    else super(file, options);
  }
}
threads.Worker = BundledWorker as typeof Worker;
syncBuiltinESMExports();
