// Accumulates rollups by quarter, hour, and day in memory before they are written.
import {
  createRollup,
  ROLLUP_LEVELS,
  type RollupLevel,
  parseRollup,
  type Rollup,
  forEachSettledRow,
  quarterStart,
} from "tollgate/store";
import type { DimensionCache } from "../data/dimension-cache.ts";
import type { ChainedBatch } from "../data/chained-batches.ts";
import { chapterOf } from "../data/key-index.ts";
import { type StoredBatch } from "../data/stored-batch.ts";
import {
  HOUR_MS,
  hourStart,
  LONG_SPANS_MS,
  QUARTER_HOUR_MS,
  SPANS_MS,
  type RollupFile,
  type RollupPosition,
} from "./rollup-file.ts";

/** Maximum number of entries, and of groups, that are accumulated before they are written. */
const MAX_ENTRIES = 65_536;
const MAX_PENDING_GROUPS = 20_000;
/** Maximum number of groups per rollup. A larger rollup is hardly smaller than its entries. */
const MAX_GROUPS_PER_ROLLUP = 4_096;
/**
 * Minimum entries per group for a finished time span. Below this ratio, reading the entries takes
 * no longer than reading a rollup.
 */
const MIN_ENTRIES_PER_GROUP = 1.5;
/**
 * Coarser levels in order, each with the finer level that it is derived from. All other levels are
 * derived from the level `labels`.
 */
const DERIVED_LEVELS: readonly (readonly [RollupLevel, of: RollupLevel])[] = [
  ["tags", "labels"],
  ["holders", "tags"],
  ["keys", "labels"],
  ["calls", "keys"],
];

/** The rollup that is kept for a quarter of an hour, and the rollup of its hour. */
interface QuarterRollups {
  readonly quarter: number;
  readonly callsRollup: Rollup;
  readonly fullRollup: Rollup;
}

/** Rollups that are accumulated but not yet written. */
export class PendingRollups {
  upTo: RollupPosition | undefined;
  readonly after: RollupPosition;
  readonly #dimensions: DimensionCache;
  readonly #only: ReadonlySet<number> | undefined;
  readonly #quarters = new Map<number, QuarterRollups>();
  readonly #hours = new Map<number, Rollup>();
  readonly #chapters = new Set<string>();
  #rows = 0;
  #groups = 0;

  /**
   * @param only Hours whose rows are added. If unset, all rows are added.
   */
  constructor(facts: DimensionCache, after: RollupPosition, only?: ReadonlySet<number>) {
    this.#dimensions = facts;
    this.#only = only;
    this.after = after;
  }

  get hasRoom(): boolean {
    return this.#rows < MAX_ENTRIES && this.#groups < MAX_PENDING_GROUPS;
  }

  get groupCount(): number {
    return this.#groups;
  }

  add(stored: ChainedBatch): void {
    const at = this.addRows(stored) ?? this.upTo?.at ?? this.after.at;
    const { id, first, last: end, hash } = stored;
    this.#rows += end - first + 1;
    this.upTo = { seq: end, segment: id, hash, at, compactedUpTo: this.after.compactedUpTo };
  }

  /** Adds the rows of a batch. Returns the time of the last row. */
  addRows(stored: StoredBatch): number | undefined {
    const chapter = chapterOf(stored.first);
    let at: number | undefined;
    let last: QuarterRollups | undefined;
    forEachSettledRow(stored, (row, termsText, terms) => {
      ({ at } = row);
      const quarter = quarterStart(at);
      if (this.#only && !this.#only.has(hourStart(at))) return;
      if (last?.quarter !== quarter) {
        last = this.#rollupsOf(quarter);
        this.#chapters.add(`${quarter} ${chapter}`);
      }
      const facts = this.#dimensions.get(row, termsText, terms);
      last.callsRollup.addWithDimensions(facts, row);
      const before = last.fullRollup.size;
      last.fullRollup.addWithDimensions(facts, row);
      this.#groups += last.fullRollup.size - before;
    });
    return at;
  }

  write(file: RollupFile): void {
    const { after } = this;
    const upTo = this.upTo!;
    const touched = new Map<string, Rollup>();
    for (const [depth, span, start, sums] of this.all())
      touched.set(`${depth} ${span} ${start}`, sums);
    // Spans that were unfinished at the last write may be finished now.
    if (after.seq > 0)
      for (const depth of ROLLUP_LEVELS)
        for (const span of SPANS_MS) {
          const id = `${depth} ${span} ${Math.floor(after.at / span) * span}`;
          if (!touched.has(id)) touched.set(id, createRollup(depth));
        }
    const places = [...this.#chapters].map((place) => place.split(" ").map(Number));
    file.write(after, mergeStored(file, touched, upTo.at), places as [number, number][], upTo);
  }

  /** Yields all rollups. Quarters have only the level `calls`. Hours and days have all levels. */
  *all(): Generator<readonly [RollupLevel, span: number, start: number, Rollup]> {
    for (const [start, { callsRollup }] of this.#quarters)
      yield [callsRollup.level, QUARTER_HOUR_MS, start, callsRollup];
    let deepest: ReadonlyMap<number, Rollup> = this.#hours;
    for (const span of LONG_SPANS_MS.toReversed()) {
      if (span !== HOUR_MS) deepest = mergeBySpan(deepest, span);
      for (const [start, sums] of deepest) {
        const made = new Map<RollupLevel, Rollup>([[sums.level, sums]]);
        for (const [depth, of] of DERIVED_LEVELS) {
          const own = createRollup(depth);
          own.merge(made.get(of)!);
          made.set(depth, own);
        }
        for (const [depth, own] of made) yield [depth, span, start, own];
      }
    }
  }

  #rollupsOf(quarter: number): QuarterRollups {
    let parts = this.#quarters.get(quarter);
    if (parts) return parts;
    const hour = hourStart(quarter);
    let all = this.#hours.get(hour);
    if (!all) this.#hours.set(hour, (all = createRollup("labels")));
    this.#quarters.set(
      quarter,
      (parts = { quarter, callsRollup: createRollup(ROLLUP_LEVELS[0]), fullRollup: all }),
    );
    return parts;
  }
}

/** Merges rollups into spans of the given length. */
function mergeBySpan(sums: ReadonlyMap<number, Rollup>, span: number): Map<number, Rollup> {
  const longer = new Map<number, Rollup>();
  for (const [at, some] of sums) {
    const start = Math.floor(at / span) * span;
    let into = longer.get(start);
    if (!into) longer.set(start, (into = createRollup(some.level)));
    into.merge(some);
  }
  return longer;
}

/**
 * Serializes a rollup. Returns undefined if the result would be hardly smaller than the entries.
 * @param over Whether the time span is finished.
 */
export function serializeRollup(sums: Rollup, over: boolean): string | undefined {
  const most = over
    ? Math.min(MAX_GROUPS_PER_ROLLUP, sums.rows / MIN_ENTRIES_PER_GROUP)
    : MAX_GROUPS_PER_ROLLUP;
  return sums.size > most ? undefined : sums.serialize();
}

function* mergeStored(file: RollupFile, touched: ReadonlyMap<string, Rollup>, now: number) {
  for (const [id, more] of touched) {
    const [depth, span, start] = parseRollupId(id);
    const there = file.getRollup(depth, span, start);
    if (there ? there.sums === undefined : more.rows === 0) continue;
    if (there) more.merge(parseRollup(there.sums!));
    yield [depth, span, start, serializeRollup(more, start + span <= now)] as const;
  }
}

function parseRollupId(id: string): [RollupLevel, number, number] {
  const [depth, span, start] = id.split(" ");
  return [depth as RollupLevel, Number(span), Number(start)];
}
