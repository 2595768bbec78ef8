// Gives the reader access to the rollups. Rollups are optional: if their file has a problem,
// reports take longer.
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerQuery } from "tollgate/plugin";
import { rollupLevelFor, ROLLUP_LEVELS, type RollupLevel, type TotalsQuery } from "tollgate/store";
import type { ReadToken } from "../data/batch-reader.ts";
import { COMPACTED_UP_TO_SQL, readCompactedUpTo } from "../data/checkpoint.ts";
import { type TotalsTarget, addRollupsTo, type RollupGap } from "./rollup-reader.ts";
import { RollupUpdater } from "./rollup-updater.ts";
import { SPANS_MS, RollupFile } from "./rollup-file.ts";
import { Unsummarized } from "./unsummarized.ts";

/**
 * Maximum number of entries after the rollups that are summed in memory. A report over more entries
 * waits for an update of the rollups.
 */
export const MAX_UNSUMMARIZED = 32_768;
/**
 * Interval in milliseconds at which a report that waits for rollups checks whether it is canceled.
 */
const CANCEL_POLL_MS = 20;
/** Maximum number of random rollups to verify per span length, in addition to the newest rollup. */
const SAMPLES = 8;

/** A rollup as the file stores it. */
export interface Sample {
  readonly level: RollupLevel;
  readonly span: number;
  readonly start: number;
  readonly rollup: string;
}

/** Rollups to compare with the entries. */
export interface Samples {
  /** The last entry in the rollups. */
  readonly upTo: number;
  /** Entries up to this entry are in no rollup. */
  readonly compactedUpTo: number;
  readonly rollups: readonly Sample[];
  /**
   * The rollup of each day at the level `calls`. Undefined if the day has too many groups for a
   * rollup.
   */
  readonly days: ReadonlyMap<number, string | undefined>;
}

export class Rollups {
  readonly #ledger: DatabaseSync;
  readonly #path: string;
  readonly #unsummarized: Unsummarized;
  #open: { readonly file: RollupFile; readonly summing: RollupUpdater } | undefined;

  constructor(ledger: DatabaseSync, path: string) {
    this.#ledger = ledger;
    this.#path = path;
    this.#unsummarized = new Unsummarized(ledger);
  }

  /**
   * Adds the rollups to the totals. If the result is undefined or the call throws, the totals are
   * unusable.
   * @param reach Estimates the number of entries in the time range.
   */
  async addTo(
    query: TotalsQuery,
    target: TotalsTarget,
    reach: () => number,
    still: ReadToken | undefined,
  ): Promise<RollupGap | undefined> {
    if (!canUseRollups(query)) return undefined;
    const open = this.#openCurrent();
    if (!open) return undefined;
    const { file, summing } = open;
    if (summing.needsTrim || (summing.behind() > MAX_UNSUMMARIZED && reach() > MAX_UNSUMMARIZED))
      await this.#waitForUpdate(summing, still);
    if (summing.needsTrim) return undefined;
    try {
      using _ = summing.acquireReadLock();
      const { position } = file;
      const taken = await addRollupsTo(
        file,
        rollupLevelFor(query.by, query) ?? "calls",
        query,
        target,
        still,
      );
      // Another call may have updated the rollups in the meantime.
      if (position.seq !== taken.after || summing.behind() > MAX_UNSUMMARIZED) return taken;
      return {
        ...taken,
        unsummarized: await this.#unsummarized.addTo(
          position,
          this.#readCompactedUpTo(),
          query,
          target,
        ),
      };
    } catch (error) {
      this.#discardFile();
      throw error;
    }
  }

  /**
   * Updates the rollups if there are at least `least` new entries. Resolves when the update is
   * done.
   */
  async update(least?: number): Promise<void> {
    try {
      await this.#openCurrent()?.summing.run(false, least);
    } catch {
      // The usual reason is a full disk. Reports can read entries without rollups.
      this.#discardFile();
    }
  }

  /** Returns a random sample of rollups, all read in one snapshot. */
  samples(): Samples | undefined {
    const open = this.#openCurrent();
    if (!open || open.summing.needsTrim) return undefined;
    const { file } = open;
    const some: Sample[] = [];
    for (const span of SPANS_MS) {
      const starts = file
        .rollupsBetween("calls", span, -Infinity, Infinity)
        .map(({ start }) => start);
      for (const start of pickSamples(starts))
        for (const depth of ROLLUP_LEVELS) {
          const sums = file.getRollup(depth, span, start)?.sums;
          if (sums !== undefined) some.push({ level: depth, span, start, rollup: sums });
        }
    }
    const days = file.rollupsBetween("calls", SPANS_MS[0], -Infinity, Infinity);
    return {
      upTo: file.position.seq,
      compactedUpTo: file.position.compactedUpTo,
      rollups: some,
      days: new Map(days.map(({ start, rollup }) => [start, rollup])),
    };
  }

  /**
   * Deletes all rollups and starts to compute them again. Called when rollups did not match the
   * entries.
   */
  rebuild(): void {
    this.#openCurrent()?.file.clear();
    void this.update();
  }

  close(): void {
    this.#open?.summing.stop();
    this.#open?.file.close();
    this.#open = undefined;
  }

  async #waitForUpdate(summing: RollupUpdater, still: ReadToken | undefined): Promise<void> {
    const done = summing.run(true).catch(() => this.#discardFile());
    let over = false;
    void done.finally(() => (over = true));
    while (!over && still?.isWanted !== false) await Promise.race([done, sleep(CANCEL_POLL_MS)]);
  }

  #openCurrent() {
    try {
      if (!this.#open) {
        const file = new RollupFile(this.#path);
        this.#open = { file, summing: new RollupUpdater(this.#ledger, file) };
      }
      // The file belongs to another ledger or to a ledger that a power failure has shortened, or
      // all its entries were compacted.
      if (!this.#matchesLedger(this.#open.file)) this.#open.file.clear();
      return this.#open;
    } catch {
      this.#discardFile();
      return undefined;
    }
  }

  /**
   * Returns the last compacted entry. Rows in the rollups may have been compacted in the meantime.
   * The checkpoint rollups then cover them.
   */
  #readCompactedUpTo(): number {
    return readCompactedUpTo(this.#ledger.prepare(COMPACTED_UP_TO_SQL));
  }

  #matchesLedger({ position }: RollupFile): boolean {
    if (position.seq === 0) return true;
    const pruned = this.#readCompactedUpTo();
    if (pruned < position.compactedUpTo || pruned >= position.seq) return false;
    const link = this.#ledger
      .prepare("SELECT last, hash FROM segment WHERE id = ?")
      .get(position.segment);
    return link?.["last"] === position.seq && link["hash"] === position.hash;
  }

  #discardFile(): void {
    try {
      this.close();
    } catch {
      // The handle itself is broken.
    }
    this.#open = undefined;
  }
}

/** Whether rollups can answer a query. They contain no data on individual calls or open calls. */
export const canUseRollups = ({ attempt, upstreamId, state }: LedgerQuery): boolean =>
  attempt === undefined && upstreamId === undefined && state !== "open";

/** Picks the newest rollup and some random rollups. */
function pickSamples(starts: readonly number[]): Set<number> {
  const chosen = new Set(starts.slice(-1));
  for (let i = 0; i < SAMPLES && starts.length > 0; i++)
    chosen.add(starts[Math.floor(Math.random() * starts.length)]!);
  return chosen;
}

// Schedules updates of rollups for seconds with few writes, so that they do not delay commits. The
// delay of an update is limited.

/**
 * Number of commands that justify an update, and the number after which the update runs even under
 * load.
 */
const MIN_COMMANDS = 32_768;
const MAX_COMMANDS = 524_288;
/** A second with at most this many commands counts as idle. */
const IDLE_COMMANDS_PER_SECOND = 4_096;

export class IdleWindow {
  readonly #onIdle: () => Promise<void>;
  #pendingCommands = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param sum Updates the rollups. If it fails, reports only take longer.
   */
  constructor(sum: () => Promise<void>) {
    this.#onIdle = sum;
  }

  addCommands(commands: number): void {
    if ((this.#pendingCommands += commands) >= MIN_COMMANDS && !this.#timer) this.#schedule();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    const before = this.#pendingCommands;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (
        this.#pendingCommands - before > IDLE_COMMANDS_PER_SECOND &&
        this.#pendingCommands < MAX_COMMANDS
      )
        return this.#schedule();
      this.#pendingCommands = 0;
      this.#onIdle().catch(() => {});
    }, 1_000).unref();
  }
}
