// Collects the live stats of all processes in the primary. Concurrent readers share one query.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { FleetStats, GatewayStats } from "../../plugin/gateway-stats.ts";
import type { StoreSize } from "../../plugin/store/ledger-maintenance.ts";
import {
  type StatsCounters,
  sumCounters,
  type LocalStats,
  type PrimaryStats,
  sumStats,
} from "./process-stats.ts";

/** Another process. `readStats` returns undefined if the process does not respond in time. */
export interface StatsSource {
  readStats(): Promise<LocalStats | undefined>;
}

/** Stats that exist once for all processes, and stats of the store. */
export interface PrimaryStatsSource {
  read(): PrimaryStats;
  readCommits(): GatewayStats["ledger"]["commits"];
  /** Returns undefined while the ledger accepts rows. */
  ledgerFailure(): string | undefined;
  /** Returns undefined if the store does not report its size, or not in time. */
  readStoreSize(): Promise<StoreSize | undefined>;
  readCertificates(): Promise<GatewayStats["certificates"]>;
  /** Returns undefined if no frontend runs jobs, or if the store does not answer in time. */
  readJobs(): Promise<GatewayStats["jobs"]>;
  /**
   * Returns undefined if only this gateway uses the store, or if the store does not answer in time.
   */
  readFleet(): Promise<FleetStats | undefined>;
}

export class StatsCollector {
  readonly #local: { read(): LocalStats };
  readonly #primary: PrimaryStatsSource;
  readonly #otherSources: () => readonly StatsSource[];
  readonly #last = new Map<StatsSource, LocalStats>();
  #endedCounters: StatsCounters = {};
  #reading: Promise<GatewayStats> | undefined;

  constructor(
    own: { read(): LocalStats },
    primary: PrimaryStatsSource,
    sources: () => readonly StatsSource[] = () => [],
  ) {
    this.#local = own;
    this.#primary = primary;
    this.#otherSources = sources;
  }

  read(): Promise<GatewayStats> {
    return (this.#reading ??= this.#read().finally(() => (this.#reading = undefined)));
  }

  /** Called when a process has ended. Its counters remain part of the sums. */
  sourceEnded(source: StatsSource): void {
    const last = this.#last.get(source);
    if (!last) return;
    this.#last.delete(source);
    this.#endedCounters = sumCounters(this.#endedCounters, last);
  }

  async #read(): Promise<GatewayStats> {
    const sources = this.#otherSources();
    let answered = 1;
    const [size, fleet] = [this.#primary.readStoreSize(), this.#primary.readFleet()];
    const [certificates, jobs] = [this.#primary.readCertificates(), this.#primary.readJobs()];
    await Promise.all(
      sources.map(async (source) => {
        const localStats = await source.readStats();
        // A source that ended in the meantime is counted among the ended sources or has not
        // responded.
        if (!localStats || !this.#otherSources().includes(source)) return;
        answered++;
        this.#last.set(source, localStats);
      }),
    );
    const there = this.#otherSources();
    const others = there.flatMap((source) => this.#last.get(source) ?? []);
    const { queuedCommands, ...sum } = sumStats(
      [this.#local.read(), ...others],
      this.#endedCounters,
    );
    return {
      at: wallClock(),
      ...this.#primary.read(),
      processes: { expected: there.length + 1, responded: answered },
      ledger: ledgerStatsOf(this.#primary, queuedCommands, await size),
      fleet: await fleet,
      certificates: await certificates,
      jobs: await jobs,
      ...sum,
    };
  }
}

function ledgerStatsOf(
  primary: PrimaryStatsSource,
  queue: number,
  size: StoreSize | undefined,
): GatewayStats["ledger"] {
  const why = primary.ledgerFailure();
  return { ok: why === undefined, reason: why, queue, commits: primary.readCommits(), size };
}
