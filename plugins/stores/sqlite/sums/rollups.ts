// The sums beside the ledger, as its reader has them. They are never needed: what is wrong with their file costs time and nothing else.
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

/** Entries after the sums that are kept in memory; a report that reaches farther waits until they are summed up. */
export const MAX_UNSUMMARIZED = 32_768;
/** A report that waits for sums asks so often whether it is still wanted, in milliseconds. */
const CANCEL_POLL_MS = 20;
/** Sums of each length that are looked at, and the newest one. */
const SAMPLES = 8;

/** One sum as it stands in the file. */
export interface Sample {
  readonly level: RollupLevel;
  readonly span: number;
  readonly start: number;
  readonly rollup: string;
}

/** What is compared with the entries. */
export interface Samples {
  /** The last entry in them. */
  readonly upTo: number;
  /** Those up to this one are in none of them. */
  readonly compactedUpTo: number;
  readonly rollups: readonly Sample[];
  /** Of every day, without keys and labels; undefined: it is not summed up. */
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

  /** Adds to the totals what is known. Undefined, or thrown: nothing of them is of use. `reach`: how many entries the times are in. */
  async addTo(
    asked: TotalsQuery,
    target: TotalsTarget,
    reach: () => number,
    still: ReadToken | undefined,
  ): Promise<RollupGap | undefined> {
    if (!canUseRollups(asked)) return undefined;
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
        rollupLevelFor(asked.by, asked) ?? "calls",
        asked,
        target,
        still,
      );
      // Others may have summed it up since.
      if (position.seq !== taken.after || summing.behind() > MAX_UNSUMMARIZED) return taken;
      return {
        ...taken,
        unsummarized: await this.#unsummarized.addTo(
          position,
          this.#readCompactedUpTo(),
          asked,
          target,
        ),
      };
    } catch (error) {
      this.#discardFile();
      throw error;
    }
  }

  /** Sums up what is new, if it is `least` entries; resolves then. */
  async update(least?: number): Promise<void> {
    try {
      await this.#openCurrent()?.summing.run(false, least);
    } catch {
      // A full disk, mostly: entries can be read without sums.
      this.#discardFile();
    }
  }

  /** Some of them, as of one moment. */
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

  /** They were wrong. */
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
      // Another ledger, one that a power cut has shortened, or one of which all is gone that they tell.
      if (!this.#matchesLedger(this.#open.file)) this.#open.file.clear();
      return this.#open;
    } catch {
      this.#discardFile();
      return undefined;
    }
  }

  /** Rows that are in the sums may be gone since: what came of them is told apart. */
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
      // It is the handle that is broken.
    }
    this.#open = undefined;
  }
}

/** Sums tell nothing of one call, nor of open ones. */
export const canUseRollups = ({ attempt, upstreamId, state }: LedgerQuery): boolean =>
  attempt === undefined && upstreamId === undefined && state !== "open";

/** The newest one, and others by chance. */
function pickSamples(starts: readonly number[]): Set<number> {
  const chosen = new Set(starts.slice(-1));
  for (let i = 0; i < SAMPLES && starts.length > 0; i++)
    chosen.add(starts[Math.floor(Math.random() * starts.length)]!);
  return chosen;
}
