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
  requests: counter("tollgate_requests", "Requests that reached a frontend, when they were over", [
    "frontend",
    "operation",
    "outcome",
    "status",
  ]),
  requestSeconds: durationHistogram(
    "tollgate_request_duration_seconds",
    "From a request's first byte to its end",
    ["frontend", "stream"],
    LONG_BUCKETS,
  ),
  overheadSeconds: durationHistogram(
    "tollgate_gateway_overhead_seconds",
    "The gateway's own time: what is neither waiting for the client's body nor for a provider's answer",
    ["frontend", "mode"],
    SHORT_BUCKETS,
  ),
  firstToken: durationHistogram(
    "tollgate_time_to_first_token_seconds",
    "From a streaming call's beginning to the first content of its answer",
    TARGET_LABELS,
    LONG_BUCKETS,
  ),
  calls: counter("tollgate_calls", "Calls to providers, each a row of the ledger, when settled", [
    "provider",
    "model",
    "credential",
    "state",
    "fault",
  ]),
  callSeconds: durationHistogram(
    "tollgate_call_duration_seconds",
    "From a call's beginning to its bill",
    TARGET_LABELS,
    LONG_BUCKETS,
  ),
  tokenSeconds: {
    name: "tollgate_output_seconds_per_token",
    type: "histogram",
    help: "Seconds for each token behind the first content",
    labels: TARGET_LABELS,
    bounds: TOKEN_BUCKETS,
  },
  tokens: counter("tollgate_tokens", "What was used, in units that do not overlap", [
    ...TARGET_LABELS,
    "unit",
  ]),
  reasoning: counter("tollgate_reasoning_tokens", "Tokens of thought; they lie inside output", [
    ...TARGET_LABELS,
  ]),
  spend: usdCounter(
    "tollgate_spend_usd",
    "What settled calls cost, as the ledger has it",
    TARGET_LABELS,
  ),
  adjustments: usdCounter("tollgate_adjustments_usd", "Corrections in the ledger, by their sign", [
    "direction",
  ]),
  unpriced: counter("tollgate_calls_unpriced", "Calls without a known price", TARGET_LABELS),
  estimated: counter("tollgate_calls_estimated", "Calls whose cost is an estimate", TARGET_LABELS),
  fallbacks: counter("tollgate_fallbacks", "Failed calls behind which another one was made", [
    "from",
    "to",
    "error_kind",
  ]),
  hedges: counter("tollgate_hedges", "Calls made beside one without content, by how they ended", [
    ...TARGET_LABELS,
    "outcome",
  ]),
  hedgeSpend: usdCounter(
    "tollgate_hedge_spend_usd",
    "Cost of calls that lost a hedge",
    TARGET_LABELS,
  ),
  translationWarnings: counter(
    "tollgate_translation_warnings",
    "What translations could not carry",
    ["code"],
  ),
  rejections: counter(
    "tollgate_rejections",
    "Requests that were refused before a provider was asked",
    ["code"],
  ),
  keySpend: usdCounter("tollgate_key_spend_usd", "What settled calls of a key cost", ["key"]),
  labelSpend: usdCounter("tollgate_label_spend_usd", "What settled calls with a label cost", [
    "label",
    "value",
  ]),
  workerExits: counter("tollgate_worker_exits", "Worker processes that ended by themselves"),
  reloads: counter("tollgate_config_reloads", "Reloads, by whether the config was taken", ["ok"]),
} as const satisfies Readonly<Record<string, Family>>;

/** Metrics whose values are read at the time of a scrape. */
export const READ_FAMILIES = {
  inFlight: gauge("tollgate_in_flight", "Requests of clients under way", ["frontend"]),
  cooldown: gauge(
    "tollgate_provider_cooldown",
    "Targets of a credential in cooldown, which are tried last",
    ["provider", "credential"],
  ),
  breakers: gauge(
    "tollgate_provider_breakers",
    "Targets of a credential in cooldown or recovering, by state",
    ["provider", "credential", "state"],
  ),
  cooldownEnd: timestampGauge(
    "tollgate_provider_cooldown_end_timestamp_seconds",
    "When the last cooldown of a credential's targets ends, by the kind of failure",
    ["provider", "credential", "error_kind"],
  ),
  rejecting: gauge(
    "tollgate_provider_rejecting",
    "Whether requests are rejected without a call because the provider reported that the account's limit is used up",
    ["provider", "credential"],
  ),
  pluginUnreachable: gauge(
    "tollgate_plugin_unreachable",
    "Processes of the gateway that cannot reach a plugin in another process, by what happens to its requests",
    ["plugin", "on_failure"],
  ),
  sockets: gauge("tollgate_pool_sockets", "Connections to providers", ["origin", "state"]),
  ready: gauge("tollgate_ready", "Whether /readyz reports ready"),
  ledgerUp: gauge("tollgate_ledger_up", "Whether the ledger takes rows"),
  ledgerQueue: gauge("tollgate_ledger_queue", "Commands that wait for their batch"),
  commitSeconds: {
    name: "tollgate_ledger_commit_seconds",
    type: "histogram",
    unit: "seconds",
    help: "How long a batch took until it was durable, its sync included",
    labels: [],
  },
  ledgerBytes: bytesGauge("tollgate_ledger_bytes", "What the ledger takes where it lies"),
  oldest: timestampGauge(
    "tollgate_ledger_oldest_timestamp_seconds",
    "When its oldest row was written",
  ),
  diskFree: bytesGauge("tollgate_store_disk_free_bytes", "By how much the ledger could still grow"),
  fleetNodes: gauge("tollgate_fleet_nodes", "Gateways that share the store, by their state", [
    "state",
  ]),
  clockAhead: timestampGauge(
    "tollgate_store_clock_ahead_seconds",
    "How far this gateway's clock is ahead of the store's",
  ),
  storeLag: timestampGauge(
    "tollgate_store_lag_seconds",
    "For how long this gateway has missed changes of keys or accounts",
  ),
  reloadOk: gauge("tollgate_config_reload_success", "Whether the last reload was taken"),
  reloadAt: timestampGauge(
    "tollgate_config_reload_last_success_timestamp_seconds",
    "Since when the current generation answers",
  ),
  generation: gauge("tollgate_config_generation", "The generation that answers now"),
  listAt: timestampGauge(
    "tollgate_model_list_last_success_timestamp_seconds",
    "When a provider last said which models it has",
    ["provider"],
  ),
  listFailures: gauge("tollgate_model_list_failures", "How often in a row it did not say so", [
    "provider",
  ]),
  certificateExpires: timestampGauge(
    "tollgate_certificate_expiry_timestamp_seconds",
    "When the first certificate of a listener expires",
    ["listener"],
  ),
  policyExpires: timestampGauge(
    "tollgate_policy_expiry_timestamp_seconds",
    "When what is known of a provider's handling of data has to be read again",
    ["provider"],
  ),
  modelRetires: timestampGauge(
    "tollgate_model_retirement_timestamp_seconds",
    "When a model goes away",
    ["model"],
  ),
  budgetLimit: { ...gauge("tollgate_budget_limit_usd", "A budget", ["scope", "per"]), unit: "usd" },
  budgetUsed: {
    ...gauge("tollgate_budget_used_usd", "What a budget has paid and holds for calls under way", [
      "scope",
      "per",
    ]),
    unit: "usd",
  },
  budgetResets: timestampGauge("tollgate_budget_resets_timestamp_seconds", "When it begins anew", [
    "scope",
    "per",
  ]),
  workers: gauge("tollgate_workers", "Processes that answer clients"),
  unresponsive: gauge("tollgate_processes_unresponsive", "Processes whose readings are not of now"),
  dropped: counter(
    "tollgate_observer_dropped_records",
    "Records that an observer was too slow for",
    ["observer"],
  ),
  overflow: counter(
    "tollgate_series_overflow",
    "Observations that went to a series called other because their metric has as many as it may",
    ["metric"],
  ),
  build: { name: "tollgate_build", type: "info", help: "What runs", labels: ["version", "node"] },
  cpu: {
    ...counter("process_cpu_seconds", "User and system time", PROCESS_LABELS),
    unit: "seconds",
  },
  rss: bytesGauge("process_resident_memory_bytes", "Resident memory", PROCESS_LABELS),
  started: timestampGauge("process_start_time_seconds", "When it was started", PROCESS_LABELS),
  files: gauge("process_open_fds", "Files and sockets that are open", PROCESS_LABELS),
  loopDelay: timestampGauge(
    "nodejs_eventloop_delay_seconds",
    "How late the event loop was of late",
    [...PROCESS_LABELS, "stat"],
  ),
  heapUsed: bytesGauge("nodejs_heap_size_used_bytes", "V8's heap in use", PROCESS_LABELS),
  heapTotal: bytesGauge("nodejs_heap_size_total_bytes", "V8's heap", PROCESS_LABELS),
  external: bytesGauge("nodejs_external_memory_bytes", "Memory that V8's objects hold elsewhere", [
    ...PROCESS_LABELS,
  ]),
  gcSeconds: {
    ...counter("nodejs_gc_seconds", "What collections of garbage took", [
      ...PROCESS_LABELS,
      "gc_kind",
    ]),
    unit: "seconds",
  },
  gcRuns: counter("nodejs_gc_runs", "Collections of garbage", [...PROCESS_LABELS, "gc_kind"]),
} as const satisfies Readonly<Record<string, Family>>;
