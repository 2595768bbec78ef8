// The series of one family, found by their label values. Their number is limited. Above the limit,
// label values from outside are combined into `other`. Clients therefore cannot create unlimited
// series, and sums stay correct.
import { type Family, OPEN_LABELS } from "./families.ts";

/** Maximum number of series in one family, excluding those with the value `other`. */
export const MAX_SERIES = 2_000;
export const OTHER = "other";

/** A counter that only increases. Money is counted in nano-dollars and stays exact. */
export class Counter {
  value = 0;
  nano = 0n;

  add(more = 1): void {
    this.value += more;
  }

  addNano(nano: bigint): void {
    this.nano += nano;
  }
}

/**
 * The part of a shared series that counts observations above the limit. References to it stay
 * valid, and each observation through one counts as combined.
 */
interface Overflow {
  readonly observations: number;
}

class OverflowCounter extends Counter implements Overflow {
  readonly #into: Counter;
  observations = 0;

  constructor(into: Counter) {
    super();
    this.#into = into;
  }

  override add(more?: number): void {
    this.observations++;
    this.#into.add(more);
  }

  override addNano(nano: bigint): void {
    this.observations++;
    this.#into.addNano(nano);
  }
}

/** The last request in a bucket whose trace was sampled. */
export interface Exemplar {
  readonly trace: string;
  readonly value: number;
  readonly at: number;
}

export class Histogram {
  readonly bounds: readonly number[];
  /**
   * Number of observations per bound, plus one for values beyond the last bound. Not cumulative.
   */
  readonly counts: Float64Array;
  sum = 0;
  exemplars: (Exemplar | undefined)[] | undefined;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number, trace?: string, at = 0): void {
    const { bounds } = this;
    let i = 0;
    while (i < bounds.length && value > bounds[i]!) i++;
    this.counts[i]!++;
    this.sum += value;
    if (trace !== undefined)
      (this.exemplars ??= Array.from({ length: this.counts.length }))[i] = { trace, value, at };
  }
}

class OverflowHistogram extends Histogram implements Overflow {
  readonly #into: Histogram;
  observations = 0;

  constructor(into: Histogram) {
    super([]);
    this.#into = into;
  }

  override observe(value: number, trace?: string, at?: number): void {
    this.observations++;
    this.#into.observe(value, trace, at);
  }
}

/** Creates a series, and the overflow part of a series beyond the cap. */
interface SeriesFactory<T> {
  readonly create: () => T;
  readonly createOverflow: (into: T) => T & Overflow;
}

type LabelTree<T> = Map<string, LabelTree<T> | T>;

export class Series<T extends Counter | Histogram> {
  readonly family: Family;
  readonly all: { readonly values: readonly string[]; readonly of: T }[] = [];
  readonly #factory: SeriesFactory<T>;
  readonly #maxSeries: number;
  readonly #tree: LabelTree<T> = new Map();
  /**
   * Overflow parts by their remaining label values. Clients cannot influence the number of these
   * parts.
   */
  readonly #overflow = new Map<string, { readonly last: string; readonly of: T & Overflow }>();
  #seriesCount = 0;
  /**
   * Result of the last lookup, because consecutive observations usually belong to the same series.
   */
  #lastValues: readonly string[] = [];
  #lastFound: T | undefined;

  constructor(family: Family, making: SeriesFactory<T>, most = MAX_SERIES) {
    this.family = family;
    this.#factory = making;
    this.#maxSeries = most;
  }

  /**
   * Returns the series with these values, in the order of the family's labels. The caller may keep
   * it.
   */
  get(...values: readonly string[]): T {
    if (this.#lastFound && isSameValues(values, this.#lastValues)) return this.#lastFound;
    const found = this.#find(values);
    if (found) {
      this.#lastValues = values;
      return (this.#lastFound = found);
    }
    if (this.#seriesCount < this.#maxSeries) {
      this.#seriesCount++;
      const made = this.#make(values);
      this.#put(values, made);
      return made;
    }
    return this.#overflowFor(
      values.map((value, i) => (OPEN_LABELS.has(this.family.labels[i]!) ? OTHER : value)),
    );
  }

  /**
   * Returns the number of observations that were combined into `other` because of the limit. With
   * `last`, only those with this last label value are counted.
   */
  overflowCount(last?: string): number {
    let all = 0;
    for (const beyond of this.#overflow.values())
      if (last === undefined || beyond.last === last) all += beyond.of.observations;
    return all;
  }

  #overflowFor(values: readonly string[]): T {
    const name = values.join("\n");
    let beyond = this.#overflow.get(name);
    if (!beyond) {
      // A series whose own values are `other` uses the shared series. Its own observations do not
      // count as combined.
      const into = this.#find(values) ?? this.#make(values);
      beyond = { last: values.at(-1) ?? "", of: this.#factory.createOverflow(into) };
      this.#overflow.set(name, beyond);
    }
    return beyond.of;
  }

  #find(values: readonly string[]): T | undefined {
    let at: LabelTree<T> | T | undefined = this.#tree;
    for (const value of values) {
      at = (at as LabelTree<T>).get(value);
      if (at === undefined) return undefined;
    }
    return values.length === 0 ? this.all[0]?.of : (at as T);
  }

  #make(values: readonly string[]): T {
    const of = this.#factory.create();
    this.all.push({ values, of });
    return of;
  }

  #put(values: readonly string[], of: T): void {
    let at = this.#tree;
    for (let i = 0; i < values.length - 1; i++) {
      let next = at.get(values[i]!) as LabelTree<T> | undefined;
      if (!next) at.set(values[i]!, (next = new Map()));
      at = next;
    }
    const last = values.at(-1);
    if (last !== undefined) at.set(last, of);
  }
}

function isSameValues(values: readonly string[], others: readonly string[]): boolean {
  for (let i = 0; i < values.length; i++) if (values[i] !== others[i]) return false;
  return values.length === others.length;
}

const COUNTER_FACTORY: SeriesFactory<Counter> = {
  create: () => new Counter(),
  createOverflow: (into) => new OverflowCounter(into),
};

export const createCounters = (family: Family, most?: number): Series<Counter> =>
  new Series(family, COUNTER_FACTORY, most);

export const createHistograms = (family: Family, most?: number): Series<Histogram> =>
  new Series(
    family,
    {
      create: () => new Histogram(family.bounds!),
      createOverflow: (into) => new OverflowHistogram(into),
    },
    most,
  );

// Receives metrics one family after the other. The text of a scrape and the messages for a
// collector implement it.

/** A sample that is read instead of counted: the values of its labels, and its value. */
export type Sample = readonly [labels: readonly string[], value: number | bigint];
/** A distribution of durations from the live stats. */
export interface Distribution {
  readonly count: number;
  readonly sum: number;
  readonly buckets: readonly (readonly [bound: number, count: number])[];
}

export interface MetricsSink {
  /** `as`: the family whose name and labels to write. Default: the series' own. */
  writeSeries(series: Series<Counter> | Series<Histogram>, as?: Family): void;
  /**
   * Writes the series whose last label has this value, without that label. With `sum`, writes the
   * histogram sums as counters.
   */
  writeFiltered(series: Series<Histogram>, as: Family, only: string, sum?: boolean): void;
  writeSamples(family: Family, samples: readonly Sample[]): void;
  writeDistribution(family: Family, of: Distribution): void;
}
