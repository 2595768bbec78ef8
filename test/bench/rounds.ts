// Interleaved rounds: all targets run at the same time, and each round sends requests to all of
// them, in alternating order. The report has the median of a target's rounds, and the median of its
// ratios to a yardstick of the same round.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lane, loadOf } from "./lanes.ts";
import type { Load, Measured } from "./load.ts";
import { cpu, rss } from "./process.ts";
import type { Target } from "./targets.ts";

/** The driver that sends requests and the mock that responds, on the second core. */
export interface Side {
  readonly driver: ChildProcess;
  readonly mock: { readonly pid: number; readonly port: number };
}

export interface Sample extends Measured {
  /** Microseconds of CPU per request or event, of all threads and children. */
  cpu: number;
  /** The same for its database. 0 if the database is in the process. */
  database: number;
  /** Requests or events per second. */
  speed: number;
  /** CPU share of driver and mock. Near 1, they were the bottleneck. */
  side: number;
  idleBytes: number;
  mostBytes: number;
}

export interface Result {
  readonly lane: Lane;
  readonly target: string;
  readonly samples: Sample[];
}

async function drive(driver: ChildProcess, load: Load): Promise<Measured> {
  const ended = new AbortController();
  const { signal } = ended;
  const gone = once(driver, "exit", { signal }).then(() =>
    Promise.reject(new Error("The load driver ended.")),
  );
  driver.send(load);
  const [measured] = (await Promise.race([once(driver, "message", { signal }), gone])) as [
    Measured,
  ];
  gone.catch(() => {});
  ended.abort();
  return measured;
}

export async function sample(side: Side, lane: Lane, target: Target): Promise<Sample> {
  const load = loadOf(lane, target);
  const { pid } = target;
  const own = () => (pid === undefined ? 0 : cpu(pid));
  const its = () => (target.database === undefined ? 0 : cpu(target.database));
  const others = () => cpu(side.driver.pid!) + (pid === side.mock.pid ? 0 : cpu(side.mock.pid));
  const idleBytes = pid === undefined ? 0 : rss(pid);
  let mostBytes = idleBytes;
  const watch = setInterval(() => {
    if (pid !== undefined) mostBytes = Math.max(mostBytes, rss(pid));
  }, 100);
  const before = [own(), others(), its()] as const;
  const measured = await drive(side.driver, load).finally(() => clearInterval(watch));
  const units = lane.per === "event" ? measured.events : measured.requests;
  return {
    ...measured,
    cpu: (own() - before[0]) / Math.max(1, units),
    database: (its() - before[2]) / Math.max(1, units),
    speed: units / (measured.ms / 1000),
    side: (others() - before[1]) / 1000 / measured.ms,
    idleBytes,
    mostBytes,
  };
}

export async function measure(
  side: Side,
  lane: Lane,
  targets: readonly Target[],
  rounds: number,
): Promise<Result[]> {
  const results = targets.map((target): Result => ({ lane, target: target.name, samples: [] }));
  const order = targets.map((target, i) => [target, results[i]!] as const);
  for (const [target] of order) await sample(side, warm(lane), target);
  for (let round = 0; round < Math.min(rounds, lane.mostRounds ?? rounds); round++)
    for (const [target, { samples }] of round % 2 ? order.toReversed() : order) {
      const got = await sample(side, lane, target);
      if (got.errors > 0)
        process.stderr.write(
          `${target.name}, ${lane.name}: ${got.errors} errors: ${got.firstError}\n`,
        );
      samples.push(got);
      // Pending writes and garbage collections belong to this target, not to the next one.
      await sleep(150);
    }
  return results;
}

/**
 * Whether a target supports a lane: peers only support chat, and some cannot handle a thousand
 * streams.
 */
export const takes = (lane: Lane, { chatOnly, mostStreams }: Target): boolean =>
  !(lane.wire && chatOnly) && !(lane.once && lane.connections > (mostStreams ?? Infinity));

const warm = (lane: Lane): Lane => ({
  ...lane,
  ms: Math.min(lane.ms, 800),
  ...(lane.once && {
    connections: Math.min(100, lane.connections),
    says: lane.says.replace(/-e\d+/, "-e10"),
  }),
});

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

export type Figure = (sample: Sample) => number;

export const middle = (result: Result, of: Figure): number => median(result.samples.map(of));

/** Round by round, so that other load on the machine affects both. */
export const ratio = (result: Result, yardstick: Result, of: Figure): number =>
  median(result.samples.map((s, i) => of(s) / of(yardstick.samples[i]!)));

/** The same for the difference of two targets. */
export const excess = (result: Result, yardstick: Result, of: Figure): number =>
  median(result.samples.map((s, i) => of(s) - of(yardstick.samples[i]!)));
