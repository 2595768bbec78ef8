// The live stats of one process, and their sum over all processes. STATS is the table of all stats:
// a new stat needs one entry in it and its type in the contract.
import { statSync } from "node:fs";
import type {
  PoolStats,
  ProcessStats,
  GatewayStats,
  CooldownState,
  UnreachablePluginStats,
} from "../../plugin/gateway-stats.ts";
import type { GenerationSlot } from "../generation/generation-slot.ts";
import type { Services } from "../services.ts";
import { EventLoopDelay, GcStats } from "./pause-stats.ts";
import { listUnreachablePlugins } from "./unreachable-plugins.ts";
import { COOLDOWN_STATES } from "../../pipeline/targets/target-status.ts";

/** Stats that only the primary has. */
export type PrimaryStats = Pick<GatewayStats, "version" | "state" | "generation" | "modelLists">;
/** Stats that every process has. */
type SharedStats = Omit<
  GatewayStats,
  keyof PrimaryStats | "at" | "processes" | "perProcess" | "ledger" | "certificates" | "fleet"
>;

/** Objects that the stats of this process are read from. */
interface StatSources {
  readonly services: StatsServices;
  readonly slot: Slot;
  readonly process: ProcessStats;
}
type StatsServices = Pick<
  Services,
  "targetHealth" | "pools" | "ledgerQueue" | "rejections" | "observerSink"
>;
type Slot = Pick<GenerationSlot, "inFlight" | "inFlightByFrontend" | "sockets" | "current">;

interface Stat<T> {
  /** Reads the value of this process. */
  read(of: StatSources): T;
  /** Combines the values of all processes, the primary's first. */
  combine(values: readonly T[]): T;
  /**
   * Whether the value never decreases. The last value of a process that exited remains part of the
   * sum.
   */
  readonly isCounter?: true;
}

type Counts = Readonly<Record<string, number>>;

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function sumCounts(all: readonly Counts[]): Counts {
  const counts: Record<string, number> = {};
  for (const [name, count] of all.flatMap((each) => Object.entries(each)))
    counts[name] = (counts[name] ?? 0) + count;
  return counts;
}

const sumMembers =
  <T extends Counts>(zero: T) =>
  (values: readonly T[]): T =>
    sumCounts([zero, ...values]) as T;

const STATS = {
  inFlight: { read: ({ slot }) => slot.inFlight, combine: sum },
  inFlightByFrontend: { read: ({ slot }) => slot.inFlightByFrontend(), combine: sumCounts },
  webSocketsByFrontend: { read: ({ slot }) => slot.sockets.countByFrontend(), combine: sumCounts },
  cooldowns: {
    read: ({ services }) => sortByEnd(services.targetHealth.cooldowns()),
    combine: mergeCooldowns,
  },
  unreachable: {
    read: ({ slot }) =>
      listUnreachablePlugins(slot.current.built).map(({ plugin, since, requests }) => ({
        plugin,
        since,
        requests,
        processes: 1,
      })),
    combine: mergeUnreachable,
  },
  pools: { read: ({ services }) => services.pools.stats(), combine: sumPools },
  /** Commands that wait for their batch: `GatewayStats.ledger.queue`. */
  queuedCommands: { read: ({ services }) => services.ledgerQueue.pendingCount, combine: sum },
  loopDelayMs: {
    read: ({ process }) => process.loopDelayMs,
    combine: (all) => ({
      mean: Math.max(0, ...all.map(({ mean }) => mean)),
      p99: Math.max(0, ...all.map(({ p99 }) => p99)),
      max: Math.max(0, ...all.map(({ max }) => max)),
    }),
  },
  memory: {
    read: ({ process: { memory } }) => ({
      rss: memory.rss,
      heapUsed: memory.heapUsed,
      external: memory.external,
    }),
    combine: sumMembers({ rss: 0, heapUsed: 0, external: 0 }),
  },
  rejections: {
    read: ({ services }) => services.rejections.counts(),
    combine: sumCounts,
    isCounter: true,
  },
  droppedRecords: {
    read: ({ services }) => services.observerSink.droppedCounts(),
    combine: sumCounts,
    isCounter: true,
  },
} as const satisfies { readonly [K in keyof SharedStats]: Stat<SharedStats[K]> } & {
  readonly queuedCommands: Stat<number>;
};

/** Stats of one process without its process data, or the sum over several processes. */
export type StatValues = SharedStats & { readonly queuedCommands: number };
/** Live stats of one process, as it reports them. */
export type LocalStats = StatValues & { readonly process: ProcessStats };

const ENTRIES = Object.entries(STATS) as readonly [keyof StatValues, Stat<unknown>][];

const combineStats = (entries: typeof ENTRIES, all: readonly Partial<StatValues>[]) =>
  Object.fromEntries(
    entries.map(([name, { combine }]) => [
      name,
      combine(all.flatMap((one) => (name in one ? [one[name]] : []))),
    ]),
  ) as unknown as StatValues;

/** Counters. The counters are kept after the process that counted them ends. */
export type StatsCounters = Partial<StatValues>;

/** Adds the counters of a process that ended to the counters of earlier processes. */
export const sumCounters = (...all: readonly StatsCounters[]): StatsCounters =>
  combineStats(
    ENTRIES.filter(([, { isCounter }]) => isCounter),
    all,
  );

/**
 * Combines the stats of several processes.
 * @param all Stats per process, the primary first.
 * @param ended Counters of processes that have ended.
 */
export const sumStats = (
  all: readonly LocalStats[],
  ended: StatsCounters = {},
): StatValues & Pick<GatewayStats, "perProcess"> => ({
  perProcess: all.map((one) => one.process),
  ...combineStats(ENTRIES, all),
  ...sumCounters(ended, ...all),
});

export class LocalStatsReader {
  readonly #loopDelay = new EventLoopDelay();
  readonly #gcStats = new GcStats();
  readonly #services: StatsServices;
  readonly #slot: Slot;

  constructor(services: StatsServices, slot: Slot) {
    this.#services = services;
    this.#slot = slot;
  }

  read(): LocalStats {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const sources = {
      services: this.#services,
      slot: this.#slot,
      process: {
        pid: process.pid,
        startedAt: Math.round(performance.timeOrigin),
        cpu: { user: user / 1e6, system: system / 1e6 },
        memory: { rss, heapUsed, heapTotal, external },
        loopDelayMs: this.#loopDelay.read(),
        gc: this.#gcStats.read(),
        openFiles: countOpenFiles(),
      },
    };
    const values = Object.fromEntries(ENTRIES.map(([name, { read }]) => [name, read(sources)]));
    return { process: sources.process, ...(values as unknown as StatValues) };
  }
}

/**
 * Returns the number of open files and sockets. Linux reports the number as the size of the
 * directory. Listing thousands of entries would cost more than the measurement is worth.
 */
function countOpenFiles(): number | undefined {
  const size = statSync("/proc/self/fd", { throwIfNoEntry: false })?.size ?? 0;
  return size > 0 ? size : undefined;
}

const MAX_COOLDOWNS = 1_000;

/**
 * Merges cooldowns. If a target is in cooldown in several processes, the cooldown that ends last is
 * reported.
 */
function mergeCooldowns(all: readonly (readonly CooldownState[])[]): readonly CooldownState[] {
  const longest = new Map<string, CooldownState>();
  for (const rest of all.flat()) {
    const key = JSON.stringify([rest.provider, rest.credential, rest.model]);
    longest.set(key, worseCooldown(longest.get(key), rest));
  }
  return sortByEnd([...longest.values()]);
}

const sortByEnd = (cooldowns: readonly CooldownState[]): readonly CooldownState[] =>
  cooldowns.toSorted((a, b) => b.until - a.until).slice(0, MAX_COOLDOWNS);

/**
 * Returns the unreachable plugins. With workers, only the workers handle requests, so the primary
 * is skipped.
 */
function mergeUnreachable(
  all: readonly (readonly UnreachablePluginStats[])[],
): readonly UnreachablePluginStats[] {
  const found = new Map<string, UnreachablePluginStats>();
  for (const one of (all.length > 1 ? all.slice(1) : all).flat()) {
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

function sumPools(all: readonly (readonly PoolStats[])[]): readonly PoolStats[] {
  const pools = new Map<string, PoolStats>();
  for (const pool of all.flat()) {
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

// Merges the cooldown states that several processes report for one target.

type ReportedCooldown = Pick<CooldownState, "state" | "until" | "keys">;

/**
 * Ranks a state that changes the order above one that does not, then all keys above some keys.
 * `worseCooldown` resolves ties in favor of the longer cooldown.
 */
const rankOf = ({ state, keys }: ReportedCooldown): number =>
  (COOLDOWN_STATES.has(state) ? 2 : 0) + (keys ? 0 : 1);

export function worseCooldown<T extends ReportedCooldown>(a: T | undefined, b: T): T {
  if (!a) return b;
  const [first, second] = (rankOf(a) - rankOf(b) || a.until - b.until) >= 0 ? [a, b] : [b, a];
  if (!first.keys || !second.keys) return first;
  return { ...first, keys: [...new Set([...first.keys, ...second.keys])] };
}
