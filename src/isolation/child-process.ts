// A process with no environment and no rights but to read its own code: Node's permissions stand between it and the machine. They are
// a belt, as Node says itself, and no wall: an operator who needs one runs the plugin elsewhere and names its socket. Where Linux allows it,
// the process is in a namespace of process ids of its own; `cli/plugin-process.ts` takes away what sends signals everywhere.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { findPackageRoot, findProgram } from "../config/source/default-config.ts";
import { NO_DEBUGGER } from "../lib/disable-debugger.ts";
import { childrenFileOf, pidNamespacePrefix } from "./pid-namespace.ts";

/** Of the child: a plugin that leaks ends itself, not the machine. */
const HEAP_MIB = 256;
const RSS_BYTES = 512 * 1024 * 1024;
const RSS_POLL_MS = 500;

export interface ChildOptions {
  /** Files and folders that it may read. */
  readonly readPaths: readonly string[];
  /** The folder that it may write. */
  readonly writableDir?: string;
  readonly env: Readonly<Record<string, string>>;
  /** A line that it wrote. */
  readonly onOutput: (line: string) => void;
}

export interface Child {
  readonly stream: Duplex;
  readonly pid: number;
  /** At once, whatever it does. */
  kill(): void;
  /** How it ended. */
  readonly exited: Promise<string>;
}

const IS_SOURCE = import.meta.filename.endsWith(".ts");

/** From Node 25 on a process may be denied the network. */
export const CAN_DENY_NETWORK = Number(process.versions.node.split(".")[0]) >= 25;

/** The gateway's own code, and what stands beside it in node_modules. */
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
    // Signals of a terminal are for the gateway: it ends its children itself.
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
  // What it ends with keeps no gateway alive.
  child.unref();
  (stream as Duplex & { unref?(): void }).unref?.();
  return { stream, pid: child.pid ?? 0, kill, exited };
}

/**
 * Whatever ends this process, SIGKILL too, closes the pipe; then the child is killed, also one that loops and hears of nothing. Where
 * there is no shell, the child itself ends when its connection does.
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

/** Of a process, in bytes, where the system says so in a file; 0 elsewhere. */
function rssOf(pid: number | undefined): number {
  if (pid === undefined) return 0;
  // In a namespace the process itself is unshare's child.
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

/** At most so many a second, each cut. */
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
