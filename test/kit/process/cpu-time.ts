import { readFileSync } from "node:fs";

/** Processor time of another process so far, in milliseconds. Ticks of /proc are hundredths of a second on every Linux that Node supports. */
export function processCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/**
 * What this process has worked so far, in milliseconds. Laws of speed go by it and not by the clock: on a busy machine a
 * test waits for its turn, and the time of others is not its own.
 */
export function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** What `run` took. The elapsed time is fine enough to see that it took next to nothing; only the processor's may be judged by. */
export function measure(run: () => unknown): { elapsed: number; processor: number } {
  const cpu = process.threadCpuUsage();
  const since = performance.now();
  run();
  const elapsed = performance.now() - since;
  const { user, system } = process.threadCpuUsage(cpu);
  return { elapsed, processor: (user + system) / 1000 };
}
