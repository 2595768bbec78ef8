// Sums the entries after the rollup file in memory, commit by commit. Dashboards that send a query
// every few seconds then read each entry once. The sum is reset when the file includes these
// entries.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import {
  createRollup,
  type Rollup,
  type TotalsQuery,
  forEachSettledRow,
  quarterStart,
} from "tollgate/store";
import { DimensionCache } from "../data/dimension-cache.ts";
import {
  type ChainedBatch,
  CHAINED_PAGE_SIZE,
  prepareChainedAfter,
} from "../data/chained-batches.ts";
import { type TotalsTarget, type UnsummarizedCoverage, createSpanFilter } from "./rollup-reader.ts";
import { QUARTER_HOUR_MS, type RollupPosition } from "./rollup-file.ts";

/** Maximum run time before yielding, in milliseconds. */
const STRIDE_MS = 4;

export class Unsummarized {
  readonly #nextBatches: StatementSync;
  readonly #dimensions = new DimensionCache();
  #quarters = new Map<number, Rollup>();
  /** The last entry before the summed entries. */
  #afterSeq = -1;
  #lastSeq = 0;
  #segment = 0;
  #running: Promise<void> | undefined;

  constructor(ledger: DatabaseSync) {
    this.#nextBatches = prepareChainedAfter(ledger);
  }

  /**
   * Adds the covered part of a report to the totals. Returns undefined if the sums now follow
   * another rollup position.
   * @param gone The last compacted entry.
   */
  async addTo(
    upTo: RollupPosition,
    gone: number,
    query: TotalsQuery,
    { totals: target, resolveLabels }: TotalsTarget,
  ): Promise<UnsummarizedCoverage | undefined> {
    // Concurrent reports share one read, so canceling one report does not stop the read.
    await (this.#running ??= this.#catchUp(upTo, gone).finally(() => (this.#running = undefined)));
    if (this.#afterSeq !== Math.max(upTo.seq, gone)) return undefined;
    const { from = -Infinity, to = Infinity } = query;
    const isWhole = createSpanFilter(query);
    const quarters = new Set<number>();
    for (const [start, sums] of this.#quarters) {
      if (start >= to || start + QUARTER_HOUR_MS <= from) continue;
      if (!isWhole(start, QUARTER_HOUR_MS)) quarters.add(start);
      else
        for (const [facts, amounts] of sums.groups())
          target.addGroup(resolveLabels(facts), amounts, start, query);
    }
    return { upTo: this.#lastSeq, quarters };
  }

  async #catchUp(upTo: RollupPosition, gone: number): Promise<void> {
    const after = Math.max(upTo.seq, gone);
    if (this.#afterSeq !== after) {
      this.#quarters = new Map();
      this.#afterSeq = this.#lastSeq = after;
      this.#segment = upTo.segment;
    }
    for (let began = performance.now(); ;) {
      const page = this.#nextBatches.all(this.#segment, gone) as unknown as ChainedBatch[];
      for (const one of page) this.#add(one);
      if (page.length < CHAINED_PAGE_SIZE) return;
      if (performance.now() - began < STRIDE_MS) continue;
      await setImmediate();
      began = performance.now();
    }
  }

  #add(one: ChainedBatch): void {
    forEachSettledRow(one, (row, termsText, terms) => {
      const quarter = quarterStart(row.at);
      let sums = this.#quarters.get(quarter);
      if (!sums) this.#quarters.set(quarter, (sums = createRollup("labels")));
      sums.addWithDimensions(this.#dimensions.get(row, termsText, terms), row);
    });
    this.#segment = one.id;
    this.#lastSeq = one.last;
  }
}
