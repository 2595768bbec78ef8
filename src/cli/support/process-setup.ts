// Sets memory options of V8 before any object is created. V8 allocates objects directly in the old
// generation if many objects from the same code survived a collection of the young generation.
// Objects of an open request do survive. An old object keeps everything that it references in
// memory until a full collection, long after its response was sent.
import { setFlagsFromString } from "node:v8";
import { childProcessFlags } from "../../lib/disable-debugger.ts";

export const disablePretenuring = () => setFlagsFromString("--no-allocation-site-pretenuring");

/**
 * Settings of glibc's allocator, in bytes. After a large body, glibc raises its thresholds and then
 * keeps freed memory permanently: tens of megabytes per thread. Fixed thresholds prevent that.
 *
 * glibc reads these variables when a process starts, so the process re-executes itself. Values that
 * the operator has set are kept. Workers inherit the variables. Lower thresholds keep less memory,
 * but a body of 2 MB then takes 10% more time, because freed pages are allocated again.
 */
const MALLOC_SETTINGS = { MALLOC_MMAP_THRESHOLD_: "8388608", MALLOC_TRIM_THRESHOLD_: "67108864" };

export function restartWithMallocSettings([command = ""]: readonly string[]): void {
  const serves = command === "serve" || command === "" || command.startsWith("-");
  // The process is not re-executed if a service manager passed sockets, because they would be lost.
  const hasSettingOrSockets =
    "MALLOC_MMAP_THRESHOLD_" in process.env || "LISTEN_FDS" in process.env;
  if (!serves || process.platform !== "linux" || hasSettingOrSockets || process.connected) return;
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

// Prevents extensions of `Object.prototype`. A property that a plugin adds to it would appear in
// every body, header list, and schema of the process. After this call, such a change throws in the
// plugin that makes it. Programs that embed a gateway decide whether to call this function.
export const freezeObjectPrototype = (): void => void Object.preventExtensions(Object.prototype);
