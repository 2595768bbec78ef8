// Keeps streams open during another measurement, with a driver of their own.
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { laneOf, loadOf } from "./lanes.ts";
import { ended, run } from "./process.ts";
import type { Target } from "./targets.ts";

/** Far longer than the measurement. */
const PACE_MS = 300_000;
/** They start within one second, and all must be open. */
const COME_MS = 3_000;

export async function held(target: Target, streams: number): Promise<AsyncDisposable> {
  const driver = run([join(import.meta.dirname, "load.ts")], 1);
  const lane = laneOf("sse-1000", { ms: 0, events: 2 });
  const load = loadOf({ ...lane, says: `bench-e2-p${PACE_MS}`, connections: streams }, target);
  driver.send({ ...load, ms: PACE_MS });
  const gone = once(driver, "exit");
  await Promise.race([sleep(COME_MS), gone]);
  if (driver.exitCode !== null) throw new Error("The driver of the open streams ended.");
  return { [Symbol.asyncDispose]: () => ended(driver, "SIGKILL") };
}
