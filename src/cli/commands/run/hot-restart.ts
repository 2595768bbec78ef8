// Starts a new process with the installed version to replace the running process. No request is
// canceled and no connection is refused.
import { setTimeout as sleep } from "node:timers/promises";
import { callControl } from "../../../admin/socket/control-client.ts";
import type { GatewayStatus } from "../../../runtime/gateway-api.ts";
import { plural } from "../../../lib/text.ts";
import { fail, getFault } from "../../../model/error.ts";
import { type CliCommand, EXIT_CODES, GATEWAY_OPTIONS } from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import { print, printJson } from "../../format/terminal.ts";

const POLL_MS = 100;

export const command: CliCommand = {
  usage: "hot-restart [options]",
  description:
    "Replaces the running gateway with a new process, using the installed version " +
    "and the current gateway.yaml, without downtime. The new process takes over ports " +
    "and ledger, and the old process exits after its last request. SIGUSR2 has the " +
    "same effect. If the new process does not start serving, the old process keeps " +
    "serving, and the command exits with 1.",
  options: GATEWAY_OPTIONS,
  examples: ["tollgate hot-restart", "tollgate hot-restart --state-dir /var/lib/tollgate"],
  async run(given) {
    const stateDir = await findStateDir(given);
    const before = await readStatus(stateDir);
    process.kill(before.pid, "SIGUSR2");
    const now = await waitForNewProcess(stateDir, before);
    if (given.json)
      printJson({
        pid: now.pid,
        version: now.version,
        before: { pid: before.pid, version: before.version },
      });
    else
      print(
        `Version ${now.version} serves at ${now.url}, pid ${now.pid}. ${now.oldProcess ? `Version ${before.version}, pid ${before.pid}, exits after ${plural(now.oldProcess.inFlight, "open request")}.` : `Version ${before.version}, pid ${before.pid}, has exited.`}`,
      );
    return EXIT_CODES.ok;
  },
};

const readStatus = async (stateDir: string): Promise<GatewayStatus> =>
  (await callControl(stateDir, "status")) as unknown as GatewayStatus;

/**
 * Waits until the new process responds. Between the two processes, no process responds for a short
 * time.
 */
async function waitForNewProcess(stateDir: string, before: GatewayStatus): Promise<GatewayStatus> {
  for (;;) {
    await sleep(POLL_MS);
    const now = await readStatus(stateDir).catch((error: unknown) => {
      if (getFault(error)?.kind !== "unavailable" || !isProcessAlive(before.pid)) throw error;
      return undefined;
    });
    if (!now) continue;
    // The new process has a URL once its ports are open.
    if (now.pid !== before.pid && now.url !== "") return now;
    if (now.lastHotRestart && now.lastHotRestart.at > (before.lastHotRestart?.at ?? 0))
      fail("unavailable", now.lastHotRestart.reason, { code: "hot_restart_failed" });
  }
}

function isProcessAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
