// What metrics are told to, one family after the other: the text of a scrape, or messages for a collector.
import type { Family } from "./families.ts";
import type { Counter, Histogram, Series } from "./series.ts";

/** A sample that is not counted but read: the values of its labels, and what it is. */
export type Sample = readonly [labels: readonly string[], value: number | bigint];
/** How long something took, as readings say it. */
export interface Distribution {
  readonly count: number;
  readonly sum: number;
  readonly buckets: readonly (readonly [bound: number, count: number])[];
}

export interface MetricsSink {
  /** `as`: under another name than its own. */
  writeSeries(series: Series<Counter> | Series<Histogram>, as?: Family): void;
  /** The series whose last label is this value, without that label; `sum`: as counters of their sums. */
  writeFiltered(series: Series<Histogram>, as: Family, only: string, sum?: boolean): void;
  writeSamples(family: Family, samples: readonly Sample[]): void;
  writeDistribution(family: Family, of: Distribution): void;
}
