// Sets memory options of V8 and of the allocator, and protects shared prototypes.
import { setFlagsFromString } from "node:v8";
import { childProcessFlags } from "../../lib/disable-debugger.ts";

/**
 * Stops V8 from allocating objects directly in the old generation, which it does if many objects
 * from the same code survived a collection of the young generation. Objects of an open request do
 * survive. An old object keeps everything that it references in memory until a full collection,
 * long after its response was sent.
 *
 * Called when the threads of a start have loaded their code, before requests fill the young
 * generation: V8 decides only when the young generation has its full size. Until a flag changes, V8
 * accepts the compiled code of Node.js's own modules that is part of the executable. After that, it
 * compiles them.
 */
export const disablePretenuring = () => setFlagsFromString("--no-allocation-site-pretenuring");

/**
 * Settings of glibc's allocator, in bytes, by environment variable, with their numbers for
 * `mallopt`. After a large body, glibc raises its thresholds and then keeps freed memory
 * permanently: tens of megabytes per thread. Fixed thresholds prevent that. Values that the operator
 * has set are kept. Lower thresholds keep less memory, but a body of 2 MB then takes 10% more time,
 * because freed pages are allocated again.
 */
const MALLOC_SETTINGS = [
  { variable: "MALLOC_MMAP_THRESHOLD_", option: -3, bytes: 8_388_608 },
  { variable: "MALLOC_TRIM_THRESHOLD_", option: -1, bytes: 67_108_864 },
] as const;

/**
 * Threshold in bytes while the program is loaded. Files and compiled code of megabytes are then
 * returned to the system.
 */
const MMAP_THRESHOLD_WHILE_LOADING = 131_072;

/** Returns whether these arguments run `serve`, which may be omitted. */
const isServeCommand = ([command = "serve"]: readonly string[]): boolean =>
  command === "serve" || (command.startsWith("-") && !INFORMATION.has(command));

const INFORMATION: ReadonlySet<string> = new Set(["--version", "-v", "--help", "-h"]);

/** The allocator's own function, if this version of Node.js can call it. Returns 1 for success. */
let mallopt: ((option: number, value: number) => number) | undefined;

/**
 * Prepares the allocator if the command is `serve`. Child processes inherit the variables.
 * `completeMallocSettings` must be called when the gateway has started.
 */
export function applyMallocSettings(argv: readonly string[]): void {
  if (!isServeCommand(argv) || process.platform !== "linux" || hasOperatorSettings()) return;
  const environment = Object.fromEntries(
    MALLOC_SETTINGS.map(({ variable, bytes }) => [variable, `${bytes}`]),
  );
  mallopt = findMallopt();
  if (mallopt?.(MALLOC_SETTINGS[0].option, MMAP_THRESHOLD_WHILE_LOADING) === 1)
    Object.assign(process.env, environment);
  else restartWith(environment);
}

/** Whether the operator, or the parent process, has set one. glibc then changes none of them. */
const hasOperatorSettings = (): boolean =>
  MALLOC_SETTINGS.some(({ variable }) => variable in process.env) ||
  /\bglibc\.malloc\.(?:mmap|trim)_threshold=/.test(process.env["GLIBC_TUNABLES"] ?? "");

/** Sets the thresholds for serving requests. */
export function completeMallocSettings(): void {
  for (const { option, bytes } of MALLOC_SETTINGS) mallopt?.(option, bytes);
}

/** The part of `node:ffi` that is used here. Node.js has the module since version 26. */
interface ForeignFunctions {
  dlopen(
    library: null,
    functions: Readonly<Record<string, { arguments: readonly string[]; return: string }>>,
  ): { readonly functions: { readonly mallopt: typeof mallopt } };
}

function findMallopt(): typeof mallopt {
  const { emitWarning } = process;
  try {
    // The module emits a warning that it is experimental. If it changes, the process is re-executed
    // instead.
    process.emitWarning = () => {};
    const ffi = process.getBuiltinModule("node:ffi") as ForeignFunctions | undefined;
    const signature = { arguments: ["i32", "i32"], return: "i32" };
    return ffi?.dlopen(null, { mallopt: signature }).functions.mallopt;
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Executes this program again. glibc reads the variables when a process starts. */
function restartWith(environment: Readonly<Record<string, string>>): void {
  // The process is not re-executed if a service manager passed sockets, because they would be lost.
  if ("LISTEN_FDS" in process.env || process.connected) return;
  try {
    process.execve?.(
      process.execPath,
      [process.execPath, ...childProcessFlags(), ...process.argv.slice(1)],
      { ...process.env, ...environment } as Record<string, string>,
    );
  } catch {
    // If `execve` is not permitted, the gateway runs without these settings.
  }
}

// Prevents extensions of `Object.prototype`. A property that a plugin adds to it would appear in
// every body, header list, and schema of the process. After this call, such a change throws in the
// plugin that makes it. Programs that embed a gateway decide whether to call this function.
export const freezeObjectPrototype = (): void => void Object.preventExtensions(Object.prototype);
