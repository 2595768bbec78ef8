// Bundles the SQLite store's thread into one file before the tests, as the build does. Without it,
// each store that a test opens spends 70 ms of CPU time on loading the thread's modules.
import { renameSync } from "node:fs";
import { rolldown } from "rolldown";
import { LEDGER_THREAD } from "./ledger-thread.ts";

export default async function bundleLedgerThread(): Promise<void> {
  const bundle = await rolldown({
    input: new URL("../../plugins/stores/sqlite/threads/thread-entry.ts", import.meta.url).pathname,
    platform: "node",
    resolve: { conditionNames: ["tollgate-source", "node", "import"] },
  });
  const fresh = `${LEDGER_THREAD}.${process.pid}`;
  await bundle.write({ file: fresh, format: "cjs", codeSplitting: false });
  // Another run of this checkout can be reading the file.
  renameSync(fresh, LEDGER_THREAD);
}
