// Series that are updated from records, billing records, and events. They survive a reload, and the
// number of their series is bounded.
import { COUNTED_FAMILIES, type Family } from "./families.ts";
import { genAiFamilies, type GenAiSeries } from "./genai-families.ts";
import {
  createCounters,
  createHistograms,
  type Counter,
  type Histogram,
  type Series,
} from "./series.ts";

export type CountedSeries = {
  readonly [K in keyof typeof COUNTED_FAMILIES]: Series<
    (typeof COUNTED_FAMILIES)[K] extends { type: "histogram" } ? Histogram : Counter
  >;
};

const createSeries = (family: Family): Series<Counter> | Series<Histogram> =>
  family.type === "histogram" ? createHistograms(family) : createCounters(family);

export function createCountedSeries(): CountedSeries {
  const own = Object.fromEntries(
    Object.entries(COUNTED_FAMILIES).map(([name, family]) => [name, createSeries(family)]),
  ) as CountedSeries;
  // Series with known label values start at 0.
  own.workerExits.get();
  for (const ok of ["true", "false"]) own.reloads.get(ok);
  for (const direction of ["up", "down"]) own.adjustments.get(direction);
  return own;
}

export function createGenAiSeries(): GenAiSeries {
  const of = genAiFamilies;
  return {
    duration: createHistograms(of.duration),
    firstChunk: createHistograms(of.firstChunk),
    tokens: createHistograms(of.tokens),
    cacheRead: createCounters(of.cacheRead),
    cacheWrite: createCounters(of.cacheWrite),
    reasoning: createCounters(of.reasoning),
  };
}
