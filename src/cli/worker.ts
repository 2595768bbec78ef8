// What a worker process runs: `tollgate serve` starts it, with its own arguments so that a list of processes says whose it
// is. Signals are the primary's to obey: a terminal and an init system send them to every process.
import { createLog } from "../lib/log.ts";
import { Mask } from "../lib/mask.ts";
import { startPulse } from "../gateway/pulse/pulse.ts";
import { work } from "../gateway/workers/process.ts";
import type { Channel } from "../gateway/workers/link.ts";
import { createLoad } from "./loading.ts";
import { startYoung } from "./memory.ts";
import { keepPrototype } from "./prototype.ts";
import { outliveTerminal } from "./terminal.ts";

startYoung();
keepPrototype();
outliveTerminal();

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)
  process.on(signal, () => {});

const mask = new Mask();
const pretty = process.stdout.isTTY && !process.argv.includes("--json");
const log = createLog({ level: "info", pretty, mask });
const worker = work({ load: createLoad(), log, mask }, process as Channel);
process.on("uncaughtException", (error) => {
  log.error({ error }, "an error that was not caught");
  worker.ailing();
});
// A process whose event loop stands ends itself. The primary sees that and starts another one.
const pulse = startPulse({ pretty });
await worker.over;
pulse[Symbol.dispose]();
log.flush();
process.exit(0);
