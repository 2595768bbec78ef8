// How V8 keeps memory, set before any object is made. V8 would make objects old from the start when such objects often outlive a
// collection of the young generation. A request in flight does outlive one. An old object keeps all that it names alive until a
// full collection, long after its request was answered.
import { setFlagsFromString } from "node:v8";
import { childProcessFlags } from "../../lib/disable-debugger.ts";

export const disablePretenuring = () => setFlagsFromString("--no-allocation-site-pretenuring");

/**
 * glibc learns from a large body that large blocks are usual, and from then on keeps what is freed: tens of megabytes for each
 * thread, for good. Said beforehand it does not learn; it reads these words when a process begins, so the process begins once
 * more, in its own place. What an operator has set stays. Workers are given the words with the rest of what they are given.
 * Lower numbers keep less, and cost a body of 2 MB a tenth of its time: pages that are given back are made anew.
 */
const MALLOC_SETTINGS = { MALLOC_MMAP_THRESHOLD_: "8388608", MALLOC_TRIM_THRESHOLD_: "67108864" };

export function restartWithMallocSettings([command = ""]: readonly string[]): void {
  const serves = command === "serve" || command === "" || command.startsWith("-");
  // Sockets that a service manager hands over are not handed on.
  const told = "MALLOC_MMAP_THRESHOLD_" in process.env || "LISTEN_FDS" in process.env;
  if (!serves || process.platform !== "linux" || told || process.connected) return;
  try {
    process.execve?.(
      process.execPath,
      [process.execPath, ...childProcessFlags(), ...process.argv.slice(1)],
      {
        ...process.env,
        ...MALLOC_SETTINGS,
      } as Record<string, string>,
    );
  } catch {
    // Where this is not permitted the gateway serves all the same.
  }
}
