// Finds processes by their PIDs.
import { execFileSync } from "node:child_process";
import { until } from "../wait.ts";

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export const waitForExit = (pid: number): Promise<void> =>
  until(
    () => !isAlive(pid),
    () => `the end of ${pid}`,
  );

export interface ChildProcessInfo {
  readonly pid: number;
  readonly args: string;
}

/** Returns the descendants of a process, as `ps` lists them. */
export function childrenOf(pid: number): ChildProcessInfo[] {
  const out = execFileSync("ps", ["-ww", "-eo", "pid=,ppid=,args="], { encoding: "utf8" });
  const all = out.split("\n").flatMap((line) => {
    const [, own, parent, args = ""] = /^\s*(\d+)\s+(\d+)\s(.*)$/.exec(line) ?? [];
    return own === undefined ? [] : [{ pid: Number(own), parent: Number(parent), args }];
  });
  const found: ChildProcessInfo[] = [];
  const below = (parent: number) => {
    for (const each of all.filter((one) => one.parent === parent)) {
      found.push({ pid: each.pid, args: each.args });
      below(each.pid);
    }
  };
  below(pid);
  return found;
}
