// The series of one family: found by the values of its labels, at most so many of them. Beyond that the values that come from
// outside fold into `other`, so that no client can make series, and sums stay what they are.
import { type Family, OPEN_LABELS } from "./families.ts";

/** In one family, without those that are called `other`. */
export const MOST_SERIES = 2_000;
export const OTHER = "other";

/** A number that only counts up; money counts in nano-dollars and stays exact. */
export class Count {
  value = 0;
  nano = 0n;

  add(more = 1): void {
    this.value += more;
  }

  pay(nano: bigint): void {
    this.nano += nano;
  }
}

/** What those have of a shared series that are too many: however long it is kept, each observation is still counted as folded. */
interface Beyond {
  readonly times: number;
}

class CountBeyond extends Count implements Beyond {
  readonly #into: Count;
  times = 0;

  constructor(into: Count) {
    super();
    this.#into = into;
  }

  override add(more?: number): void {
    this.times++;
    this.#into.add(more);
  }

  override pay(nano: bigint): void {
    this.times++;
    this.#into.pay(nano);
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

class HistogramBeyond extends Histogram implements Beyond {
  readonly #into: Histogram;
  times = 0;

  constructor(into: Histogram) {
    super([]);
    this.#into = into;
  }

  override observe(value: number, trace?: string, at?: number): void {
    this.times++;
    this.#into.observe(value, trace, at);
  }
}

/** How a series is made, and what of it those have that are beyond the cap. */
interface Making<T> {
  readonly own: () => T;
  readonly beyond: (into: T) => T & Beyond;
}

type Tree<T> = Map<string, Tree<T> | T>;

export class Series<T extends Count | Histogram> {
  readonly family: Family;
  readonly all: { readonly values: readonly string[]; readonly of: T }[] = [];
  readonly #making: Making<T>;
  readonly #most: number;
  readonly #tree: Tree<T> = new Map();
  /** By the values that are left of theirs: no client has a say in how many there are. */
  readonly #beyond = new Map<string, { readonly last: string; readonly of: T & Beyond }>();
  #own = 0;
  /** What was found last: mostly the next observation is of the same. */
  #last: readonly string[] = [];
  #lastOf: T | undefined;

  constructor(family: Family, making: Making<T>, most = MOST_SERIES) {
    this.family = family;
    this.#making = making;
    this.#most = most;
  }

  /** Values in the order of the family's labels. What is found may be kept. */
  of(...values: readonly string[]): T {
    if (this.#lastOf && same(values, this.#last)) return this.#lastOf;
    const found = this.#find(values);
    if (found) {
      this.#last = values;
      return (this.#lastOf = found);
    }
    if (this.#own < this.#most) {
      this.#own++;
      const made = this.#make(values);
      this.#put(values, made);
      return made;
    }
    return this.#fold(
      values.map((value, i) => (OPEN_LABELS.has(this.family.labels[i]!) ? OTHER : value)),
    );
  }

  /** Observations that went to a series called `other` because there were too many; `last`: of those with this last value alone. */
  folded(last?: string): number {
    let all = 0;
    for (const beyond of this.#beyond.values())
      if (last === undefined || beyond.last === last) all += beyond.of.times;
    return all;
  }

  #fold(values: readonly string[]): T {
    const name = values.join("\n");
    let beyond = this.#beyond.get(name);
    if (!beyond) {
      // One that is called so by itself is shared, and what it counts of its own is not folded.
      const into = this.#find(values) ?? this.#make(values);
      beyond = { last: values.at(-1) ?? "", of: this.#making.beyond(into) };
      this.#beyond.set(name, beyond);
    }
    return beyond.of;
  }

  #find(values: readonly string[]): T | undefined {
    let at: Tree<T> | T | undefined = this.#tree;
    for (const value of values) {
      at = (at as Tree<T>).get(value);
      if (at === undefined) return undefined;
    }
    return values.length === 0 ? this.all[0]?.of : (at as T);
  }

  #make(values: readonly string[]): T {
    const of = this.#making.own();
    this.all.push({ values, of });
    return of;
  }

  #put(values: readonly string[], of: T): void {
    let at = this.#tree;
    for (let i = 0; i < values.length - 1; i++) {
      let next = at.get(values[i]!) as Tree<T> | undefined;
      if (!next) at.set(values[i]!, (next = new Map()));
      at = next;
    }
    const last = values.at(-1);
    if (last !== undefined) at.set(last, of);
  }
}

function same(values: readonly string[], others: readonly string[]): boolean {
  for (let i = 0; i < values.length; i++) if (values[i] !== others[i]) return false;
  return values.length === others.length;
}

const COUNT: Making<Count> = {
  own: () => new Count(),
  beyond: (into) => new CountBeyond(into),
};

export const counts = (family: Family, most?: number): Series<Count> =>
  new Series(family, COUNT, most);

export const histograms = (family: Family, most?: number): Series<Histogram> =>
  new Series(
    family,
    {
      own: () => new Histogram(family.bounds!),
      beyond: (into) => new HistogramBeyond(into),
    },
    most,
  );
