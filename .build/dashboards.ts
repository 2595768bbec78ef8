// Generates deploy/grafana: rows of panels, each with a title, a unit, and expressions. `node
// .build/dashboards.ts` writes the files, and a test reports files that are out of date.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

type Unit = "reqps" | "s" | "percentunit" | "currencyUSD" | "short" | "bytes" | "dateTimeFromNow";

interface Panel {
  readonly title: string;
  readonly unit: Unit;
  /** Expressions by legend. */
  readonly shows: Readonly<Record<string, string>>;
  readonly kind?: "timeseries" | "stat" | "table";
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly rows: Readonly<Record<string, readonly Panel[]>>;
}

/** Uses Grafana's rate interval, which is at least four scrapes. */
const rate = (metric: string, by = ""): string =>
  `sum ${by === "" ? "" : `by (${by}) `}(rate(${metric}[$__rate_interval]))`;

const quantiles = (metric: string, by = ""): Record<string, string> => {
  const more = by === "" ? "" : `, ${by}`;
  const legend = by === "" ? "" : ` {{${by.split(", ").join("}} {{")}}}`;
  return Object.fromEntries(
    [50, 95, 99].map((p) => [
      `p${p}${legend}`,
      `histogram_quantile(${p / 100}, sum by (le${more}) (rate(${metric}_bucket[$__rate_interval])))`,
    ]),
  );
};

const failed = 'outcome=~"upstream_error|error"';
const counted = 'outcome=~"ok|upstream_error|error"';

const OVERVIEW: Dashboard = {
  uid: "tollgate-overview",
  title: "Tollgate: overview",
  rows: {
    "Golden signals": [
      {
        title: "Requests by outcome",
        unit: "reqps",
        shows: { "{{outcome}}": rate("tollgate_requests_total", "outcome") },
      },
      {
        title: "Availability",
        unit: "percentunit",
        shows: {
          available: `1 - (${rate(`tollgate_requests_total{${failed}}`)} or vector(0)) / (${rate(`tollgate_requests_total{${counted}}`)} > 0)`,
        },
      },
      { title: "Duration", unit: "s", shows: quantiles("tollgate_request_duration_seconds") },
      {
        title: "Time to first token",
        unit: "s",
        shows: quantiles("tollgate_time_to_first_token_seconds"),
      },
      {
        title: "Gateway overhead",
        unit: "s",
        shows: quantiles("tollgate_gateway_overhead_seconds"),
      },
      {
        title: "Requests in flight",
        unit: "short",
        shows: {
          "{{frontend}}": "sum by (frontend) (tollgate_in_flight)",
          "{{origin}} waiting": 'sum by (origin) (tollgate_pool_sockets{state="queued"}) > 0',
        },
      },
    ],
    "Spend and tokens": [
      {
        title: "Spend in the time range",
        unit: "currencyUSD",
        kind: "stat",
        shows: { spend: "sum(increase(tollgate_spend_usd_total[$__range]))" },
      },
      {
        title: "Unpriced and estimated calls in the time range",
        unit: "short",
        kind: "stat",
        shows: {
          unpriced: "sum(increase(tollgate_calls_unpriced_total[$__range]))",
          estimated: "sum(increase(tollgate_calls_estimated_total[$__range]))",
        },
      },
      {
        title: "Spend per hour by model",
        unit: "currencyUSD",
        shows: {
          "{{provider}}/{{model}}": `3600 * topk(10, ${rate("tollgate_spend_usd_total", "provider, model")})`,
        },
      },
      {
        title: "Tokens per second by unit",
        unit: "short",
        shows: { "{{unit}}": rate("tollgate_tokens_total", "unit") },
      },
      {
        title: "Budgets with the highest usage",
        unit: "percentunit",
        shows: {
          "{{scope}} {{per}}":
            "topk(10, tollgate_budget_used_usd / (tollgate_budget_limit_usd > 0))",
        },
      },
      {
        title: "Spend per hour by key",
        unit: "currencyUSD",
        shows: { "{{key}}": `3600 * topk(10, ${rate("tollgate_key_spend_usd_total", "key")})` },
      },
    ],
    "Models and providers": [
      {
        title: "Calls by provider and model",
        unit: "reqps",
        shows: {
          "{{provider}}/{{model}}": `topk(10, ${rate("tollgate_calls_total", "provider, model")})`,
        },
      },
      {
        title: "Failed calls",
        unit: "reqps",
        shows: {
          "{{provider}} {{fault}}": rate('tollgate_calls_total{fault!="none"}', "provider, fault"),
        },
      },
      {
        title: "Call duration, p95",
        unit: "s",
        shows: {
          "{{provider}}/{{model}}":
            "histogram_quantile(0.95, sum by (le, provider, model) (rate(tollgate_call_duration_seconds_bucket[$__rate_interval])))",
        },
      },
      {
        title: "Time per output token, p50",
        unit: "s",
        shows: {
          "{{provider}}/{{model}}":
            "histogram_quantile(0.5, sum by (le, provider, model) (rate(tollgate_output_seconds_per_token_bucket[$__rate_interval])))",
        },
      },
      {
        title: "Fallbacks",
        unit: "reqps",
        shows: {
          "{{from}} → {{to}}: {{error_kind}}": rate(
            "tollgate_fallbacks_total",
            "from, to, error_kind",
          ),
        },
      },
      {
        title: "Hedges",
        unit: "reqps",
        shows: {
          "{{provider}} {{model}}: {{outcome}}": rate(
            "tollgate_hedges_total",
            "provider, model, outcome",
          ),
        },
      },
      {
        title: "Cost of lost hedges per hour",
        unit: "currencyUSD",
        shows: {
          "{{provider}} {{model}}": `3600 * ${rate("tollgate_hedge_spend_usd_total", "provider, model")}`,
        },
      },
      {
        title: "Targets in cooldown",
        unit: "short",
        shows: {
          "{{provider}} {{credential}}": "tollgate_provider_cooldown > 0",
          "{{provider}} {{credential}} {{state}}": "tollgate_provider_breakers",
          "{{provider}} {{credential}} rejects requests": "tollgate_provider_rejecting > 0",
        },
      },
      {
        title: "Time until cooldowns end",
        unit: "s",
        shows: {
          "{{provider}} {{credential}} {{error_kind}}":
            "tollgate_provider_cooldown_end_timestamp_seconds - time() > 0",
        },
      },
    ],
    "Privacy and refusals": [
      {
        title: "Requests rejected before routing",
        unit: "reqps",
        shows: { "{{code}}": rate("tollgate_rejections_total", "code") },
      },
      {
        title: "Translation warnings",
        unit: "reqps",
        shows: { "{{code}}": rate("tollgate_translation_warnings_total", "code") },
      },
      {
        title: "Time until data policies expire",
        unit: "dateTimeFromNow",
        kind: "table",
        shows: { "{{provider}}": "1000 * tollgate_policy_expiry_timestamp_seconds" },
      },
      {
        title: "Time until models retire",
        unit: "dateTimeFromNow",
        kind: "table",
        shows: { "{{model}}": "1000 * tollgate_model_retirement_timestamp_seconds" },
      },
    ],
  },
};

const INSIDE: Dashboard = {
  uid: "tollgate-inside",
  title: "Tollgate: internals",
  rows: {
    Ledger: [
      {
        title: "Readiness and ledger availability",
        unit: "short",
        kind: "stat",
        shows: { ready: "min(tollgate_ready)", ledger: "min(tollgate_ledger_up)" },
      },
      {
        title: "Ledger commit duration",
        unit: "s",
        shows: quantiles("tollgate_ledger_commit_seconds"),
      },
      {
        title: "Queued ledger commands",
        unit: "short",
        shows: { waiting: "sum(tollgate_ledger_queue)" },
      },
      {
        title: "Disk space",
        unit: "bytes",
        shows: {
          used: "sum(tollgate_ledger_bytes)",
          free: "min(tollgate_store_disk_free_bytes)",
        },
      },
      {
        title: "Ledger adjustments per hour",
        unit: "currencyUSD",
        shows: { "{{direction}}": `3600 * ${rate("tollgate_adjustments_usd_total", "direction")}` },
      },
      {
        title: "Oldest ledger row",
        unit: "dateTimeFromNow",
        kind: "stat",
        shows: { oldest: "1000 * min(tollgate_ledger_oldest_timestamp_seconds)" },
      },
      {
        title: "Gateways in the fleet",
        unit: "short",
        shows: { "{{state}}": "max by (state) (tollgate_fleet_nodes)" },
      },
      {
        title: "Store: clock difference and lag",
        unit: "s",
        shows: {
          "{{instance}} clock": "tollgate_store_clock_ahead_seconds",
          "{{instance}} lag": "tollgate_store_lag_seconds",
        },
      },
    ],
    Runtime: [
      {
        title: "Event loop delay",
        unit: "s",
        shows: { "{{pid}} {{stat}}": 'nodejs_eventloop_delay_seconds{stat=~"p99|max"}' },
      },
      {
        title: "CPU time",
        unit: "percentunit",
        shows: { "{{pid}}": rate("process_cpu_seconds_total", "pid") },
      },
      {
        title: "Memory",
        unit: "bytes",
        shows: {
          "{{pid}} resident": "process_resident_memory_bytes",
          "{{pid}} heap": "nodejs_heap_size_used_bytes",
          "{{pid}} heap, total": "nodejs_heap_size_total_bytes",
          "{{pid}} external": "nodejs_external_memory_bytes",
        },
      },
      {
        title: "Garbage collection time",
        unit: "percentunit",
        shows: { "{{pid}} {{gc_kind}}": rate("nodejs_gc_seconds_total", "pid, gc_kind") },
      },
      {
        title: "Garbage collections per second",
        unit: "short",
        shows: { "{{gc_kind}}": rate("nodejs_gc_runs_total", "gc_kind") },
      },
      { title: "Open files", unit: "short", shows: { "{{pid}}": "process_open_fds" } },
      {
        title: "Connections to providers",
        unit: "short",
        shows: { "{{origin}} {{state}}": "tollgate_pool_sockets" },
      },
      {
        title: "WebSockets of clients",
        unit: "short",
        shows: { "{{frontend}}": "sum by (frontend) (tollgate_websockets)" },
      },
      {
        title: "Open jobs of all gateways",
        unit: "short",
        shows: { "{{kind}}": "max by (kind) (tollgate_jobs_open)" },
      },
      {
        title: "Age of the oldest open job",
        unit: "s",
        shows: { "{{kind}}": "time() - min by (kind) (tollgate_jobs_oldest_timestamp_seconds)" },
      },
      {
        title: "Ended jobs per second",
        unit: "short",
        shows: { "{{kind}} {{status}}": rate("tollgate_jobs_ended_total", "kind, status") },
      },
      {
        title: "Calls over WebSockets of providers per second",
        unit: "reqps",
        shows: { "{{provider}}": rate("tollgate_websocket_calls_total", "provider") },
      },
    ],
    Gateway: [
      {
        title: "Version",
        unit: "short",
        kind: "table",
        shows: { "{{version}} {{node}}": "tollgate_build_info" },
      },
      {
        title: "Config",
        unit: "short",
        shows: {
          generation: "max(tollgate_config_generation)",
          "last reload accepted": "min(tollgate_config_reload_success)",
          "reloads, {{ok}}": "sum by (ok) (increase(tollgate_config_reloads_total[$__range]))",
        },
      },
      {
        title: "Age of the current config",
        unit: "dateTimeFromNow",
        kind: "stat",
        shows: { config: "1000 * max(tollgate_config_reload_last_success_timestamp_seconds)" },
      },
      {
        title: "Processes",
        unit: "short",
        shows: {
          "serving clients": "sum(tollgate_workers)",
          unresponsive: "sum(tollgate_processes_unresponsive)",
          "exited unexpectedly": "sum(increase(tollgate_worker_exits_total[$__range]))",
        },
      },
      {
        title: "Unreachable plugins",
        unit: "short",
        shows: { "{{plugin}}, requests {{on_failure}}": "tollgate_plugin_unreachable" },
      },
      {
        title: "Start time",
        unit: "dateTimeFromNow",
        kind: "table",
        shows: { "{{pid}}": "1000 * process_start_time_seconds" },
      },
      {
        title: "Age of model lists",
        unit: "s",
        shows: {
          "{{provider}}": "time() - tollgate_model_list_last_success_timestamp_seconds",
          "{{provider}} failed": "tollgate_model_list_failures > 0",
        },
      },
      {
        title: "Time until budgets reset",
        unit: "dateTimeFromNow",
        kind: "table",
        shows: { "{{scope}} {{per}}": "1000 * tollgate_budget_resets_timestamp_seconds" },
      },
      {
        title: "Dropped records and folded series",
        unit: "short",
        shows: {
          "{{observer}} lost records":
            "sum by (observer) (increase(tollgate_observer_dropped_records_total[$__range])) > 0",
          "{{metric}} folded":
            "sum by (metric) (increase(tollgate_series_overflow_total[$__range])) > 0",
        },
      },
      {
        title: "Reasoning tokens per second",
        unit: "short",
        shows: { "{{model}}": rate("tollgate_reasoning_tokens_total", "model") },
      },
      {
        title: "Spend per hour by label",
        unit: "currencyUSD",
        shows: {
          "{{label}} {{value}}": `3600 * ${rate("tollgate_label_spend_usd_total", "label, value")}`,
        },
      },
    ],
  },
};

export const DASHBOARDS = [OVERVIEW, INSIDE] as const;

const SOURCE = { type: "prometheus", uid: "${datasource}" };
const LETTERS = "ABCDEFGHIJ";
const SIZE = { w: 8, h: 8 };

function panelOf({ title, unit, shows, kind = "timeseries" }: Panel, id: number, place: object) {
  const instant = kind !== "timeseries";
  return {
    id,
    type: kind,
    title,
    datasource: SOURCE,
    gridPos: { ...SIZE, ...place },
    fieldConfig: { defaults: { unit }, overrides: [] },
    options: kind === "stat" ? { reduceOptions: { calcs: ["lastNotNull"] } } : {},
    targets: Object.entries(shows).map(([legendFormat, expr], i) => ({
      refId: LETTERS[i],
      datasource: SOURCE,
      expr: withVariables(expr),
      legendFormat,
      ...(instant && { instant: true, range: false }),
      ...(kind === "table" && { format: "table" }),
    })),
  };
}

/** Filters each metric by the selected job and gateways. */
const CHOSEN = 'job=~"$job", instance=~"$instance"';
export const withVariables = (expr: string): string =>
  expr.replace(
    /\b((?:tollgate|process|nodejs)_[a-z0-9_]+)(?:\{([^}]*)\})?/g,
    (_, name: string, own: string | undefined) =>
      `${name}{${CHOSEN}${own === undefined ? "" : `, ${own}`}}`,
  );

const variable = (name: string, label: string) => ({
  name,
  label,
  type: "query",
  datasource: SOURCE,
  query: `label_values(tollgate_build_info, ${name})`,
  refresh: 2,
  multi: true,
  includeAll: true,
  current: { text: "All", value: "$__all" },
});

/**
 * Returns a dashboard as Grafana provisions it from a folder. The data source is a variable, so
 * that no file has to be edited.
 */
export function jsonOf({ uid, title, rows }: Dashboard): object {
  let id = 0;
  let y = 0;
  const panels: object[] = [];
  for (const [row, of] of Object.entries(rows)) {
    panels.push({
      id: ++id,
      type: "row",
      title: row,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    });
    y++;
    for (const [i, panel] of of.entries()) {
      const place = { x: (i % 3) * SIZE.w, y: y + Math.floor(i / 3) * SIZE.h };
      panels.push(panelOf(panel, ++id, place));
    }
    y += Math.ceil(of.length / 3) * SIZE.h;
  }
  return {
    id: null,
    uid,
    title,
    tags: ["tollgate"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    timezone: "browser",
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
        variable("job", "Job"),
        variable("instance", "Gateway"),
      ],
    },
    annotations: { list: [] },
    panels,
  };
}

export const textOf = (dashboard: Dashboard): string =>
  `${JSON.stringify(jsonOf(dashboard), null, 2)}\n`;

if (import.meta.main) {
  const folder = join(import.meta.dirname, "../deploy/grafana");
  mkdirSync(folder, { recursive: true });
  for (const dashboard of DASHBOARDS)
    writeFileSync(join(folder, `${dashboard.uid}.json`), textOf(dashboard));
}
