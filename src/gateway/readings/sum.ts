// What several processes say of themselves, as one reading.
import { worse } from "./cooldowns.ts";
import type {
  PoolReading,
  ProcessReading,
  Readings,
  RestingReading,
  UnreachableReading,
} from "../../plugin/readings.ts";

/** One process, as it says it. */
export type OwnReadings = Omit<
  Readings,
  keyof PrimaryReadings | "at" | "processes" | "each" | "ledger" | "certificates"
> & {
  readonly process: ProcessReading;
  /** Commands of this process that wait for their batch. */
  readonly queue: number;
};
/** What only the primary knows. */
export type PrimaryReadings = Pick<Readings, "version" | "state" | "generation" | "lists">;
/** What only counts up: it outlives the process that counted it. */
export type Counters = Pick<OwnReadings, "refusals" | "dropped">;

const MOST_RESTING = 1_000;

export const NO_COUNTERS: Counters = { refusals: {}, dropped: {} };

/** `all`: the primary first. `ended`: what processes that are gone have counted. */
export function summed(
  all: readonly OwnReadings[],
  ended: Counters,
): Omit<OwnReadings, "process"> & Pick<Readings, "each"> {
  const total = (of: (one: OwnReadings) => number) => all.reduce((sum, one) => sum + of(one), 0);
  const worst = (of: (one: OwnReadings) => number) => Math.max(0, ...all.map(of));
  return {
    each: all.map((one) => one.process),
    inFlight: total(({ inFlight }) => inFlight),
    inFlightOf: all.map(({ inFlightOf }) => inFlightOf).reduce(added, {}),
    resting: restingOf(all),
    unreachable: unreachableOf(all),
    pools: poolsOf(all),
    queue: total(({ queue }) => queue),
    loopDelayMs: {
      mean: worst(({ loopDelayMs }) => loopDelayMs.mean),
      p99: worst(({ loopDelayMs }) => loopDelayMs.p99),
      max: worst(({ loopDelayMs }) => loopDelayMs.max),
    },
    memory: {
      rss: total(({ memory }) => memory.rss),
      heapUsed: total(({ memory }) => memory.heapUsed),
      external: total(({ memory }) => memory.external),
    },
    ...[ended, ...all].reduce(counted, NO_COUNTERS),
  };
}

export const counted = (a: Counters, b: Counters): Counters => ({
  refusals: added(a.refusals, b.refusals),
  dropped: added(a.dropped, b.dropped),
});

type Counts = Readonly<Record<string, number>>;

function added(a: Counts, b: Counts): Counts {
  const sum: Record<string, number> = { ...a };
  for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/** The same thing may rest in several processes: until the last of them says so. */
function restingOf(all: readonly OwnReadings[]): readonly RestingReading[] {
  const longest = new Map<string, RestingReading>();
  for (const rest of all.flatMap(({ resting }) => resting)) {
    const key = JSON.stringify([rest.provider, rest.credential, rest.model]);
    longest.set(key, worse(longest.get(key), rest));
  }
  return longestFirst([...longest.values()]);
}

export const longestFirst = (resting: readonly RestingReading[]): readonly RestingReading[] =>
  resting.toSorted((a, b) => b.until - a.until).slice(0, MOST_RESTING);

/** With workers, requests pass through the workers only. */
function unreachableOf(all: readonly OwnReadings[]): readonly UnreachableReading[] {
  const found = new Map<string, UnreachableReading>();
  for (const one of (all.length > 1 ? all.slice(1) : all).flatMap((own) => own.unreachable)) {
    const { plugin } = one;
    const { since, processes } = found.get(plugin) ?? { since: Infinity, processes: 0 };
    found.set(plugin, {
      ...one,
      since: Math.min(since, one.since),
      processes: processes + one.processes,
    });
  }
  return [...found.values()];
}

function poolsOf(all: readonly OwnReadings[]): readonly PoolReading[] {
  const pools = new Map<string, PoolReading>();
  for (const pool of all.flatMap((one) => one.pools)) {
    const { origin } = pool;
    const { connected, free, running, queued } = pools.get(origin) ?? NONE;
    pools.set(origin, {
      origin,
      connected: connected + pool.connected,
      free: free + pool.free,
      running: running + pool.running,
      queued: queued + pool.queued,
    });
  }
  return [...pools.values()];
}

const NONE = { connected: 0, free: 0, running: 0, queued: 0 };
