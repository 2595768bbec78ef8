// Defines every metric of the gateway except the GenAI ones. /metrics, dashboards, alert rules, and
// the metrics page all use these definitions. The values of an open label come from outside
// (models, codes, keys), so the number of series per family is capped.

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
 * Labels whose values come from outside. Beyond the series limit their values fold into `other`.
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
  "observer",
  "origin",
  "frontend",
  "operation",
  "error_kind",
  "gc_kind",
  "gen_ai_provider_name",
  "gen_ai_request_model",
  "gen_ai_operation_name",
]);

/**
 * Long durations in seconds, sized for reasoning models, since the conventions' buckets end at 90
 * s. The 2 s bound is a service level objective.
 */
const LONG_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900];
/** Short durations in seconds. The 20 ms bound is a service level objective. */
const SHORT_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1,
];
const TOKEN_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1];

const TARGET_LABELS = ["provider", "model"] as const;
const PROCESS_LABELS = ["pid"] as const;

const counter = (name: string, help: string, labels: readonly string[] = []): Family => ({
  name,
  type: "counter",
  help,
  labels,
});
const usdCounter = (name: string, help: string, labels: readonly string[] = []): Family => ({
  ...counter(name, help, labels),
  unit: "usd",
});
const gauge = (name: string, help: string, labels: readonly string[] = []): Family => ({
  name,
  type: "gauge",
  help,
  labels,
});
const timestampGauge = (name: string, help: string, labels: readonly string[] = []): Family => ({
  ...gauge(name, help, labels),
  unit: "seconds",
});
const bytesGauge = (name: string, help: string, labels: readonly string[] = []): Family => ({
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
  workerExits: counter("tollgate_worker_exits", "Unexpected exits of worker processes"),
  reloads: counter("tollgate_config_reloads", "Config reloads, by success", ["ok"]),
} as const satisfies Readonly<Record<string, Family>>;

/** Metrics whose values are read at the time of a scrape. */
export const READ_FAMILIES = {
  inFlight: gauge("tollgate_in_flight", "Client requests in progress", ["frontend"]),
  cooldown: gauge("tollgate_provider_cooldown", "Targets in cooldown per credential", [
    "provider",
    "credential",
  ]),
  breakers: gauge(
    "tollgate_provider_breakers",
    "Targets in cooldown or recovering per credential, by state",
    ["provider", "credential", "state"],
  ),
  cooldownEnd: timestampGauge(
    "tollgate_provider_cooldown_end_timestamp_seconds",
    "End of the last cooldown of a credential's targets, in Unix seconds, by error kind",
    ["provider", "credential", "error_kind"],
  ),
  rejecting: gauge(
    "tollgate_provider_rejecting",
    "Whether requests are rejected without a call because the provider reported that the account's limit is used up",
    ["provider", "credential"],
  ),
  pluginUnreachable: gauge(
    "tollgate_plugin_unreachable",
    "Gateway processes that cannot reach an out-of-process plugin, by effect on requests",
    ["plugin", "on_failure"],
  ),
  sockets: gauge("tollgate_pool_sockets", "Connections to providers", ["origin", "state"]),
  ready: gauge("tollgate_ready", "Whether /readyz reports ready"),
  ledgerUp: gauge("tollgate_ledger_up", "Whether the ledger accepts writes"),
  ledgerQueue: gauge("tollgate_ledger_queue", "Ledger commands waiting for a batch"),
  commitSeconds: {
    name: "tollgate_ledger_commit_seconds",
    type: "histogram",
    unit: "seconds",
    help: "Time until a ledger batch is durable, including the sync, in seconds",
    labels: [],
  },
  ledgerBytes: bytesGauge("tollgate_ledger_bytes", "Size of the ledger on disk, in bytes"),
  oldest: timestampGauge(
    "tollgate_ledger_oldest_timestamp_seconds",
    "Time of the oldest ledger row, in Unix seconds",
  ),
  diskFree: bytesGauge(
    "tollgate_store_disk_free_bytes",
    "Space the ledger can still grow into, in bytes",
  ),
  fleetNodes: gauge("tollgate_fleet_nodes", "Gateways that share the store, by state", ["state"]),
  clockAhead: timestampGauge(
    "tollgate_store_clock_ahead_seconds",
    "Clock difference between this gateway and the store, in seconds; positive if " +
      "the gateway is ahead",
  ),
  storeLag: timestampGauge(
    "tollgate_store_lag_seconds",
    "Time for which this gateway has not received key and account changes, in seconds",
  ),
  reloadOk: gauge("tollgate_config_reload_success", "Whether the last config reload succeeded"),
  reloadAt: timestampGauge(
    "tollgate_config_reload_last_success_timestamp_seconds",
    "Time of the last successful config reload, in Unix seconds",
  ),
  generation: gauge("tollgate_config_generation", "Current config generation"),
  listAt: timestampGauge(
    "tollgate_model_list_last_success_timestamp_seconds",
    "Last successful refresh of a provider's model list, in Unix seconds",
    ["provider"],
  ),
  listFailures: gauge(
    "tollgate_model_list_failures",
    "Consecutive failed refreshes of a provider's model list",
    ["provider"],
  ),
  certificateExpires: timestampGauge(
    "tollgate_certificate_expiry_timestamp_seconds",
    "Earliest expiry of a listener's certificates, in Unix seconds",
    ["listener"],
  ),
  policyExpires: timestampGauge(
    "tollgate_policy_expiry_timestamp_seconds",
    "Date by which a provider's data policy must be reviewed, in Unix seconds",
    ["provider"],
  ),
  modelRetires: timestampGauge(
    "tollgate_model_retirement_timestamp_seconds",
    "Retirement date of a model, in Unix seconds",
    ["model"],
  ),
  budgetLimit: {
    ...gauge("tollgate_budget_limit_usd", "Budget limit in US dollars", ["scope", "per"]),
    unit: "usd",
  },
  budgetUsed: {
    ...gauge(
      "tollgate_budget_used_usd",
      "Budget spent and reserved for open calls, in US dollars",
      ["scope", "per"],
    ),
    unit: "usd",
  },
  budgetResets: timestampGauge(
    "tollgate_budget_resets_timestamp_seconds",
    "Next reset of a budget, in Unix seconds",
    ["scope", "per"],
  ),
  workers: gauge("tollgate_workers", "Processes that serve clients"),
  unresponsive: gauge("tollgate_processes_unresponsive", "Processes whose stats are outdated"),
  dropped: counter(
    "tollgate_observer_dropped_records",
    "Records dropped because an observer was too slow",
    ["observer"],
  ),
  overflow: counter(
    "tollgate_series_overflow",
    'Observations added to the series "other" because the metric reached its maximum ' +
      "number of series",
    ["metric"],
  ),
  build: {
    name: "tollgate_build",
    type: "info",
    help: "Tollgate and Node.js versions",
    labels: ["version", "node"],
  },
  cpu: {
    ...counter("process_cpu_seconds", "User and system CPU time, in seconds", PROCESS_LABELS),
    unit: "seconds",
  },
  rss: bytesGauge("process_resident_memory_bytes", "Resident memory, in bytes", PROCESS_LABELS),
  started: timestampGauge(
    "process_start_time_seconds",
    "Start time of the process, in Unix seconds",
    PROCESS_LABELS,
  ),
  files: gauge("process_open_fds", "Open file descriptors", PROCESS_LABELS),
  loopDelay: timestampGauge(
    "nodejs_eventloop_delay_seconds",
    "Event loop delay in recent seconds, in seconds",
    [...PROCESS_LABELS, "stat"],
  ),
  heapUsed: bytesGauge("nodejs_heap_size_used_bytes", "V8 heap in use, in bytes", PROCESS_LABELS),
  heapTotal: bytesGauge("nodejs_heap_size_total_bytes", "V8 heap size, in bytes", PROCESS_LABELS),
  external: bytesGauge(
    "nodejs_external_memory_bytes",
    "Memory of V8 objects outside the heap, in bytes",
    [...PROCESS_LABELS],
  ),
  gcSeconds: {
    ...counter("nodejs_gc_seconds", "Time spent in garbage collection, in seconds", [
      ...PROCESS_LABELS,
      "gc_kind",
    ]),
    unit: "seconds",
  },
  gcRuns: counter("nodejs_gc_runs", "Garbage collections", [...PROCESS_LABELS, "gc_kind"]),
} as const satisfies Readonly<Record<string, Family>>;
