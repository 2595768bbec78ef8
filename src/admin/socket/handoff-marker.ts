// Marks a hot restart in progress with a file in the state directory. During a hot restart there is
// briefly no control socket, and clients wait. Otherwise they would report that no gateway runs,
// and offline commands would start to work on the files.
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const markerPathOf = (stateDir: string) => join(stateDir, "control.handoff");

/** Called by the old process before it closes its socket. */
export const writeHandoffMarker = (stateDir: string): Promise<void> =>
  writeFile(markerPathOf(stateDir), `${process.pid}\n`, { mode: 0o600 });

/**
 * Called by the new process when it answers. A file that cannot be removed does not prevent it from
 * serving.
 */
export const removeHandoffMarker = (stateDir: string): Promise<void> =>
  rm(markerPathOf(stateDir), { force: true }).catch(() => {});

/** Whether a hot restart is in progress. The marker of a process that was killed is ignored. */
export async function isHandoffInProgress(stateDir: string): Promise<boolean> {
  const pid = Number(await readFile(markerPathOf(stateDir), "utf8").catch(() => ""));
  if (!(pid > 0)) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
