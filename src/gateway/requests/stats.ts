// Counts and times of requests by frontend, by provider and model, by key and by account, over stretches of five seconds, minutes and hours.
// What a request adds is a few numbers; what is asked is added up when it is asked.
import { wallClock } from "../../lib/wall-clock.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";
import type { RequestRecord } from "../../plugin/observer.ts";
import { Cell, COUNTS, CellReader, CellWriter, OWN_UNITS } from "./cell.ts";
import { choiceOf, type SeriesQuery, type StatsBy } from "./series-choice.ts";
import { SeriesNames } from "./series-names.ts";
import { classOf, quantile } from "./sketch.ts";
import { cellIn, OTHER, Slots, type Series } from "./slots.ts";

const SECOND = 1_000;
const MIB = 1 << 20;
const BOUNDS = {
  moment: { ms: 5 * SECOND, most: 121, bytes: MIB },
  minute: { ms: 60 * SECOND, most: 48 * 60, bytes: 16 * MIB },
  hour: { ms: 3600 * SECOND, most: 60 * 24, bytes: 16 * MIB },
};
const FORMAT = "tollgate stats 1\n";

export type StatsStep = "minute" | "hour";

/** Milliseconds, right to a tenth. */
export interface Times {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

type Counted = { readonly [C in Exclude<(typeof COUNTS)[number], "costNano">]: number };

/** One series over one stretch of time. */
export interface StatsRow extends Counted {
  /** "" of all. */
  readonly name: string;
  readonly costNano: bigint;
  /** Undefined: nothing was counted. */
  readonly ms: Times | undefined;
  readonly firstContentMs: Times | undefined;
  /** What the gateway itself took of each request; undefined of calls. */
  readonly ownMs: Times | undefined;
}

export interface StatsPage {
  /** From when on it was counted, in Unix milliseconds. */
  readonly since: number;
  readonly rows: readonly (StatsRow & { readonly at: number })[];
  /** Of all these stretches together, the largest first. */
  readonly totals: readonly StatsRow[];
  /** Where more follows: ask again from here. */
  readonly next: number | undefined;
}

/** In one answer. */
const STRETCHES = 1_500;

export class Stats {
  #since: number;
  #pending = new Map<Series, Cell>();
  #pendingAt: number;
  readonly #moments: Slots;
  readonly #of: { readonly [S in StatsStep]: Slots };
  readonly #now: () => number;
  readonly #frontends = new SeriesNames("frontend:");
  readonly #keys = new SeriesNames("key:");
  /** By path. */
  readonly #accounts = new SeriesNames("account:");
  /** By provider. */
  readonly #models = new Map<string, SeriesNames>();

  constructor(now: () => number = wallClock) {
    const at = now();
    this.#now = now;
    this.#since = at;
    this.#pendingAt = at;
    this.#moments = new Slots(BOUNDS.moment, at);
    this.#of = { minute: new Slots(BOUNDS.minute, at), hour: new Slots(BOUNDS.hour, at) };
  }

  add(batch: readonly RequestRecord[]): void {
    this.#reach();
    for (const record of batch) {
      this.#count("", record);
      this.#count(this.#frontends.of(record.frontend), record);
      if (record.key) this.#count(this.#keys.of(record.key), record);
      if (record.account) this.#count(this.#accounts.of(record.account), record);
      for (const call of record.calls) {
        const cell = cellIn(this.#pending, this.#modelsOf(call.provider).of(call.model));
        counted(cell, endOfCall(call), call.ms.total, call.ms.content ?? undefined);
        billed(cell, call);
      }
    }
  }

  #count(series: Series, record: RequestRecord): void {
    const cell = cellIn(this.#pending, series);
    counted(cell, ENDS[record.outcome], record.ms, record.contentMs ?? undefined);
    cell.own[classOf(record.ownMs * OWN_UNITS)]!++;
    if (record.cached) cell.count("cached");
    if (record.privacy !== "off") cell.count("private");
    for (const call of record.calls) billed(cell, call);
  }

  #modelsOf(provider: string): SeriesNames {
    let names = this.#models.get(provider);
    if (!names) this.#models.set(provider, (names = new SeriesNames(`model:${provider}/`)));
    return names;
  }

  /**
   * Of the last so many milliseconds: every series of one kind, those that cost most first. More than ten minutes are added up
   * by the minute.
   */
  recent(by: StatsBy, windowMs: number): readonly StatsRow[] {
    this.#reach();
    const now = this.#now();
    const cells = new Map<Series, Cell>();
    const { ms, most } = BOUNDS.moment;
    const slots = windowMs < ms * most ? this.#moments : this.#of.minute;
    const { wants, as } = choiceOf({ by });
    slots.read(now - windowMs, now + 1, wants, (_, series, cell) =>
      into(cells, nameIn(as(series)), cell),
    );
    return [...cells]
      .map(([name, cell]) => rowOf(name, cell))
      .sort((a, b) => Number(b.costNano - a.costNano) || b.requests - a.requests);
  }

  /** `most`: series; the others of each stretch are one. */
  series(of: SeriesQuery & { from: number; to: number; step: StatsStep; most: number }): StatsPage {
    this.#reach();
    const { wants, as } = choiceOf(of);
    const slots = this.#of[of.step];
    const { ms } = slots.bounds;
    const from = Math.max(of.from - (of.from % ms), slots.oldest ?? of.from);
    const to = Math.min(of.to, from + STRETCHES * ms);
    const cells = new Map<string, Cell>();
    const sums = new Map<Series, Cell>();
    slots.read(from, to, wants, (_, series, cell) => into(sums, as(series), cell));
    const size = ([, cell]: readonly [Series, Cell]) => cell.of("requests");
    const sorted = [...sums].sort((a, b) => size(b) - size(a));
    const named = new Set(sorted.slice(0, of.most).map(([series]) => series));
    const nameOf = (series: Series) => (named.has(series) ? series : `${of.by}:${OTHER}`);
    slots.read(from, to, wants, (at, series, cell) =>
      into(cells, `${at} ${nameOf(as(series))}`, cell),
    );
    const whole = new Map<Series, Cell>();
    for (const [series, cell] of sorted) into(whole, nameOf(series), cell);
    const totals = [...whole].map(([series, cell]) => rowOf(nameIn(series), cell));
    const rows = [...cells].map(([place, cell]) => {
      const gap = place.indexOf(" ");
      return { at: Number(place.slice(0, gap)), ...rowOf(nameIn(place.slice(gap + 1)), cell) };
    });
    rows.sort((a, b) => a.at - b.at || b.requests - a.requests);
    return {
      since: this.since,
      rows,
      totals,
      next: to < of.to && to <= this.#now() ? to : undefined,
    };
  }

  get since(): number {
    return this.#since;
  }

  written(): Buffer {
    this.#reach();
    const head = new CellWriter();
    head.whole(this.#since);
    const parts = (["minute", "hour"] as const).flatMap((step) => {
      const bytes = Buffer.concat(this.#of[step].written());
      const length = new CellWriter();
      length.whole(bytes.length);
      return [length.done(), bytes];
    });
    return Buffer.concat([Buffer.from(FORMAT), head.done(), ...parts]);
  }

  /** What `written` gave to a process that is over. Throws where it is not that. */
  restore(bytes: Buffer): void {
    if (!bytes.subarray(0, FORMAT.length).equals(Buffer.from(FORMAT)))
      throw new RangeError("It is in another format.");
    const from = new CellReader(bytes.subarray(FORMAT.length));
    const since = from.whole();
    for (const step of ["minute", "hour"] as const)
      this.#of[step].restore(from.bytes(), this.#now());
    this.#since = Math.max(since, this.#now() - BOUNDS.hour.ms * BOUNDS.hour.most);
  }

  /** What waits goes where it belongs: once in five seconds, or when it is asked for. */
  #reach(): void {
    const now = this.#now();
    const all = [this.#moments, this.#of.minute, this.#of.hour];
    if (this.#pending.size > 0) {
      for (const slots of all) {
        slots.reach(this.#pendingAt);
        for (const [series, cell] of this.#pending) slots.cell(series).add(cell);
      }
      this.#pending = new Map();
    }
    for (const slots of all) slots.reach(now);
    this.#pendingAt = now;
  }
}

type End = "ok" | "failed" | "refused" | "canceled";

const ENDS = {
  ok: "ok",
  client_error: "refused",
  refused: "refused",
  upstream_error: "failed",
  error: "failed",
  canceled: "canceled",
} as const satisfies Record<RequestRecord["outcome"], End>;

type Call = RequestRecord["calls"][number];

const endOfCall = ({ fault }: Call): End =>
  fault === undefined ? "ok" : fault.kind === "canceled" ? "canceled" : "failed";

function counted(cell: Cell, end: End, ms: number, first: number | undefined): void {
  cell.count("requests");
  if (end !== "ok") cell.count(end);
  // What was refused at once says nothing of how fast answers are.
  if (end === "ok" || end === "failed") cell.total[classOf(ms)]!++;
  if (first !== undefined) cell.first[classOf(first)]!++;
}

function billed(cell: Cell, { costNano, state, usage }: Call): void {
  cell.count("calls");
  if (costNano === null) cell.count("unpriced");
  else cell.count("costNano", Number(costNano));
  if (state === "estimated") cell.count("estimated");
  cell.count("input", inputTokens(usage));
  cell.count("output", outputTokens(usage));
}

function into(cells: Map<string, Cell>, name: string, cell: Cell): void {
  const sum = cells.get(name) ?? new Cell();
  sum.add(cell);
  cells.set(name, sum);
}

const nameIn = (series: Series): string => series.slice(series.indexOf(":") + 1);

function rowOf(name: string, cell: Cell): StatsRow {
  const counts = Object.fromEntries(COUNTS.map((name) => [name, cell.of(name)])) as Counted;
  return {
    ...counts,
    name,
    costNano: BigInt(Math.round(cell.of("costNano"))),
    ms: times(cell.total),
    firstContentMs: times(cell.first),
    ownMs: times(cell.own, OWN_UNITS),
  };
}

function times(counts: Uint32Array, units = 1): Times | undefined {
  const of = (share: number) => quantile(counts, share)! / units;
  return quantile(counts, 0.5) === undefined
    ? undefined
    : { p50: of(0.5), p95: of(0.95), p99: of(0.99) };
}
