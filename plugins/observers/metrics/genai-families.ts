// The GenAI conventions' metrics as this exposition has them: dots become underscores, a unit and a suffix come behind. What is
// spelled twice is counted once and written twice.
import {
  GEN_AI_ATTRIBUTES,
  GEN_AI_METRICS,
  namesOf,
  type GenAiName,
  type Spelling,
} from "../genai.ts";
import type { Family } from "./families.ts";
import type { GenAiSeries } from "./counted.ts";
import type { Count, Histogram, Series } from "./series.ts";

const flat = (name: string): string => name.replaceAll(".", "_");
const { operation, provider, requestModel, tokenType, errorType } = GEN_AI_ATTRIBUTES;
const LABELS = [operation, provider, requestModel].map(({ latest }) => flat(latest));
const TYPE = flat(tokenType.latest);

/** 0.01 s doubled, and 4ⁿ tokens: the conventions' own. */
const SECONDS = Array.from({ length: 14 }, (_, i) => 2 ** i / 100);
const TOKENS = Array.from({ length: 14 }, (_, i) => 4 ** i);

const times = (help: string, ...more: readonly string[]): Family => ({
  name: "",
  type: "histogram",
  unit: "seconds",
  help,
  labels: [...LABELS, ...more],
  bounds: SECONDS,
});
const sizes = (help: string, ...more: readonly string[]): Family => ({
  name: "",
  type: "histogram",
  help,
  labels: [...LABELS, ...more],
  bounds: TOKENS,
});
const counter = (help: string): Family => ({ name: "", type: "counter", help, labels: LABELS });

/** Their names are put in when they are written. */
export const genAiFamilies = {
  duration: times("How long calls to models took", flat(errorType.latest)),
  firstChunk: times("How long streaming calls took to the first piece"),
  tokens: sizes("Tokens of a call", TYPE),
  cacheRead: counter("Input tokens that were read from a cache"),
  cacheWrite: counter("Input tokens that were written to a cache"),
  reasoning: counter("Output tokens of thought"),
} as const;

/** One of them under one of its names. `only`: the series with this last value, which then is no label. */
export interface NamedSeries {
  readonly family: Family;
  readonly series: Series<Histogram> | Series<Count>;
  readonly only?: string;
  /** A histogram's sum as a counter. */
  readonly sum?: true;
}

const written: readonly [
  of: GenAiName,
  series: keyof GenAiSeries,
  more: { only?: string; sum?: true },
][] = [
  [GEN_AI_METRICS.duration, "duration", {}],
  [GEN_AI_METRICS.firstChunk, "firstChunk", {}],
  [GEN_AI_METRICS.tokenUsage, "tokens", {}],
  [GEN_AI_METRICS.inputTokens, "tokens", { only: "input" }],
  [GEN_AI_METRICS.outputTokens, "tokens", { only: "output" }],
  [GEN_AI_METRICS.usedInput, "tokens", { only: "input", sum: true }],
  [GEN_AI_METRICS.usedOutput, "tokens", { only: "output", sum: true }],
  [GEN_AI_METRICS.usedCacheRead, "cacheRead", {}],
  [GEN_AI_METRICS.usedCacheWrite, "cacheWrite", {}],
  [GEN_AI_METRICS.usedReasoning, "reasoning", {}],
];

export function named(genAi: GenAiSeries, spellings: readonly Spelling[]): readonly NamedSeries[] {
  return written.flatMap(([name, of, more]) => {
    const series = genAi[of];
    const { labels, unit, type, ...rest } = series.family;
    return namesOf(name, spellings).map((full) => ({
      ...more,
      series,
      family: {
        ...rest,
        type: more.sum ? ("counter" as const) : type,
        name: `${flat(full)}${unit === undefined ? "" : `_${unit}`}`,
        ...(unit !== undefined && { unit }),
        labels: more.only === undefined ? labels : labels.slice(0, -1),
      },
    }));
  });
}
