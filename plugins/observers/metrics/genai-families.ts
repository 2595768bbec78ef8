// Metrics of the GenAI conventions as Prometheus names: dots become underscores, and the unit and
// suffix are appended. A metric with two spellings is counted once and written under both names.
import {
  GEN_AI_ATTRIBUTES,
  GEN_AI_METRICS,
  MCP_METRICS,
  namesOf,
  type VersionedName,
  type NamingVersion,
} from "../genai-names.ts";
import type { Family } from "./families.ts";
import type { Counter, Histogram, Series } from "./series.ts";

/**
 * Series of the GenAI conventions. Each series is one instrument, which is written under each of
 * its names.
 */
export interface GenAiSeries {
  readonly duration: Series<Histogram>;
  readonly firstChunk: Series<Histogram>;
  readonly tokens: Series<Histogram>;
  readonly cacheRead: Series<Counter>;
  readonly cacheWrite: Series<Counter>;
  readonly reasoning: Series<Counter>;
  readonly mcpServer: Series<Histogram>;
  readonly mcpClient: Series<Histogram>;
}

const toUnderscores = (name: string): string => name.replaceAll(".", "_");
const { operation, provider, requestModel, tokenType, errorType } = GEN_AI_ATTRIBUTES;
const { mcpMethod, mcpVersion, toolName, promptName } = GEN_AI_ATTRIBUTES;
const COMMON_LABELS = [operation, provider, requestModel].map(({ latest }) =>
  toUnderscores(latest),
);
const TOKEN_TYPE_LABEL = toUnderscores(tokenType.latest);

/**
 * Bucket bounds of the conventions: 0.01 s doubled 13 times for durations, and powers of 4 for
 * tokens.
 */
const SECONDS_BUCKETS = Array.from({ length: 14 }, (_, i) => 2 ** i / 100);
const TOKEN_BUCKETS = Array.from({ length: 14 }, (_, i) => 4 ** i);

/** Bucket bounds of the conventions for MCP, in seconds. */
const MCP_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

const mcpFamily = (help: string, labels: readonly { readonly latest: string }[]): Family => ({
  name: "",
  type: "histogram",
  unit: "seconds",
  help,
  labels: labels.map(({ latest }) => toUnderscores(latest)),
  bounds: MCP_BUCKETS,
});
const durationFamily = (help: string, ...more: readonly string[]): Family => ({
  name: "",
  type: "histogram",
  unit: "seconds",
  help,
  labels: [...COMMON_LABELS, ...more],
  bounds: SECONDS_BUCKETS,
});
const tokenFamily = (help: string, ...more: readonly string[]): Family => ({
  name: "",
  type: "histogram",
  help,
  labels: [...COMMON_LABELS, ...more],
  bounds: TOKEN_BUCKETS,
});
const counterFamily = (help: string): Family => ({
  name: "",
  type: "counter",
  help,
  labels: COMMON_LABELS,
});

/** Families without names. `nameSeries` adds the names when they are written. */
export const genAiFamilies = {
  duration: durationFamily("Duration of model calls", toUnderscores(errorType.latest)),
  firstChunk: durationFamily("Time to first chunk of streaming calls"),
  tokens: tokenFamily("Tokens per call", TOKEN_TYPE_LABEL),
  cacheRead: counterFamily("Input tokens read from a cache"),
  cacheWrite: counterFamily("Input tokens written to a cache"),
  reasoning: counterFamily("Reasoning tokens in the output"),
  mcpServer: mcpFamily("Duration of MCP requests of clients", [
    mcpMethod,
    mcpVersion,
    toolName,
    promptName,
    errorType,
  ]),
  mcpClient: mcpFamily("Duration of tool calls at MCP servers", [mcpMethod, toolName, errorType]),
} as const;

/**
 * A series under one of its names. With `lastLabelValue`, only the series with this last label
 * value are written, without that label.
 */
export interface NamedSeries {
  readonly family: Family;
  readonly series: Series<Histogram> | Series<Counter>;
  readonly lastLabelValue?: string;
  /** Whether the histogram's sum is written as a counter. */
  readonly asSumCounter?: true;
}

const SERIES_NAMES: readonly [
  of: VersionedName,
  series: keyof GenAiSeries,
  more: { lastLabelValue?: string; asSumCounter?: true },
][] = [
  [GEN_AI_METRICS.duration, "duration", {}],
  [GEN_AI_METRICS.firstChunk, "firstChunk", {}],
  [GEN_AI_METRICS.tokenUsage, "tokens", {}],
  [GEN_AI_METRICS.inputTokens, "tokens", { lastLabelValue: "input" }],
  [GEN_AI_METRICS.outputTokens, "tokens", { lastLabelValue: "output" }],
  [GEN_AI_METRICS.usedInput, "tokens", { lastLabelValue: "input", asSumCounter: true }],
  [GEN_AI_METRICS.usedOutput, "tokens", { lastLabelValue: "output", asSumCounter: true }],
  [GEN_AI_METRICS.usedCacheRead, "cacheRead", {}],
  [GEN_AI_METRICS.usedCacheWrite, "cacheWrite", {}],
  [GEN_AI_METRICS.usedReasoning, "reasoning", {}],
  [MCP_METRICS.server, "mcpServer", {}],
  [MCP_METRICS.client, "mcpClient", {}],
];

export function nameSeries(
  genAi: GenAiSeries,
  spellings: readonly NamingVersion[],
): readonly NamedSeries[] {
  return SERIES_NAMES.flatMap(([name, of, more]) => {
    const series = genAi[of];
    const { labels, unit, type, ...rest } = series.family;
    return namesOf(name, spellings).map((full) => ({
      ...more,
      series,
      family: {
        ...rest,
        type: more.asSumCounter ? ("counter" as const) : type,
        name: `${toUnderscores(full)}${unit === undefined ? "" : `_${unit}`}`,
        ...(unit !== undefined && { unit }),
        labels: more.lastLabelValue === undefined ? labels : labels.slice(0, -1),
      },
    }));
  });
}
