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

type Tree<T> = Map<string, Tree<T> | T>;

export class Series<T extends Count | Histogram> {
  readonly family: Family;
  readonly all: { readonly values: readonly string[]; readonly of: T }[] = [];
  /** Observations that went to a series called `other` because there were too many. */
  folded = 0;
  readonly #create: () => T;
  readonly #most: number;
  readonly #tree: Tree<T> = new Map();
  #own = 0;
  /** What was found last: mostly the next observation is of the same. */
  #last: readonly string[] = [];
  #lastOf: T | undefined;

  constructor(family: Family, create: () => T, most = MOST_SERIES) {
    this.family = family;
    this.#create = create;
    this.#most = most;
  }

  /** Values in the order of the family's labels. */
  of(...values: readonly string[]): T {
    if (this.#lastOf && same(values, this.#last)) return this.#lastOf;
    const found = this.#find(values);
    if (found) {
      this.#last = values;
      return (this.#lastOf = found);
    }
    if (this.#own < this.#most) {
      this.#own++;
      return this.#make(values);
    }
    this.folded++;
    const folded = values.map((value, i) =>
      OPEN_LABELS.has(this.family.labels[i]!) ? OTHER : value,
    );
    return this.#find(folded) ?? this.#make(folded);
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
    const made = this.#create();
    this.all.push({ values, of: made });
    let at = this.#tree;
    for (let i = 0; i < values.length - 1; i++) {
      let next = at.get(values[i]!) as Tree<T> | undefined;
      if (!next) at.set(values[i]!, (next = new Map()));
      at = next;
    }
    const last = values.at(-1);
    if (last !== undefined) at.set(last, made);
    return made;
  }
}

function same(values: readonly string[], others: readonly string[]): boolean {
  for (let i = 0; i < values.length; i++) if (values[i] !== others[i]) return false;
  return values.length === others.length;
}

export const counts = (family: Family, most?: number): Series<Count> =>
  new Series(family, () => new Count(), most);

export const histograms = (family: Family, most?: number): Series<Histogram> =>
  new Series(family, () => new Histogram(family.bounds!), most);
