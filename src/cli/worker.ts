// Entry point of a worker process. `tollgate serve` starts it with its own arguments, so that a
// process list shows to which gateway a worker belongs. Workers ignore signals, because terminals
// and init systems send them to every process. The primary process handles them.
import { createLog } from "../lib/log/log.ts";
import { SecretMask } from "../lib/log/secret-mask.ts";
import { startEventLoopWatchdog } from "../runtime/health/event-loop-watchdog.ts";
import { startWorker } from "../runtime/workers/worker-process.ts";
import type { IpcChannel } from "../runtime/workers/ipc-link.ts";
import { createPluginLoader } from "./support/load-config.ts";
import { disablePretenuring, freezeObjectPrototype } from "./support/process-setup.ts";
import { ignoreTerminalErrors } from "./format/terminal.ts";

freezeObjectPrototype();
ignoreTerminalErrors();

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)
  process.on(signal, () => {});

const mask = new SecretMask();
const pretty = process.stdout.isTTY && !process.argv.includes("--json");
const log = createLog({ level: "info", pretty, mask });
const worker = startWorker({ load: createPluginLoader(), log, mask }, process as IpcChannel);
process.on("uncaughtException", (error) => {
  log.error({ error }, "uncaught error");
  worker.reportUnhealthy();
});
// Ends this process if its event loop is blocked. The primary process detects the exit and starts
// another worker.
const watchdog = startEventLoopWatchdog({ isPretty: pretty });
void watchdog.whenLoaded.then(disablePretenuring);
await worker.whenDone;
watchdog[Symbol.dispose]();
log.flush();
process.exit(0);
