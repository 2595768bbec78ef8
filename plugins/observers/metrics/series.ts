// The series of one family: found by the values of its labels, at most so many of them. Beyond that the values that come from
// outside fold into `other`, so that no client can make series, and sums stay what they are.
import { type Family, OPEN_LABELS } from "./families.ts";

/** In one family, without those that are called `other`. */
export const MAX_SERIES = 2_000;
export const OTHER = "other";

/** A number that only counts up; money counts in nano-dollars and stays exact. */
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

/** What those have of a shared series that are too many: however long it is kept, each observation is still counted as folded. */
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

/** The last request that fell into a bucket and that a trace was kept of. */
export interface Exemplar {
  readonly trace: string;
  readonly value: number;
  readonly at: number;
}

export class Histogram {
  readonly bounds: readonly number[];
  /** Of each bound, and one for what is beyond the last. Not cumulative. */
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

/** How a series is made, and what of it those have that are beyond the cap. */
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
  /** By the values that are left of theirs: no client has a say in how many there are. */
  readonly #overflow = new Map<string, { readonly last: string; readonly of: T & Overflow }>();
  #seriesCount = 0;
  /** What was found last: mostly the next observation is of the same. */
  #lastValues: readonly string[] = [];
  #lastFound: T | undefined;

  constructor(family: Family, making: SeriesFactory<T>, most = MAX_SERIES) {
    this.family = family;
    this.#factory = making;
    this.#maxSeries = most;
  }

  /** Values in the order of the family's labels. What is found may be kept. */
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

  /** Observations that went to a series called `other` because there were too many; `last`: of those with this last value alone. */
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
      // One that is called so by itself is shared, and what it counts of its own is not folded.
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
