// Another process in the place of the one that runs, with what is installed now: no request is cut, no connection refused.
import { setTimeout as sleep } from "node:timers/promises";
import { askControl } from "../gateway/control/asking.ts";
import type { Status } from "../gateway/types.ts";
import { plural } from "../lib/text.ts";
import { fail, faultOf } from "../model/error.ts";
import { type CliCommand, EXIT, PLACE } from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { say, sayJson } from "./terminal.ts";

const EVERY_MS = 100;

export const command: CliCommand = {
  usage: "upgrade-in-place [options]",
  about:
    "Starts the running gateway anew, with what is installed now and with gateway.yaml as it is now, while it serves: the new process\n" +
    "takes its ports and its ledger, and the old one ends when its last request is over. SIGUSR2 does the same. When the new\n" +
    "one does not serve, the old one goes on as before, and this exits with 1.",
  options: PLACE,
  examples: [
    "tollgate upgrade-in-place",
    "tollgate upgrade-in-place --state-dir /var/lib/tollgate",
  ],
  async run(given) {
    const stateDir = await stateDirOf(given);
    const before = await statusOf(stateDir);
    process.kill(before.pid, "SIGUSR2");
    const now = await replaced(stateDir, before);
    if (given.json)
      sayJson({
        pid: now.pid,
        version: now.version,
        before: { pid: before.pid, version: before.version },
      });
    else
      say(
        `Version ${now.version} serves at ${now.url}, pid ${now.pid}. ${
          now.before
            ? `Version ${before.version}, pid ${before.pid}, ends when ${plural(now.before.inFlight, "request")} ${now.before.inFlight === 1 ? "is" : "are"} over.`
            : `Nothing is left of version ${before.version}, pid ${before.pid}.`
        }`,
      );
    return EXIT.fine;
  },
};

const statusOf = async (stateDir: string): Promise<Status> =>
  (await askControl(stateDir, "status")) as unknown as Status;

/** Between the two of them no process answers for a moment. */
async function replaced(stateDir: string, before: Status): Promise<Status> {
  for (;;) {
    await sleep(EVERY_MS);
    const now = await statusOf(stateDir).catch((error: unknown) => {
      if (faultOf(error)?.kind !== "unavailable" || !lives(before.pid)) throw error;
      return undefined;
    });
    if (!now) continue;
    // It has an address once its ports are open.
    if (now.pid !== before.pid && now.url !== "") return now;
    if (now.lastUpgrade && now.lastUpgrade.at > (before.lastUpgrade?.at ?? 0))
      fail("unavailable", now.lastUpgrade.why, { code: "not_upgraded" });
  }
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
