// Sets memory options of V8 before any object is created. V8 allocates objects directly in the old
// generation if many from the same place survived a collection of the young generation. Objects of
// a request in flight do survive. An old object keeps everything that it references alive until a
// full collection, long after its response was sent.
import { setFlagsFromString } from "node:v8";
import { childProcessFlags } from "../../lib/disable-debugger.ts";

export const disablePretenuring = () => setFlagsFromString("--no-allocation-site-pretenuring");

/**
 * Settings of glibc's allocator, in bytes. After a large body glibc raises its thresholds and then
 * keeps freed memory: tens of megabytes per thread, permanently. Fixed thresholds prevent that.
 *
 * glibc reads these variables when a process starts, so the process re-executes itself in place.
 * Values that the operator set are kept. Workers inherit the variables. Lower thresholds keep less
 * memory, but cost a body of 2 MB 10% more time, because freed pages are allocated again.
 */
const MALLOC_SETTINGS = { MALLOC_MMAP_THRESHOLD_: "8388608", MALLOC_TRIM_THRESHOLD_: "67108864" };

export function restartWithMallocSettings([command = ""]: readonly string[]): void {
  const serves = command === "serve" || command === "" || command.startsWith("-");
  // Sockets that a service manager passed would be lost, so such a process is not restarted.
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
    // If `execve` is not permitted, the gateway runs without these settings.
  }
}

// Prevents extensions of `Object.prototype`. A property that a plugin adds there would appear in
// every body, header list, and schema of the process. After this call such a change throws in the
// plugin that makes it. Programs that embed a gateway decide themselves whether to call this.
export const freezeObjectPrototype = (): void => void Object.preventExtensions(Object.prototype);
