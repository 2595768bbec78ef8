// Starts a process for an isolated plugin. The process has only the declared environment variables,
// and can read only its own code and the listed paths (Node's permission model). According to
// Node's documentation, that model is a safeguard and not a security boundary. An operator who
// needs a boundary runs the plugin in a separate environment and configures its socket. If Linux
// allows it, the process has its own PID namespace. Node's permissions do not restrict signals, so
// `cli/plugin-process.ts` replaces all functions that send them.
import { spawn, type ChildProcess, execFile } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { IS_SOURCE } from "../lib/source-file.ts";
import { findPackageRoot, findProgram } from "../lib/package-root.ts";
import { NO_DEBUGGER } from "../lib/disable-debugger.ts";

/** Memory limits of the child. A plugin that leaks memory crashes only its own process. */
const HEAP_MIB = 256;
const RSS_BYTES = 512 * 1024 * 1024;
const RSS_POLL_MS = 500;

export interface ChildOptions {
  /** Files and directories that the child may read. */
  readonly readPaths: readonly string[];
  /** Directory that the child may write to. */
  readonly writableDir?: string;
  readonly env: Readonly<Record<string, string>>;
  /** Called for each line that the child writes. */
  readonly onOutput: (line: string) => void;
}

export interface Child {
  readonly stream: Duplex;
  readonly pid: number;
  /** Kills the process immediately, whatever it is doing. */
  kill(): void;
  /** Resolves with how the process ended. */
  readonly exited: Promise<string>;
}

/** Whether a process can be denied network access, from Node 25 on. */
export const CAN_DENY_NETWORK = Number(process.versions.node.split(".")[0]) >= 25;

/** Returns the paths of the gateway's own code and the packages next to it in `node_modules`. */
function gatewayCodePaths(): string[] {
  const root = realpathSync(findPackageRoot());
  const own = ["package.json", "src", "dist", "plugins", "schemas", "node_modules"].map((each) =>
    join(root, each),
  );
  const beside = dirname(root).endsWith(`${sep}node_modules`) ? [dirname(root)] : [];
  return [...own, ...beside].filter((each) => existsSync(each));
}

export async function startChild(options: ChildOptions): Promise<Child> {
  const reads = [
    ...gatewayCodePaths(),
    ...options.readPaths,
    ...(options.writableDir === undefined ? [] : [options.writableDir]),
  ];
  const args = [
    NO_DEBUGGER,
    "--permission",
    ...reads.map((path) => `--allow-fs-read=${path}`),
    ...(options.writableDir === undefined ? [] : [`--allow-fs-write=${options.writableDir}`]),
    `--max-old-space-size=${HEAP_MIB}`,
    "--disable-warning=SecurityWarning",
    ...(IS_SOURCE ? ["--conditions=tollgate-source"] : []),
    findProgram("plugin-process"),
  ];
  const [command, ...words] = [...(await pidNamespacePrefix()), process.execPath, ...args];
  const child = spawn(command!, words, {
    env: { ...options.env },
    cwd: options.writableDir ?? "/",
    // Signals from a terminal must be sent only to the gateway, which ends its child processes
    // itself.
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  for (const out of [child.stdout, child.stderr]) forwardLines(out!, options.onOutput);
  const exited = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.once("error", (error) => resolve(error.message));
  });
  const stream = child.stdio[3] as Duplex;
  const kill = () => void child.kill("SIGKILL");
  const keeper = child.pid === undefined ? undefined : startReaper(child.pid);
  const watching = setInterval(() => {
    if (rssOf(child.pid) > RSS_BYTES) kill();
  }, RSS_POLL_MS);
  watching.unref();
  void exited.then(() => {
    clearInterval(watching);
    keeper?.kill("SIGKILL");
    stream.destroy();
  });
  // The child must not keep the gateway alive.
  child.unref();
  (stream as Duplex & { unref?(): void }).unref?.();
  return { stream, pid: child.pid ?? 0, kill, exited };
}

/**
 * Starts a helper that kills the child when this process ends for any reason, including SIGKILL.
 * The helper detects this because its pipe closes. This signal works even for a child that is in an
 * endless loop. If there is no shell, the child still exits when its connection closes.
 */
function startReaper(pid: number): ChildProcess {
  const keeper = spawn("/bin/sh", ["-c", 'read -r _; kill -9 "$1"', "sh", String(pid)], {
    env: {},
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  keeper.on("error", () => {});
  keeper.stdin!.on("error", () => {});
  (keeper.stdin as unknown as { unref?(): void }).unref?.();
  keeper.unref();
  return keeper;
}

/** Returns the resident memory of a process in bytes, from /proc. Returns 0 on other systems. */
function rssOf(pid: number | undefined): number {
  if (pid === undefined) return 0;
  // In a namespace, the process itself is the child of `unshare`.
  const [child = pid] = readText(childrenFileOf(pid)).split(" ").filter(Boolean).map(Number);
  const [, resident = 0] = readText(`/proc/${child}/statm`).split(" ");
  return Number(resident) * 4096;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}

const MAX_LINES_PER_SECOND = 50;
const MAX_LINE_CHARS = 1_000;

/** Forwards a limited number of lines per second, each truncated. */
function forwardLines(from: Readable, onLine: (line: string) => void): void {
  let rest = "";
  let since = 0;
  let count = 0;
  from.on("error", () => {});
  from.on("data", (chunk: Buffer) => {
    const all = (rest + chunk.toString("utf8")).split("\n");
    rest = all.pop()!.slice(-MAX_LINE_CHARS);
    const now = performance.now();
    if (now - since > 1_000) {
      since = now;
      count = 0;
    }
    for (const line of all)
      if (line !== "" && ++count <= MAX_LINES_PER_SECOND) onLine(line.slice(0, MAX_LINE_CHARS));
  });
  (from as Readable & { unref?(): void }).unref?.();
}

// Runs child processes in a separate PID namespace, in which a child cannot address or signal any
// process of the gateway. Linux supports these namespaces, but a container or a hardened unit may
// forbid them. Support is tested once, with the same command that children use.

const UNSHARE_PATHS = ["/usr/bin/unshare", "/bin/unshare"];
/**
 * A child that outlives `unshare` is killed with it, and /proc shows only the namespace's own
 * processes.
 */
const UNSHARE_OPTIONS = ["--pid", "--fork", "--kill-child", "--mount-proc"];
const USER_NAMESPACE_OPTIONS = ["--user", "--map-current-user"];
const TIMEOUT_MS = 5_000;

let probed: Promise<readonly string[]> | undefined;

/** Returns the words to insert before a command line. Empty if namespaces are not supported. */
export const pidNamespacePrefix = (): Promise<readonly string[]> => (probed ??= probeUnshare());

async function probeUnshare(): Promise<readonly string[]> {
  const program = UNSHARE_PATHS.find((each) => existsSync(each));
  // This file is needed to find the child of `unshare` and its memory use.
  if (program === undefined || !existsSync(childrenFileOf(process.pid))) return [];
  for (const more of [USER_NAMESPACE_OPTIONS, []]) {
    const args = [...more, ...UNSHARE_OPTIONS];
    const works = await new Promise<boolean>((done) => {
      const test = ["/bin/sh", "-c", '[ "$$" = 1 ]'];
      execFile(program, [...args, ...test], { env: {}, timeout: TIMEOUT_MS }, (error) =>
        done(error === null),
      );
    });
    if (works) return [program, ...args];
  }
  return [];
}

/** Returns the file in which Linux lists the children of a process. */
const childrenFileOf = (pid: number): string => `/proc/${pid}/task/${pid}/children`;
