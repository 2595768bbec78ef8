// Metrics whose values are read at the time of a scrape: gateway state, expiry dates from the
// catalog, and remaining budgets. A new metric is one entry in READ_METRICS.
import type {
  Context,
  ListedModel,
  ProcessStats,
  GatewayStats,
  CooldownState,
} from "tollgate/plugin";
import { bytesGauge, counter, gauge, timestampGauge, type Family } from "./families.ts";
import { MAX_SERIES, type Distribution, type Sample, type MetricsSink } from "./series.ts";
import type { MetricsTally } from "./tally.ts";

const SECOND_MS = 1_000;

/** Sources of the values. */
export interface Scrape {
  readonly stats: GatewayStats;
  readonly tally: MetricsTally;
  readonly expiries: Expiries;
  readonly budgets: ReturnType<MetricsTally["budgets"]["mostUsed"]>;
  /** Observations added to "other", by metric. */
  readonly overflows: readonly Sample[];
}

/** A metric with the function that reads its value. An unknown value is undefined. */
type ReadMetric = Family &
  (
    | { readonly value: (of: Scrape) => number | undefined }
    | { readonly samples: (of: Scrape) => readonly Sample[] }
    | { readonly eachProcess: (of: ProcessStats) => readonly Sample[] }
    | { readonly distribution: (of: Scrape) => Distribution }
  );

const PROCESS_LABELS = ["pid"] as const;

export const READ_METRICS = {
  inFlight: {
    ...gauge("tollgate_in_flight", "Client requests in progress", ["frontend"]),
    samples: ({ stats }) => samplesOf(stats.inFlightByFrontend),
  },
  webSockets: {
    ...gauge("tollgate_websockets", "Open WebSockets of clients", ["frontend"]),
    samples: ({ stats }) => samplesOf(stats.webSocketsByFrontend),
  },
  openJobs: {
    ...gauge("tollgate_jobs_open", "Open jobs of all gateways on the store", ["kind"]),
    samples: ({ stats }) => (stats.jobs ?? []).map(({ kind, open }): Sample => [[kind], open]),
  },
  oldestJob: {
    ...timestampGauge(
      "tollgate_jobs_oldest_timestamp_seconds",
      "Creation time of the oldest open job, in Unix seconds",
      ["kind"],
    ),
    samples: ({ stats }) =>
      (stats.jobs ?? []).flatMap(({ kind, oldestAt }): Sample[] =>
        oldestAt == null ? [] : [[[kind], oldestAt / SECOND_MS]],
      ),
  },
  cooldown: {
    ...gauge("tollgate_provider_cooldown", "Targets in cooldown per credential", [
      "provider",
      "credential",
    ]),
    samples: cooldownSamples,
  },
  breakers: {
    ...gauge(
      "tollgate_provider_breakers",
      "Targets in cooldown or recovering per credential, by state",
      ["provider", "credential", "state"],
    ),
    samples: breakerSamples,
  },
  cooldownEnd: {
    ...timestampGauge(
      "tollgate_provider_cooldown_end_timestamp_seconds",
      "End of the last cooldown of a credential's targets, in Unix seconds, by error kind",
      ["provider", "credential", "error_kind"],
    ),
    samples: ({ stats }) =>
      maxPerCredential(
        stats,
        ({ reason }) => reason,
        ({ until }) => until / SECOND_MS,
      ),
  },
  rejecting: {
    ...gauge(
      "tollgate_provider_rejecting",
      "Whether requests are rejected without a call because the provider reported that the account's limit is used up",
      ["provider", "credential"],
    ),
    samples: ({ stats }) =>
      maxPerCredential(
        stats,
        () => undefined,
        ({ rejectsRequests }) => (rejectsRequests ? 1 : 0),
      ),
  },
  pluginUnreachable: {
    ...gauge(
      "tollgate_plugin_unreachable",
      "Gateway processes that cannot reach an out-of-process plugin, by effect on requests",
      ["plugin", "on_failure"],
    ),
    samples: ({ stats }) =>
      stats.unreachable.map((each) => [[each.plugin, each.requests], each.processes]),
  },
  sockets: {
    ...gauge("tollgate_pool_sockets", "Connections to providers", ["origin", "state"]),
    samples: ({ stats }) =>
      stats.pools.flatMap(({ origin, connected, free, running, queued }): Sample[] => [
        [[origin, "connected"], connected],
        [[origin, "free"], free],
        [[origin, "running"], running],
        [[origin, "queued"], queued],
      ]),
  },
  ready: {
    ...gauge("tollgate_ready", "Whether /readyz reports ready"),
    value: ({ stats }) => (stats.state === "ready" ? 1 : 0),
  },
  ledgerUp: {
    ...gauge("tollgate_ledger_up", "Whether the ledger accepts writes"),
    value: ({ stats }) => (stats.ledger.ok ? 1 : 0),
  },
  ledgerQueue: {
    ...gauge("tollgate_ledger_queue", "Ledger commands waiting for a batch"),
    value: ({ stats }) => stats.ledger.queue,
  },
  commitSeconds: {
    name: "tollgate_ledger_commit_seconds",
    type: "histogram",
    unit: "seconds",
    help: "Time until a ledger batch is durable, including the sync, in seconds",
    labels: [],
    distribution: ({ stats: { ledger } }) => ({
      count: ledger.commits.count,
      sum: ledger.commits.sumMs / SECOND_MS,
      buckets: ledger.commits.buckets.map(({ ms, count }) => [ms / SECOND_MS, count]),
    }),
  },
  ledgerBytes: {
    ...bytesGauge("tollgate_ledger_bytes", "Size of the ledger on disk, in bytes"),
    value: ({ stats }) => stats.ledger.size?.bytes,
  },
  oldest: {
    ...timestampGauge(
      "tollgate_ledger_oldest_timestamp_seconds",
      "Time of the oldest ledger row, in Unix seconds",
    ),
    value: ({ stats }) => toSeconds(stats.ledger.size?.oldestAt),
  },
  diskFree: {
    ...bytesGauge(
      "tollgate_store_disk_free_bytes",
      "Space the ledger can still grow into, in bytes",
    ),
    value: ({ stats }) => stats.ledger.size?.freeBytes,
  },
  fleetNodes: {
    ...gauge("tollgate_fleet_nodes", "Gateways that share the store, by state", ["state"]),
    samples: ({ stats: { fleet } }) =>
      fleet ? (["live", "left", "dead"] as const).map((state) => [[state], fleet[state]]) : [],
  },
  clockAhead: {
    ...timestampGauge(
      "tollgate_store_clock_ahead_seconds",
      "Clock difference between this gateway and the store, in seconds; positive if " +
        "the gateway is ahead",
    ),
    value: ({ stats }) => toSeconds(stats.fleet?.clockAheadMs),
  },
  storeLag: {
    ...timestampGauge(
      "tollgate_store_lag_seconds",
      "Time for which this gateway has not received key and account changes, in seconds",
    ),
    value: ({ stats }) => toSeconds(stats.fleet?.syncLagMs),
  },
  reloadOk: {
    ...gauge("tollgate_config_reload_success", "Whether the last config reload succeeded"),
    value: ({ tally }) => (tally.lastReload === false ? 0 : 1),
  },
  reloadAt: {
    ...timestampGauge(
      "tollgate_config_reload_last_success_timestamp_seconds",
      "Time of the last successful config reload, in Unix seconds",
    ),
    value: ({ stats }) => toSeconds(stats.generation.at),
  },
  generation: {
    ...gauge("tollgate_config_generation", "Current config generation"),
    value: ({ stats }) => stats.generation.number,
  },
  // If a provider has several credentials, its oldest list counts.
  listAt: {
    ...timestampGauge(
      "tollgate_model_list_last_success_timestamp_seconds",
      "Last successful refresh of a provider's model list, in Unix seconds",
      ["provider"],
    ),
    samples: ({ stats: { modelLists } }) =>
      perProvider(modelLists, ({ lastSuccessAt }) => toSeconds(lastSuccessAt), Math.min),
  },
  listFailures: {
    ...gauge(
      "tollgate_model_list_failures",
      "Consecutive failed refreshes of a provider's model list",
      ["provider"],
    ),
    samples: ({ stats: { modelLists } }) =>
      perProvider(modelLists, ({ failures }) => failures, Math.max),
  },
  certificateExpires: {
    ...timestampGauge(
      "tollgate_certificate_expiry_timestamp_seconds",
      "Earliest expiry of a listener's certificates, in Unix seconds",
      ["listener"],
    ),
    samples: ({ stats }) =>
      stats.certificates.map(({ listener, expiresAt }) => [[listener], expiresAt / SECOND_MS]),
  },
  policyExpires: {
    ...timestampGauge(
      "tollgate_policy_expiry_timestamp_seconds",
      "Date by which a provider's data policy must be reviewed, in Unix seconds",
      ["provider"],
    ),
    samples: ({ expiries }) => expiries.policies,
  },
  modelRetires: {
    ...timestampGauge(
      "tollgate_model_retirement_timestamp_seconds",
      "Retirement date of a model, in Unix seconds",
      ["model"],
    ),
    samples: ({ expiries }) => expiries.models,
  },
  budgetLimit: {
    ...gauge("tollgate_budget_limit_usd", "Budget limit in US dollars", ["scope", "per"]),
    unit: "usd",
    samples: ({ budgets }) => budgets.map(({ scope, per, max }) => [[scope, per], max]),
  },
  budgetUsed: {
    ...gauge(
      "tollgate_budget_used_usd",
      "Budget spent and reserved for open calls, in US dollars",
      ["scope", "per"],
    ),
    unit: "usd",
    samples: ({ budgets }) => budgets.map(({ scope, per, used }) => [[scope, per], used]),
  },
  budgetResets: {
    ...timestampGauge(
      "tollgate_budget_resets_timestamp_seconds",
      "Next reset of a budget, in Unix seconds",
      ["scope", "per"],
    ),
    samples: ({ budgets }) =>
      budgets
        .filter(({ per }) => per !== "total")
        .map(({ scope, per, resetsAt }) => [[scope, per], resetsAt / SECOND_MS]),
  },
  workers: {
    ...gauge("tollgate_workers", "Processes that serve clients"),
    value: ({ stats }) => Math.max(1, stats.processes.expected - 1),
  },
  unresponsive: {
    ...gauge("tollgate_processes_unresponsive", "Processes whose stats are outdated"),
    value: ({ stats: { processes } }) => processes.expected - processes.responded,
  },
  dropped: {
    ...counter(
      "tollgate_observer_dropped_records",
      "Records dropped because an observer was too slow",
      ["observer"],
    ),
    samples: ({ stats }) => samplesOf(stats.droppedRecords),
  },
  overflow: {
    ...counter(
      "tollgate_series_overflow",
      'Observations added to the series "other" because the metric reached its maximum ' +
        "number of series",
      ["metric"],
    ),
    samples: ({ overflows }) => overflows,
  },
  build: {
    name: "tollgate_build",
    type: "info",
    help: "Tollgate and Node.js versions",
    labels: ["version", "node"],
    samples: ({ stats }) => [[[stats.version, process.version], 1]],
  },
  cpu: {
    ...counter("process_cpu_seconds", "User and system CPU time, in seconds", PROCESS_LABELS),
    unit: "seconds",
    eachProcess: ({ cpu }) => [[[], cpu.user + cpu.system]],
  },
  rss: {
    ...bytesGauge("process_resident_memory_bytes", "Resident memory, in bytes", PROCESS_LABELS),
    eachProcess: ({ memory }) => [[[], memory.rss]],
  },
  started: {
    ...timestampGauge(
      "process_start_time_seconds",
      "Start time of the process, in Unix seconds",
      PROCESS_LABELS,
    ),
    eachProcess: ({ startedAt }) => [[[], startedAt / SECOND_MS]],
  },
  files: {
    ...gauge("process_open_fds", "Open file descriptors", PROCESS_LABELS),
    eachProcess: ({ openFiles }) => (openFiles === undefined ? [] : [[[], openFiles]]),
  },
  loopDelay: {
    ...timestampGauge(
      "nodejs_eventloop_delay_seconds",
      "Event loop delay in recent seconds, in seconds",
      [...PROCESS_LABELS, "stat"],
    ),
    eachProcess: ({ loopDelayMs: { mean, p99, max } }) => [
      [["mean"], mean / SECOND_MS],
      [["p99"], p99 / SECOND_MS],
      [["max"], max / SECOND_MS],
    ],
  },
  heapUsed: {
    ...bytesGauge("nodejs_heap_size_used_bytes", "V8 heap in use, in bytes", PROCESS_LABELS),
    eachProcess: ({ memory }) => [[[], memory.heapUsed]],
  },
  heapTotal: {
    ...bytesGauge("nodejs_heap_size_total_bytes", "V8 heap size, in bytes", PROCESS_LABELS),
    eachProcess: ({ memory }) => [[[], memory.heapTotal]],
  },
  external: {
    ...bytesGauge(
      "nodejs_external_memory_bytes",
      "Memory of V8 objects outside the heap, in bytes",
      PROCESS_LABELS,
    ),
    eachProcess: ({ memory }) => [[[], memory.external]],
  },
  gcSeconds: {
    ...counter("nodejs_gc_seconds", "Time spent in garbage collection, in seconds", [
      ...PROCESS_LABELS,
      "gc_kind",
    ]),
    unit: "seconds",
    eachProcess: ({ gc }) => Object.entries(gc).map(([kind, { seconds }]) => [[kind], seconds]),
  },
  gcRuns: {
    ...counter("nodejs_gc_runs", "Garbage collections", [...PROCESS_LABELS, "gc_kind"]),
    eachProcess: ({ gc }) => Object.entries(gc).map(([kind, { count }]) => [[kind], count]),
  },
} as const satisfies Readonly<Record<string, ReadMetric>>;

/** Writes all metrics that are read. */
export function writeReadMetrics(out: MetricsSink, of: Scrape): void {
  for (const metric of Object.values(READ_METRICS) as readonly ReadMetric[])
    if ("distribution" in metric) out.writeDistribution(metric, metric.distribution(of));
    else out.writeSamples(metric, readSamples(metric, of).slice(0, MAX_SERIES));
}

function readSamples(
  metric: Exclude<ReadMetric, { distribution: unknown }>,
  of: Scrape,
): readonly Sample[] {
  if ("samples" in metric) return metric.samples(of);
  if ("eachProcess" in metric)
    return of.stats.perProcess.flatMap((one) =>
      metric.eachProcess(one).map(([labels, value]): Sample => [[`${one.pid}`, ...labels], value]),
    );
  const value = metric.value(of);
  return value === undefined ? [] : [[[], value]];
}

const toSeconds = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : ms / SECOND_MS;

const samplesOf = (counts: Readonly<Record<string, number>>): readonly Sample[] =>
  Object.entries(counts).map(([label, count]) => [[label], count]);

/**
 * Returns the cooldowns per credential. Credentials that were used and are not in cooldown are
 * included with 0.
 */
function cooldownSamples({ stats, tally }: Scrape): readonly Sample[] {
  const rests = new Map<string, number>();
  const names = new Map(tally.credentials);
  for (const { provider, credential, state } of stats.cooldowns) {
    if (state === "recovering") continue;
    const key = `${provider}\n${credential}`;
    names.set(key, [provider, credential]);
    rests.set(key, (rests.get(key) ?? 0) + 1);
  }
  return Array.from(names, ([key, labels]): Sample => [labels, rests.get(key) ?? 0]);
}

function breakerSamples({ stats }: Scrape): readonly Sample[] {
  const counts = new Map<string, readonly [labels: readonly string[], count: number]>();
  for (const { provider, credential, state } of stats.cooldowns) {
    const key = `${provider}\n${credential}\n${state}`;
    counts.set(key, [[provider, credential, state], (counts.get(key)?.[1] ?? 0) + 1]);
  }
  return [...counts.values()];
}

/**
 * Returns the largest value among each credential's cooldowns, with one additional label.
 * Recovering targets are not in cooldown.
 */
function maxPerCredential(
  { cooldowns: all }: GatewayStats,
  label: (of: CooldownState) => string | undefined,
  value: (of: CooldownState) => number,
): readonly Sample[] {
  const samples = new Map<string, readonly [labels: readonly string[], value: number]>();
  for (const one of all) {
    if (one.state === "recovering") continue;
    const more = label(one);
    const labels = [one.provider, one.credential, ...(more === undefined ? [] : [more])];
    const key = labels.join("\n");
    samples.set(key, [labels, Math.max(value(one), samples.get(key)?.[1] ?? 0)]);
  }
  return [...samples.values()];
}

/** Combines the known values of each provider. */
function perProvider<T extends { readonly provider: string }>(
  all: readonly T[],
  value: (of: T) => number | undefined,
  combine: (a: number, b: number) => number,
): readonly Sample[] {
  const values = new Map<string, number>();
  for (const one of all) {
    const next = value(one);
    if (next === undefined) continue;
    const earlier = values.get(one.provider);
    values.set(one.provider, earlier === undefined ? next : combine(earlier, next));
  }
  return Array.from(values, ([provider, number]): Sample => [[provider], number]);
}

/**
 * Dates change only with a config generation or a model list, and listing all models is expensive.
 */
const DATES_TTL_MS = 60_000;

/** Expiry dates of the models in the catalog. */
export interface Expiries {
  readonly policies: readonly Sample[];
  readonly models: readonly Sample[];
}

export class ExpiryReader {
  readonly #catalog: Context["catalog"];
  #readAt = -Infinity;
  #expiries: Expiries = { policies: [], models: [] };

  constructor(catalog: Context["catalog"]) {
    this.#catalog = catalog;
  }

  read(): Expiries {
    const now = performance.now();
    if (now - this.#readAt > DATES_TTL_MS) {
      this.#readAt = now;
      const models = this.#catalog.list({});
      this.#expiries = {
        policies: policyExpiries(models),
        models: modelRetirements(models).slice(0, MAX_SERIES),
      };
    }
    return this.#expiries;
  }
}

/** Returns the earliest expiry date of each provider's policy evidence. */
const policyExpiries = (models: readonly ListedModel[]): readonly Sample[] =>
  perProvider(models, ({ policy }) => toSeconds(parseDate(policy.expires)), Math.min);

/** Returns the retirement dates, earliest first. */
function modelRetirements(models: readonly ListedModel[]): readonly Sample[] {
  const all = models.flatMap(({ id, retires }) => {
    const at = parseDate(retires);
    return at === undefined ? [] : [{ id, at }];
  });
  return all.toSorted((a, b) => a.at - b.at).map(({ id, at }): Sample => [[id], at / SECOND_MS]);
}

function parseDate(date: string | undefined): number | undefined {
  const at = date === undefined ? Number.NaN : Date.parse(date);
  return Number.isNaN(at) ? undefined : at;
}
