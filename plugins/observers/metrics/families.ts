// Defines the metrics that are counted, except the GenAI metrics. Metrics that are read are defined
// in `gauges.ts`. /metrics, dashboards, alert rules, and the metrics page use all these
// definitions. The values of an open label (models, codes, keys) come from outside, so the number
// of series per family is limited.

export type FamilyType = "counter" | "gauge" | "histogram" | "info";

export interface Family {
  /**
   * Metric name without a suffix. A counter's samples add `_total`, an info's `_info`, and a
   * histogram's `_bucket`.
   */
  readonly name: string;
  readonly type: FamilyType;
  readonly unit?: "seconds" | "bytes" | "usd";
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram's buckets. */
  readonly bounds?: readonly number[];
}

/**
 * Labels whose values come from outside. Above the series limit, their values are combined into
 * `other`.
 */
export const OPEN_LABELS: ReadonlySet<string> = new Set([
  "provider",
  "model",
  "credential",
  "from",
  "to",
  "code",
  "key",
  "label",
  "value",
  "scope",
  "kind",
  "observer",
  "origin",
  "frontend",
  "operation",
  "error_kind",
  "gc_kind",
  "gen_ai_provider_name",
  "gen_ai_request_model",
  "gen_ai_operation_name",
  "gen_ai_tool_name",
  "gen_ai_prompt_name",
]);

/**
 * Buckets for long durations, in seconds. They suit reasoning models, because the buckets of the
 * conventions end at 90 s. The 2 s bound is a service level objective.
 */
const LONG_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900];
/** Buckets for short durations, in seconds. The 20 ms bound is a service level objective. */
const SHORT_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1,
];
const TOKEN_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1];

const TARGET_LABELS = ["provider", "model"] as const;

export const counter = (name: string, help: string, labels: readonly string[] = []): Family => ({
  name,
  type: "counter",
  help,
  labels,
});
const usdCounter = (name: string, help: string, labels: readonly string[] = []): Family => ({
  ...counter(name, help, labels),
  unit: "usd",
});
export const gauge = (name: string, help: string, labels: readonly string[] = []): Family => ({
  name,
  type: "gauge",
  help,
  labels,
});
export const timestampGauge = (
  name: string,
  help: string,
  labels: readonly string[] = [],
): Family => ({
  ...gauge(name, help, labels),
  unit: "seconds",
});
export const bytesGauge = (name: string, help: string, labels: readonly string[] = []): Family => ({
  ...gauge(name, help, labels),
  unit: "bytes",
});
const durationHistogram = (
  name: string,
  help: string,
  labels: readonly string[],
  bounds: readonly number[],
) => ({ name, type: "histogram", unit: "seconds", help, labels, bounds }) as const;

/** Metrics that are updated from records, billing records, and events. */
export const COUNTED_FAMILIES = {
  requests: counter("tollgate_requests", "Completed requests that reached a frontend", [
    "frontend",
    "operation",
    "outcome",
    "status",
  ]),
  requestSeconds: durationHistogram(
    "tollgate_request_duration_seconds",
    "Request duration from the first byte to the end, in seconds",
    ["frontend", "stream"],
    LONG_BUCKETS,
  ),
  overheadSeconds: durationHistogram(
    "tollgate_gateway_overhead_seconds",
    "Gateway overhead in seconds, without waiting for the client's body or for providers",
    ["frontend", "mode"],
    SHORT_BUCKETS,
  ),
  firstToken: durationHistogram(
    "tollgate_time_to_first_token_seconds",
    "Time to first token of streaming calls, in seconds",
    TARGET_LABELS,
    LONG_BUCKETS,
  ),
  calls: counter("tollgate_calls", "Settled calls to providers, one per ledger row", [
    "provider",
    "model",
    "credential",
    "state",
    "fault",
  ]),
  webSocketCalls: counter(
    "tollgate_websocket_calls",
    "Calls over WebSockets of providers. `tollgate_calls` includes them",
    TARGET_LABELS,
  ),
  callSeconds: durationHistogram(
    "tollgate_call_duration_seconds",
    "Duration of provider calls until they are settled, in seconds",
    TARGET_LABELS,
    LONG_BUCKETS,
  ),
  tokenSeconds: {
    name: "tollgate_output_seconds_per_token",
    type: "histogram",
    help: "Time per output token after the first, in seconds",
    labels: TARGET_LABELS,
    bounds: TOKEN_BUCKETS,
  },
  tokens: counter("tollgate_tokens", "Usage in disjoint units", [...TARGET_LABELS, "unit"]),
  reasoning: counter("tollgate_reasoning_tokens", "Reasoning tokens, a part of the output tokens", [
    ...TARGET_LABELS,
  ]),
  spend: usdCounter(
    "tollgate_spend_usd",
    "Cost of settled calls in US dollars, from the ledger",
    TARGET_LABELS,
  ),
  adjustments: usdCounter("tollgate_adjustments_usd", "Ledger adjustments in US dollars, by sign", [
    "direction",
  ]),
  unpriced: counter("tollgate_calls_unpriced", "Calls without a known price", TARGET_LABELS),
  estimated: counter("tollgate_calls_estimated", "Calls with an estimated cost", TARGET_LABELS),
  fallbacks: counter("tollgate_fallbacks", "Failed calls that were followed by another call", [
    "from",
    "to",
    "error_kind",
  ]),
  hedges: counter("tollgate_hedges", "Hedge calls, by outcome", [...TARGET_LABELS, "outcome"]),
  hedgeSpend: usdCounter(
    "tollgate_hedge_spend_usd",
    "Cost of calls that lost to a hedge, in US dollars",
    TARGET_LABELS,
  ),
  translationWarnings: counter(
    "tollgate_translation_warnings",
    "Fields that a translation dropped or approximated",
    ["code"],
  ),
  rejections: counter("tollgate_rejections", "Requests rejected before a provider was called", [
    "code",
  ]),
  keySpend: usdCounter("tollgate_key_spend_usd", "Cost of settled calls in US dollars, by key", [
    "key",
  ]),
  labelSpend: usdCounter(
    "tollgate_label_spend_usd",
    "Cost of settled calls in US dollars, by label",
    ["label", "value"],
  ),
  jobs: counter("tollgate_jobs_ended", "Jobs that this gateway ended, by kind and status", [
    "kind",
    "status",
  ]),
  workerExits: counter("tollgate_worker_exits", "Unexpected exits of worker processes"),
  reloads: counter("tollgate_config_reloads", "Config reloads, by success", ["ok"]),
} as const satisfies Readonly<Record<string, Family>>;
