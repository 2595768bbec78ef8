// What is counted as records, bills and notices come: it outlives a reload, and everything in it has a bound.
import { COUNTED, type Family } from "./families.ts";
import { genAiFamilies } from "./genai-families.ts";
import { counts, histograms, type Count, type Histogram, type Series } from "./series.ts";

export type CountedSeries = {
  readonly [K in keyof typeof COUNTED]: Series<
    (typeof COUNTED)[K] extends { type: "histogram" } ? Histogram : Count
  >;
};

const made = (family: Family): Series<Count> | Series<Histogram> =>
  family.type === "histogram" ? histograms(family) : counts(family);

/** In the words of the GenAI conventions: one instrument each, written under every name that it has. */
export interface GenAiSeries {
  readonly duration: Series<Histogram>;
  readonly firstChunk: Series<Histogram>;
  readonly tokens: Series<Histogram>;
  readonly cacheRead: Series<Count>;
  readonly cacheWrite: Series<Count>;
  readonly reasoning: Series<Count>;
}

export function createCounted(): CountedSeries {
  const own = Object.fromEntries(
    Object.entries(COUNTED).map(([name, family]) => [name, made(family)]),
  ) as CountedSeries;
  // What is known to exist begins at 0.
  own.workerExits.of();
  for (const ok of ["true", "false"]) own.reloads.of(ok);
  for (const direction of ["up", "down"]) own.adjustments.of(direction);
  return own;
}

export function createGenAi(): GenAiSeries {
  const of = genAiFamilies;
  return {
    duration: histograms(of.duration),
    firstChunk: histograms(of.firstChunk),
    tokens: histograms(of.tokens),
    cacheRead: counts(of.cacheRead),
    cacheWrite: counts(of.cacheWrite),
    reasoning: counts(of.reasoning),
  };
}
