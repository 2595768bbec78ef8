// Processes by their numbers.
import { until } from "./waits.ts";

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export const gone = (pid: number): Promise<void> =>
  until(
    () => !isAlive(pid),
    () => `the end of ${pid}`,
  );
