// The sums beside the ledger, as its reader has them. They are never needed: what is wrong with their file costs time and nothing else.
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerQuery } from "tollgate/plugin";
import { depthOf, DEPTHS, type Depth, type TotalsQuery } from "tollgate/store";
import type { Still } from "./reader.ts";
import { PRUNED, prunedIn } from "./standing.ts";
import { type TakenInto, takeSums, type Unsummed } from "./summed.ts";
import { Summing } from "./summing.ts";
import { SPANS, SumsFile } from "./sums-file.ts";
import { Tail } from "./tail.ts";

/** Entries after the sums that are kept in memory; a report that reaches farther waits until they are summed up. */
export const NEAR = 32_768;
/** A report that waits for sums asks so often whether it is still wanted, in milliseconds. */
const ASKS_MS = 20;
/** Sums of each length that are looked at, and the newest one. */
const SAMPLES = 8;

/** One sum as it stands in the file. */
export interface Sample {
  readonly depth: Depth;
  readonly span: number;
  readonly start: number;
  readonly sums: string;
}

/** What is compared with the entries. */
export interface Samples {
  /** The last entry in them. */
  readonly upTo: number;
  /** Those up to this one are in none of them. */
  readonly pruned: number;
  readonly some: readonly Sample[];
  /** Of every day, without keys and labels; undefined: it is not summed up. */
  readonly days: ReadonlyMap<number, string | undefined>;
}

export class Sums {
  readonly #ledger: DatabaseSync;
  readonly #path: string;
  readonly #tail: Tail;
  #open: { readonly file: SumsFile; readonly summing: Summing } | undefined;

  constructor(ledger: DatabaseSync, path: string) {
    this.#ledger = ledger;
    this.#path = path;
    this.#tail = new Tail(ledger);
  }

  /** Adds to the totals what is known. Undefined, or thrown: nothing of them is of use. `reach`: how many entries the times are in. */
  async take(
    asked: TotalsQuery,
    into: TakenInto,
    reach: () => number,
    still: Still | undefined,
  ): Promise<Unsummed | undefined> {
    if (!tellsSums(asked)) return undefined;
    const open = this.#current();
    if (!open) return undefined;
    const { file, summing } = open;
    if (summing.cut || (summing.behind() > NEAR && reach() > NEAR))
      await this.#wait(summing, still);
    if (summing.cut) return undefined;
    try {
      using _ = summing.hold();
      const { upTo } = file;
      const taken = await takeSums(file, depthOf(asked.by, asked) ?? "calls", asked, into, still);
      // Others may have summed it up since.
      if (upTo.seq !== taken.after || summing.behind() > NEAR) return taken;
      return { ...taken, tail: await this.#tail.take(upTo, this.#pruned(), asked, into) };
    } catch (error) {
      this.#lost();
      throw error;
    }
  }

  /** Sums up what is new, if it is `least` entries; resolves then. */
  async more(least?: number): Promise<void> {
    try {
      await this.#current()?.summing.run(false, least);
    } catch {
      // A full disk, mostly: entries can be read without sums.
      this.#lost();
    }
  }

  /** Some of them, as of one moment. */
  samples(): Samples | undefined {
    const open = this.#current();
    if (!open || open.summing.cut) return undefined;
    const { file } = open;
    const some: Sample[] = [];
    for (const span of SPANS) {
      const starts = file.during("calls", span, -Infinity, Infinity).map(({ start }) => start);
      for (const start of picked(starts))
        for (const depth of DEPTHS) {
          const sums = file.one(depth, span, start)?.sums;
          if (sums !== undefined) some.push({ depth, span, start, sums });
        }
    }
    const days = file.during("calls", SPANS[0], -Infinity, Infinity);
    return {
      upTo: file.upTo.seq,
      pruned: file.upTo.pruned,
      some,
      days: new Map(days.map(({ start, sums }) => [start, sums])),
    };
  }

  /** They were wrong. */
  anew(): void {
    this.#current()?.file.empty();
    void this.more();
  }

  close(): void {
    this.#open?.summing.end();
    this.#open?.file.close();
    this.#open = undefined;
  }

  async #wait(summing: Summing, still: Still | undefined): Promise<void> {
    const done = summing.run(true).catch(() => this.#lost());
    let over = false;
    void done.finally(() => (over = true));
    while (!over && still?.wanted !== false) await Promise.race([done, sleep(ASKS_MS)]);
  }

  #current() {
    try {
      if (!this.#open) {
        const file = new SumsFile(this.#path);
        this.#open = { file, summing: new Summing(this.#ledger, file) };
      }
      // Another ledger, one that a power cut has shortened, or one of which all is gone that they tell.
      if (!this.#follows(this.#open.file)) this.#open.file.empty();
      return this.#open;
    } catch {
      this.#lost();
      return undefined;
    }
  }

  /** Rows that are in the sums may be gone since: what came of them is told apart. */
  #pruned(): number {
    return prunedIn(this.#ledger.prepare(PRUNED));
  }

  #follows({ upTo }: SumsFile): boolean {
    if (upTo.seq === 0) return true;
    const pruned = this.#pruned();
    if (pruned < upTo.pruned || pruned >= upTo.seq) return false;
    const link = this.#ledger
      .prepare("SELECT last, hash FROM segment WHERE id = ?")
      .get(upTo.segment);
    return link?.["last"] === upTo.seq && link["hash"] === upTo.hash;
  }

  #lost(): void {
    try {
      this.close();
    } catch {
      // It is the handle that is broken.
    }
    this.#open = undefined;
  }
}

/** Sums tell nothing of one call, nor of open ones. */
export const tellsSums = ({ attempt, upstreamId, state }: LedgerQuery): boolean =>
  attempt === undefined && upstreamId === undefined && state !== "open";

/** The newest one, and others by chance. */
function picked(starts: readonly number[]): Set<number> {
  const chosen = new Set(starts.slice(-1));
  for (let i = 0; i < SAMPLES && starts.length > 0; i++)
    chosen.add(starts[Math.floor(Math.random() * starts.length)]!);
  return chosen;
}
