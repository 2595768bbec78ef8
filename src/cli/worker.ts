// What a worker process runs: `tollgate serve` starts it, with its own arguments so that a list of processes says whose it
// is. Signals are the primary's to obey: a terminal and an init system send them to every process.
import { createLog } from "../lib/log/log.ts";
import { SecretMask } from "../lib/log/secret-mask.ts";
import { startEventLoopWatchdog } from "../runtime/health/event-loop-watchdog.ts";
import { startWorker } from "../runtime/workers/worker-process.ts";
import type { IpcChannel } from "../runtime/workers/ipc-link.ts";
import { createPluginLoader } from "./support/load-config.ts";
import { disablePretenuring } from "./support/v8-memory.ts";
import { freezeObjectPrototype } from "./support/freeze-prototype.ts";
import { ignoreTerminalErrors } from "./format/terminal.ts";

disablePretenuring();
freezeObjectPrototype();
ignoreTerminalErrors();

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)
  process.on(signal, () => {});

const mask = new SecretMask();
const pretty = process.stdout.isTTY && !process.argv.includes("--json");
const log = createLog({ level: "info", pretty, mask });
const worker = startWorker({ load: createPluginLoader(), log, mask }, process as IpcChannel);
process.on("uncaughtException", (error) => {
  log.error({ error }, "an error that was not caught");
  worker.reportUnhealthy();
});
// A process whose event loop stands ends itself. The primary sees that and starts another one.
const watchdog = startEventLoopWatchdog({ isPretty: pretty });
await worker.whenDone;
watchdog[Symbol.dispose]();
log.flush();
process.exit(0);
