// Processes on separate cores, and their use of CPU (all threads) and memory.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");
export const NODE = join(ROOT, "node_modules/.bin/node");

const taskset =
  availableParallelism() > 1 && spawnSync("taskset", ["-c", "0", "true"]).status === 0;
/** The server has the first core. The driver and the mock have the second. */
export type Core = 0 | 1 | undefined;
export const pinned = taskset ? "server on core 0, load and mock on core 1" : "not pinned";

export function run(
  args: readonly string[],
  core: Core,
  of: { cwd?: string; env?: NodeJS.ProcessEnv; node?: string; ipc?: boolean } = {},
): ChildProcess {
  const line = [of.node ?? NODE, ...args];
  if (taskset && core !== undefined) line.unshift("taskset", "-c", String(core));
  return spawn(line[0]!, line.slice(1), {
    cwd: of.cwd ?? ROOT,
    env: of.env ?? process.env,
    stdio: of.ipc === false ? ["ignore", "pipe", "pipe"] : ["ignore", "inherit", "inherit", "ipc"],
  });
}

/** A program of the benchmark that prints its address. */
export async function serving(file: string, args: readonly string[], core: Core) {
  const child = run([join(import.meta.dirname, file), ...args], core);
  const [{ port }] = (await once(child, "message")) as [{ port: number }];
  return { child, pid: child.pid!, port };
}

export async function ended(
  child: ChildProcess,
  signal: NodeJS.Signals = "SIGTERM",
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

/** A process and its children, for servers with workers. */
export function family(pid: number): number[] {
  const found = [pid];
  for (const id of found)
    try {
      for (const task of readdirSync(`/proc/${id}/task`))
        for (const child of readFileSync(`/proc/${id}/task/${task}/children`, "utf8").split(" "))
          if (child !== "") found.push(Number(child));
    } catch {
      // The process ended during the read.
    }
  return found;
}

/** CPU time of all threads so far, in microseconds. */
export function cpu(pid: number): number {
  let ns = 0;
  for (const id of family(pid))
    for (const task of readdirSync(`/proc/${id}/task`))
      try {
        ns += Number(readFileSync(`/proc/${id}/task/${task}/schedstat`, "utf8").split(" ")[0]);
      } catch {
        // A thread that ended in between.
      }
  return ns / 1000;
}

/** Resident bytes. */
export function rss(pid: number): number {
  let pages = 0;
  for (const id of family(pid))
    pages += Number(readFileSync(`/proc/${id}/statm`, "utf8").split(" ")[1]);
  return pages * 4096;
}
