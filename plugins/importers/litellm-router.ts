// Imports LiteLLM's router settings: fallbacks and the routing strategy.
import type { ConfigDraft } from "./config-draft.ts";
import { reportStreamTimeout, toTimeouts } from "./litellm-model-metadata.ts";
import type { SourceValue, FindingKind } from "./source-value.ts";

/** Failures after which a route falls back if it does not set `fallback_on`. */
const DEFAULT_FAILURES = [
  "unsupported",
  "rate_limited",
  "overloaded",
  "timeout",
  "upstream",
  "upstream_auth",
  "upstream_quota",
];

const STRATEGIES: Readonly<Record<string, readonly [pick: string, exact: boolean]>> = {
  "simple-shuffle": ["weighted", true],
  "least-busy": ["fastest", false],
  "usage-based-routing": ["weighted", false],
  "usage-based-routing-v2": ["weighted", false],
  "latency-based-routing": ["fastest", true],
  "cost-based-routing": ["cheapest", true],
};

/**
 * Candidates of each name, before fallbacks are added. Two names may fall back to each other, but a
 * route must not contain itself.
 */
type CandidatesByName = ReadonlyMap<string, readonly string[]>;

type OperationOf = (name: string) => string;

/**
 * Imports the router's settings.
 * @param kindOf Returns the operation of a name. All models of one name have the same operation.
 */
export function importRouterSettings(
  root: SourceValue,
  draft: ConfigDraft,
  kindOf: OperationOf,
): void {
  const router = root.get("router_settings");
  importStrategy(router.get("routing_strategy"), draft);
  const own: CandidatesByName = new Map(
    [...draft.routes].map(([name, { candidates }]) => [name, candidates.map(({ model }) => model)]),
  );
  for (const settings of [router, root.get("litellm_settings")]) {
    importFallbacks(settings.get("fallbacks"), draft, { own, kindOf, more: [] });
    importFallbacks(settings.get("context_window_fallbacks"), draft, {
      own,
      kindOf,
      more: ["context_length"],
    });
    importFallbacks(settings.get("content_policy_fallbacks"), draft, {
      own,
      kindOf,
      more: ["content_policy"],
    });
    importDefaultFallbacks(settings.get("default_fallbacks"), draft, { own, kindOf });
  }
  importAliases(router.get("model_group_alias"), draft);
  importTimeouts(router, draft);
  for (const key of [
    "allowed_fails",
    "cooldown_time",
    "retry_policy",
    "allowed_fails_policy",
    "retry_after",
  ])
    if (router.get(key).exists)
      router
        .get(key)
        .report(
          "approximate",
          "cooldowns follow the gateway's own rules (docs/guides/fallback.md)",
        );
  for (const key of [
    "redis_host",
    "redis_port",
    "redis_password",
    "redis_url",
    "cache_responses",
    "enable_pre_call_checks",
  ])
    if (router.get(key).exists)
      router
        .get(key)
        .report(
          "exact",
          "not needed: limits and budgets are exact across all processes without it",
        );
}

function importStrategy(strategy: SourceValue, draft: ConfigDraft): void {
  const name = strategy.readText();
  if (name === undefined) return;
  const known = STRATEGIES[name];
  if (!known)
    return strategy.report("unsupported", `no pick is equivalent to "${name}"; weighted is used`);
  const [pick, exact] = known;
  if (!exact) strategy.report("approximate", `pick: ${pick} is the closest equivalent`);
  for (const route of draft.routes.values())
    if (route.pick === "weighted") {
      route.pick = pick;
      if (pick !== "weighted") for (const each of route.candidates) delete each.weight;
    }
}

/** Imports a list of maps from a failed name to its fallbacks. */
function importFallbacks(
  fallbacks: SourceValue,
  draft: ConfigDraft,
  of: Pick<FallbackSource, "own" | "kindOf" | "more">,
): void {
  for (const each of fallbacks.readList())
    for (const name of each.keys) {
      const names = each.get(name).readTexts();
      addFallback(each.get(name), draft, { name, names, ...of });
    }
}

interface FallbackSource {
  readonly name: string;
  readonly names: readonly string[];
  /** Failures that `fallback_on` lists in addition to the default failures. */
  readonly more: readonly string[];
  readonly own: CandidatesByName;
  readonly kindOf: OperationOf;
}

function addFallback(
  place: SourceValue,
  draft: ConfigDraft,
  { name, names, more, own, kindOf }: FallbackSource,
): void {
  const route = draft.routes.get(name);
  if (!route) return place.report("unsupported", `fallback source not found: model "${name}"`);
  const missing = names.filter((each) => !isKnown(each, draft));
  if (missing.length > 0)
    place.report("unsupported", `fallback target not found: model ${missing.join(", ")}`);
  const strange = names.filter((each) => !missing.includes(each) && kindOf(each) !== kindOf(name));
  if (strange.length > 0)
    place.report(
      "unsupported",
      `"${name}" (${kindOf(name)}) cannot fall back to ${strange.map((each) => `"${each}" (${kindOf(each)})`).join(", ")}`,
    );
  const others = names
    .filter((each) => !missing.includes(each) && !strange.includes(each) && each !== name)
    .flatMap((each) => own.get(each) ?? [each]);
  const before = route.fallbackOn;
  for (const other of others)
    if (!route.candidates.some(({ model }) => model === other))
      route.candidates.push({ model: other });
  // Tollgate has one list of fallbacks for all kinds of failure.
  if (more.length > 0) {
    const first = before === undefined && route.comment !== "fallbacks";
    route.fallbackOn = [...new Set([...(before ?? (first ? [] : DEFAULT_FAILURES)), ...more])];
    if (!first || before !== undefined)
      place.report(
        "approximate",
        "one list of candidates applies to all failures that `fallback_on` names",
      );
  } else {
    if (before !== undefined) route.fallbackOn = [...new Set([...DEFAULT_FAILURES, ...before])];
    route.comment = "fallbacks";
  }
  // Fallbacks have no weight.
  if (route.pick === "weighted")
    for (const one of route.candidates) if (others.includes(one.model)) one.weight = 0;
}

const isKnown = (name: string, draft: ConfigDraft): boolean =>
  draft.routes.has(name) || draft.providers.has(name.slice(0, Math.max(0, name.indexOf("/"))));

function importDefaultFallbacks(
  defaults: SourceValue,
  draft: ConfigDraft,
  { own, kindOf }: Pick<FallbackSource, "own" | "kindOf">,
): void {
  const names = defaults.readTexts();
  if (names.length === 0) return;
  defaults.report(
    "approximate",
    "added to every name of the same model type that has no fallbacks",
  );
  for (const [name, route] of draft.routes) {
    const fitting = names.filter((each) => kindOf(each) === kindOf(name));
    if (fitting.length === 0 || route.comment === "fallbacks") continue;
    if (!names.includes(name) && !name.includes("*"))
      addFallback(defaults, draft, { name, names: fitting, more: [], own, kindOf });
  }
}

function importAliases(aliases: SourceValue, draft: ConfigDraft): void {
  for (const alias of aliases.keys) {
    const to = aliases.get(alias);
    const name = to.readText() ?? to.get("model").readText();
    to.get("hidden").readValue();
    if (name === undefined || !isKnown(name, draft))
      to.report("unsupported", `model "${name}" not found`);
    else draft.routes.set(alias, { candidates: [{ model: name }] });
  }
}

function importTimeouts(router: SourceValue, draft: ConfigDraft): void {
  const stream = router.get("stream_timeout");
  const made = toTimeouts(router.get("timeout").readNumber(), stream.readNumber());
  if (made !== undefined) draft.settings["timeouts"] = made;
  reportStreamTimeout(stream);
  const retries = router.get("num_retries");
  const count = retries.readNumber();
  if (count === undefined) return;
  retries.report(
    "approximate",
    "sets the number of calls per request; the gateway decides which failures are retried",
  );
  const calls = Math.min(10, Math.max(1, Math.round(count) + 1));
  draft.settings["retries"] = { per_target: Math.min(2, calls), total: calls };
}

// Imports LiteLLM's global settings: callbacks that become observers, settings that Tollgate does
// not need, and settings without an equivalent.

type SettingRules = Readonly<Record<string, readonly [FindingKind, string]>>;

const LITELLM_SETTINGS: SettingRules = {
  drop_params: [
    "exact",
    "fields that a model does not support are dropped and listed in a header; " +
      "`strict: true` rejects them",
  ],
  modify_params: ["exact", "translations follow each protocol's requirements"],
  cache: [
    "unsupported",
    "responses are not cached; a middleware can be a cache (docs/plugins/middleware.md)",
  ],
  cache_params: [
    "unsupported",
    "responses are not cached; a middleware can be a cache (docs/plugins/middleware.md)",
  ],
  max_budget: [
    "manual",
    "give an account that limit and assign keys to it: accounts: { all: { limits: " +
      "[usd=…/month] } }",
  ],
  budget_duration: ["manual", "part of max_budget"],
  ssl_verify: [
    "manual",
    "custom certificate authorities are set for Node: NODE_EXTRA_CA_CERTS=/path/ca.pem",
  ],
  set_verbose: ["approximate", "log: { level: debug }"],
  json_logs: ["exact", "log lines are JSON unless the output is a terminal"],
  turn_off_message_logging: ["exact", "prompts are never logged"],
  redact_user_api_key_info: ["exact", "keys are never logged"],
  default_internal_user_params: ["unsupported", "there are no users besides keys and accounts"],
  default_team_settings: ["manual", "set the defaults of new keys in accounts.<name>.key_defaults"],
  guardrails: ["unsupported", "guardrails are not built in"],
  num_retries: ["approximate", "`retries` sets the number of attempts per request"],
};

const GENERAL_SETTINGS: SettingRules = {
  master_key: [
    "manual",
    "create an admin (tollgate admins create ann --role owner) and an API key " +
      "(tollgate keys create)",
  ],
  database_url: [
    "manual",
    "its database is not used: export keys and teams, and pass them with --keys and --teams",
  ],
  database_connection_pool_limit: ["exact", "not needed"],
  database_connection_timeout: ["exact", "not needed"],
  store_model_in_db: ["unsupported", "config files are the only source of configuration"],
  disable_spend_logs: ["unsupported", "every call is recorded in the ledger"],
  alerting: [
    "manual",
    "observers: [{ use: alerts, with: { to: { chat: { url: …, format: slack } } } }]",
  ],
  alerting_threshold: ["manual", "part of alerting"],
  alert_types: ["manual", "use rules of the observer alerts"],
  enable_jwt_auth: ["manual", "middleware: [{ use: jwt, with: { issuers: … } }, auth]"],
  litellm_jwtauth: ["manual", "map the claims with `map` of the middleware jwt"],
  key_management_system: [
    "unsupported",
    "secrets come from variables, files, and credentials of the service manager",
  ],
  key_management_settings: [
    "unsupported",
    "secrets come from variables, files, and credentials of the service manager",
  ],
  maximum_spend_logs_retention_period: ["manual", "ledger: { retention: 400d }"],
  background_health_checks: [
    "exact",
    "not needed: failed targets are put in cooldown and probed with one call",
  ],
  health_check_interval: ["exact", "not needed"],
  allow_requests_on_db_unavailable: ["unsupported", "a call that cannot be recorded is not sent"],
  proxy_batch_write_at: ["exact", "not needed: rows are written before a response ends"],
  max_parallel_requests: [
    "manual",
    "set overload: { max_concurrent: … } for one process, or a limit of a key",
  ],
  global_max_parallel_requests: ["manual", "overload: { max_concurrent: … }"],
  custom_auth: ["unsupported", "use a middleware with `admit` (docs/plugins/middleware.md)"],
  pass_through_endpoints: ["unsupported", "other paths are not forwarded"],
  ui_access_mode: ["exact", "the console has its own listener"],
};

/** Observers by the name of their LiteLLM callback. */
const CALLBACK_OBSERVERS: Readonly<
  Record<string, readonly [observer: string | undefined, FindingKind, string]>
> = {
  prometheus: [
    "metrics",
    "approximate",
    "use the observer metrics; its metric names differ (docs/reference/metrics.md)",
  ],
  otel: [undefined, "manual", "observers: [{ use: otlp, with: { endpoint: … } }]"],
  langfuse: [
    undefined,
    "manual",
    "use the observer otlp to export spans; they do not contain prompts",
  ],
  langfuse_otel: [
    undefined,
    "manual",
    "use the observer otlp to export spans; they do not contain prompts",
  ],
  arize_phoenix: [
    undefined,
    "manual",
    "use the observer otlp to export spans; they do not contain prompts",
  ],
  datadog: [
    undefined,
    "manual",
    "use the observer otlp to export spans, metrics, and logs to its agent",
  ],
};

export function importLitellmSettings(settings: SourceValue, draft: ConfigDraft): void {
  applyRules(settings, LITELLM_SETTINGS);
  for (const key of ["callbacks", "success_callback", "failure_callback", "service_callback"]) {
    const place = settings.get(key);
    for (const name of place.readTexts()) {
      const [observer, kind, message] = CALLBACK_OBSERVERS[name] ?? [
        undefined,
        "unsupported" as const,
        `there is no equivalent of "${name}"; an observer can be one (docs/plugins/observer.md)`,
      ];
      if (observer !== undefined) draft.observers.add(observer);
      place.report(kind, `${name}: ${message}`);
    }
  }
  const timeout = settings.get("request_timeout").readNumber();
  if (timeout !== undefined) draft.settings["timeouts"] ??= toTimeouts(timeout, undefined);
}

export const importGeneralSettings = (settings: SourceValue): void =>
  applyRules(settings, GENERAL_SETTINGS);

function applyRules(settings: SourceValue, rules: SettingRules): void {
  for (const [key, [kind, message]] of Object.entries(rules))
    if (settings.get(key).exists) settings.get(key).report(kind, message);
}
