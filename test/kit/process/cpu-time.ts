import { readFileSync } from "node:fs";

/**
 * CPU time of another process so far, in milliseconds. Ticks of /proc are hundredths of a second on
 * every Linux that Node supports.
 */
export function processCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/**
 * CPU time of this thread so far, in milliseconds. Tests of speed use it and not the clock,
 * because a test on a busy machine waits while other processes run. Threads of V8, which collect
 * garbage of earlier tests, are left out.
 */
export function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * Duration of `run`. Elapsed time suffices to see that it is short; only CPU time is precise enough
 * for a limit.
 */
export function measure(run: () => unknown): { elapsed: number; processor: number } {
  const cpu = process.threadCpuUsage();
  const since = performance.now();
  run();
  const elapsed = performance.now() - since;
  const { user, system } = process.threadCpuUsage(cpu);
  return { elapsed, processor: (user + system) / 1000 };
}
