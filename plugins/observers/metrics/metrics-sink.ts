// Receives metrics one family after the other. Implemented by the text of a scrape and by the
// messages for a collector.
import type { Family } from "./families.ts";
import type { Counter, Histogram, Series } from "./series.ts";

/** A sample that is read rather than counted: the values of its labels, and its value. */
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
