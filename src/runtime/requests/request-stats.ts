// Counts and times requests by frontend, provider, model, key, and account, in slots of 5 seconds,
// 1 minute, and 1 hour. A request adds only a few numbers. Sums are computed when they are read.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";
import type { RequestRecord } from "../../plugin/observer.ts";
import {
  StatsCell,
  COUNTS,
  CellReader,
  CellWriter,
  OVERHEAD_UNITS_PER_MS,
  classOf,
  quantile,
} from "./stats-cell.ts";
import { selectSeries, type SeriesQuery, type StatsBy } from "./series-selection.ts";
import { findOrCreateCell, OTHER_SERIES, TimeSlots, type Series } from "./time-slots.ts";

// Caches series names by their suffix. A lookup is faster than building the string, and requests
// are counted thousands of times per second.
/**
 * Maximum number of cached names. This number is more than a gateway uses per minute. Clients can
 * also invent names.
 */
const MAX_NAMES = 4_096;
class SeriesNameCache {
  readonly #prefix: string;
  readonly #names = new Map<string, Series>();

  constructor(beginning: string) {
    this.#prefix = beginning;
  }

  get(end: string): Series {
    const found = this.#names.get(end);
    if (found !== undefined) return found;
    if (this.#names.size >= MAX_NAMES) this.#names.clear();
    const name = this.#prefix + end;
    this.#names.set(end, name);
    return name;
  }
}

const SECOND_MS = 1_000;
const MIB = 1 << 20;
const SLOT_BOUNDS = {
  moment: { slotMs: 5 * SECOND_MS, maxSlots: 121, maxBytes: MIB },
  minute: { slotMs: 60 * SECOND_MS, maxSlots: 48 * 60, maxBytes: 16 * MIB },
  hour: { slotMs: 3600 * SECOND_MS, maxSlots: 60 * 24, maxBytes: 16 * MIB },
};
const FILE_HEADER = "tollgate stats 1\n";

export type StatsStep = "minute" | "hour";

/** Percentiles in milliseconds, accurate to about 10%. */
export interface DurationPercentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

type RequestCounts = { readonly [C in Exclude<(typeof COUNTS)[number], "costNano">]: number };

/** One series over a period of time. */
export interface StatsRow extends RequestCounts {
  /** Name of the series. Empty for the series of all requests. */
  readonly name: string;
  readonly costNano: bigint;
  /** Undefined if nothing was counted. */
  readonly ms: DurationPercentiles | undefined;
  readonly firstTokenMs: DurationPercentiles | undefined;
  /** Time that the gateway itself spent per request. Undefined for calls. */
  readonly overheadMs: DurationPercentiles | undefined;
}

export interface StatsPage {
  /** Start of the counting, in Unix milliseconds. */
  readonly countedSince: number;
  readonly rows: readonly (StatsRow & { readonly at: number })[];
  /** Totals over all slots of the page, largest first. */
  readonly totals: readonly StatsRow[];
  /** Start of the next page, if there is more. */
  readonly next: number | undefined;
}

/** Maximum number of slots per page. */
const MAX_STEPS = 1_500;

export class RequestStats {
  #countedSince: number;
  #pendingCells = new Map<Series, StatsCell>();
  #pendingAt: number;
  readonly #recentSlots: TimeSlots;
  readonly #slotsByStep: { readonly [S in StatsStep]: TimeSlots };
  readonly #now: () => number;
  readonly #frontends = new SeriesNameCache("frontend:");
  readonly #keys = new SeriesNameCache("key:");
  /** Names of account series, by account path. */
  readonly #accounts = new SeriesNameCache("account:");
  /** Names of model series, by provider. */
  readonly #models = new Map<string, SeriesNameCache>();

  constructor(now: () => number = wallClock) {
    const at = now();
    this.#now = now;
    this.#countedSince = at;
    this.#pendingAt = at;
    this.#recentSlots = new TimeSlots(SLOT_BOUNDS.moment, at);
    this.#slotsByStep = {
      minute: new TimeSlots(SLOT_BOUNDS.minute, at),
      hour: new TimeSlots(SLOT_BOUNDS.hour, at),
    };
  }

  add(batch: readonly RequestRecord[]): void {
    this.#flushPending();
    for (const record of batch) {
      this.#count("", record);
      this.#count(this.#frontends.get(record.frontend), record);
      if (record.key) this.#count(this.#keys.get(record.key), record);
      if (record.account) this.#count(this.#accounts.get(record.account), record);
      for (const call of record.calls) {
        const cell = findOrCreateCell(
          this.#pendingCells,
          this.#modelNamesOf(call.provider).get(call.model),
        );
        countRequest(cell, endOfCall(call), call.ms.total, call.ms.firstToken ?? undefined);
        countCost(cell, call);
      }
    }
  }

  #count(series: Series, record: RequestRecord): void {
    const cell = findOrCreateCell(this.#pendingCells, series);
    countRequest(cell, END_OF_OUTCOME[record.outcome], record.ms, record.firstTokenMs ?? undefined);
    cell.overhead[classOf(record.overheadMs * OVERHEAD_UNITS_PER_MS)]!++;
    if (record.cached) cell.increment("cached");
    if (record.privacy !== "off") cell.increment("private");
    for (const call of record.calls) countCost(cell, call);
  }

  #modelNamesOf(provider: string): SeriesNameCache {
    let names = this.#models.get(provider);
    if (!names) this.#models.set(provider, (names = new SeriesNameCache(`model:${provider}/`)));
    return names;
  }

  /**
   * Returns all series of one type over the last `windowMs` milliseconds, sorted by cost. Windows
   * over 10 minutes are summed from the minute slots.
   */
  recentRows(by: StatsBy, windowMs: number): readonly StatsRow[] {
    this.#flushPending();
    const now = this.#now();
    const cells = new Map<Series, StatsCell>();
    const { slotMs, maxSlots } = SLOT_BOUNDS.moment;
    const slots = windowMs < slotMs * maxSlots ? this.#recentSlots : this.#slotsByStep.minute;
    const { includes, mapTo } = selectSeries({ by });
    slots.read(now - windowMs, now + 1, includes, (_, series, cell) =>
      addToCell(cells, nameOfSeries(mapTo(series)), cell),
    );
    return [...cells]
      .map(([name, cell]) => toStatsRow(name, cell))
      .sort((a, b) => Number(b.costNano - a.costNano) || b.requests - a.requests);
  }

  /**
   * Returns a page of series. `most` is the maximum number of series. The remaining series of each
   * slot are merged.
   */
  readSeries(
    of: SeriesQuery & { from: number; to: number; step: StatsStep; most: number },
  ): StatsPage {
    this.#flushPending();
    const { includes, mapTo } = selectSeries(of);
    const slots = this.#slotsByStep[of.step];
    const { slotMs } = slots.bounds;
    const from = Math.max(of.from - (of.from % slotMs), slots.oldestStart ?? of.from);
    const to = Math.min(of.to, from + MAX_STEPS * slotMs);
    const cells = new Map<string, StatsCell>();
    const sums = new Map<Series, StatsCell>();
    slots.read(from, to, includes, (_, series, cell) => addToCell(sums, mapTo(series), cell));
    const size = ([, cell]: readonly [Series, StatsCell]) => cell.get("requests");
    const sorted = [...sums].sort((a, b) => size(b) - size(a));
    const named = new Set(sorted.slice(0, of.most).map(([series]) => series));
    const nameOf = (series: Series) => (named.has(series) ? series : `${of.by}:${OTHER_SERIES}`);
    slots.read(from, to, includes, (at, series, cell) =>
      addToCell(cells, `${at} ${nameOf(mapTo(series))}`, cell),
    );
    const whole = new Map<Series, StatsCell>();
    for (const [series, cell] of sorted) addToCell(whole, nameOf(series), cell);
    const totals = [...whole].map(([series, cell]) => toStatsRow(nameOfSeries(series), cell));
    const rows = [...cells].map(([place, cell]) => {
      const gap = place.indexOf(" ");
      return {
        at: Number(place.slice(0, gap)),
        ...toStatsRow(nameOfSeries(place.slice(gap + 1)), cell),
      };
    });
    rows.sort((a, b) => a.at - b.at || b.requests - a.requests);
    return {
      countedSince: this.countedSince,
      rows,
      totals,
      next: to < of.to && to <= this.#now() ? to : undefined,
    };
  }

  get countedSince(): number {
    return this.#countedSince;
  }

  serialize(): Buffer {
    this.#flushPending();
    const head = new CellWriter();
    head.writeInteger(this.#countedSince);
    const parts = (["minute", "hour"] as const).flatMap((step) => {
      const bytes = Buffer.concat(this.#slotsByStep[step].serialize());
      const length = new CellWriter();
      length.writeInteger(bytes.length);
      return [length.toBuffer(), bytes];
    });
    return Buffer.concat([Buffer.from(FILE_HEADER), head.toBuffer(), ...parts]);
  }

  /** Restores the stats that an earlier process serialized. Throws if the bytes are invalid. */
  restore(bytes: Buffer): void {
    if (!bytes.subarray(0, FILE_HEADER.length).equals(Buffer.from(FILE_HEADER)))
      throw new RangeError("The file has an unknown format.");
    const from = new CellReader(bytes.subarray(FILE_HEADER.length));
    const since = from.readInteger();
    for (const step of ["minute", "hour"] as const)
      this.#slotsByStep[step].restore(from.readBytes(), this.#now());
    this.#countedSince = Math.max(
      since,
      this.#now() - SLOT_BOUNDS.hour.slotMs * SLOT_BOUNDS.hour.maxSlots,
    );
  }

  /** Adds the pending counts to their slots. Called every 5 seconds and before a read. */
  #flushPending(): void {
    const now = this.#now();
    const all = [this.#recentSlots, this.#slotsByStep.minute, this.#slotsByStep.hour];
    if (this.#pendingCells.size > 0) {
      for (const slots of all) {
        slots.advanceTo(this.#pendingAt);
        for (const [series, cell] of this.#pendingCells) slots.cellOf(series).add(cell);
      }
      this.#pendingCells = new Map();
    }
    for (const slots of all) slots.advanceTo(now);
    this.#pendingAt = now;
  }
}

type RequestEnd = "ok" | "failed" | "refused" | "canceled";

const END_OF_OUTCOME = {
  ok: "ok",
  client_error: "refused",
  refused: "refused",
  upstream_error: "failed",
  error: "failed",
  canceled: "canceled",
} as const satisfies Record<RequestRecord["outcome"], RequestEnd>;

type RecordedCall = RequestRecord["calls"][number];

const endOfCall = ({ fault }: RecordedCall): RequestEnd =>
  fault === undefined ? "ok" : fault.kind === "canceled" ? "canceled" : "failed";

function countRequest(
  cell: StatsCell,
  end: RequestEnd,
  ms: number,
  first: number | undefined,
): void {
  cell.increment("requests");
  if (end !== "ok") cell.increment(end);
  // Rejected requests do not count toward response times, because they end immediately.
  if (end === "ok" || end === "failed") cell.total[classOf(ms)]!++;
  if (first !== undefined) cell.firstToken[classOf(first)]!++;
}

function countCost(cell: StatsCell, { costNano, state, usage }: RecordedCall): void {
  cell.increment("calls");
  if (costNano === null) cell.increment("unpriced");
  else cell.increment("costNano", Number(costNano));
  if (state === "estimated") cell.increment("estimated");
  cell.increment("input", inputTokens(usage));
  cell.increment("output", outputTokens(usage));
}

function addToCell(cells: Map<string, StatsCell>, name: string, cell: StatsCell): void {
  const sum = cells.get(name) ?? new StatsCell();
  sum.add(cell);
  cells.set(name, sum);
}

const nameOfSeries = (series: Series): string => series.slice(series.indexOf(":") + 1);

function toStatsRow(name: string, cell: StatsCell): StatsRow {
  const counts = Object.fromEntries(COUNTS.map((name) => [name, cell.get(name)])) as RequestCounts;
  return {
    ...counts,
    name,
    costNano: BigInt(Math.round(cell.get("costNano"))),
    ms: percentilesOf(cell.total),
    firstTokenMs: percentilesOf(cell.firstToken),
    overheadMs: percentilesOf(cell.overhead, OVERHEAD_UNITS_PER_MS),
  };
}

function percentilesOf(counts: Uint32Array, units = 1): DurationPercentiles | undefined {
  const of = (share: number) => quantile(counts, share)! / units;
  return quantile(counts, 0.5) === undefined
    ? undefined
    : { p50: of(0.5), p95: of(0.95), p99: of(0.99) };
}
