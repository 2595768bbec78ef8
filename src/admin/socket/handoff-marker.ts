// While another process takes over there is no control socket for a moment. A note in the state folder says so, and what asks meanwhile waits:
// "none runs" would not be true, and a command that may do without a gateway would begin to.
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const markerPathOf = (stateDir: string) => join(stateDir, "control.handoff");

/** By the process that lets go, before it does. */
export const writeHandoffMarker = (stateDir: string): Promise<void> =>
  writeFile(markerPathOf(stateDir), `${process.pid}\n`, { mode: 0o600 });

/** By the one that answers, once it does. A note that stays is no reason not to serve. */
export const removeHandoffMarker = (stateDir: string): Promise<void> =>
  rm(markerPathOf(stateDir), { force: true }).catch(() => {});

/** A note of a process that was killed says nothing. */
export async function isHandoffInProgress(stateDir: string): Promise<boolean> {
  const pid = Number(await readFile(markerPathOf(stateDir), "utf8").catch(() => ""));
  if (!(pid > 0)) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
