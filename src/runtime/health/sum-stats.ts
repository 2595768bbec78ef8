// Sums the live stats of several processes.
import { worseCooldown } from "./merge-cooldowns.ts";
import type {
  PoolStats,
  ProcessStats,
  GatewayStats,
  CooldownState,
  UnreachablePluginStats,
} from "../../plugin/gateway-stats.ts";

/** Live stats of one process, as it reports them. */
export type LocalStats = Omit<
  GatewayStats,
  keyof PrimaryStats | "at" | "processes" | "perProcess" | "ledger" | "certificates"
> & {
  readonly process: ProcessStats;
  /** Commands of this process that wait for their batch. */
  readonly queuedCommands: number;
};
/** Stats that only the primary has. */
export type PrimaryStats = Pick<GatewayStats, "version" | "state" | "generation" | "modelLists">;
/** Counters. They outlive the process that counted them. */
export type StatsCounters = Pick<LocalStats, "rejections" | "droppedRecords">;

const MAX_COOLDOWNS = 1_000;

export const NO_COUNTERS: StatsCounters = { rejections: {}, droppedRecords: {} };

/**
 * Sums the stats.
 * @param all Stats per process, the primary first.
 * @param ended Counters of processes that have ended.
 */
export function sumStats(
  all: readonly LocalStats[],
  ended: StatsCounters,
): Omit<LocalStats, "process"> & Pick<GatewayStats, "perProcess"> {
  const total = (of: (one: LocalStats) => number) => all.reduce((sum, one) => sum + of(one), 0);
  const worst = (of: (one: LocalStats) => number) => Math.max(0, ...all.map(of));
  return {
    perProcess: all.map((one) => one.process),
    inFlight: total(({ inFlight }) => inFlight),
    inFlightByFrontend: all
      .map(({ inFlightByFrontend }) => inFlightByFrontend)
      .reduce(sumCounts, {}),
    cooldowns: mergeCooldowns(all),
    unreachable: unreachableOf(all),
    pools: sumPools(all),
    queuedCommands: total(({ queuedCommands }) => queuedCommands),
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
    ...[ended, ...all].reduce(sumCounters, NO_COUNTERS),
  };
}

export const sumCounters = (a: StatsCounters, b: StatsCounters): StatsCounters => ({
  rejections: sumCounts(a.rejections, b.rejections),
  droppedRecords: sumCounts(a.droppedRecords, b.droppedRecords),
});

type Counts = Readonly<Record<string, number>>;

function sumCounts(a: Counts, b: Counts): Counts {
  const sum: Record<string, number> = { ...a };
  for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/**
 * Merges cooldowns. If a target is in cooldown in several processes, the one that ends last is
 * reported.
 */
function mergeCooldowns(all: readonly LocalStats[]): readonly CooldownState[] {
  const longest = new Map<string, CooldownState>();
  for (const rest of all.flatMap(({ cooldowns }) => cooldowns)) {
    const key = JSON.stringify([rest.provider, rest.credential, rest.model]);
    longest.set(key, worseCooldown(longest.get(key), rest));
  }
  return sortByEnd([...longest.values()]);
}

export const sortByEnd = (resting: readonly CooldownState[]): readonly CooldownState[] =>
  resting.toSorted((a, b) => b.until - a.until).slice(0, MAX_COOLDOWNS);

/**
 * Returns the unreachable plugins. With workers, requests pass through the workers only, so the
 * primary is skipped.
 */
function unreachableOf(all: readonly LocalStats[]): readonly UnreachablePluginStats[] {
  const found = new Map<string, UnreachablePluginStats>();
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

function sumPools(all: readonly LocalStats[]): readonly PoolStats[] {
  const pools = new Map<string, PoolStats>();
  for (const pool of all.flatMap((one) => one.pools)) {
    const { origin } = pool;
    const { connected, free, running, queued } = pools.get(origin) ?? NO_POOL;
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

const NO_POOL = { connected: 0, free: 0, running: 0, queued: 0 };
