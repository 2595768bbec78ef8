// Imports LiteLLM's global settings: callbacks that become observers, settings that are not needed,
// and settings without an equivalent.
import type { ConfigDraft } from "./config-draft.ts";
import { toTimeouts } from "./litellm-model-metadata.ts";
import type { FindingKind, SourceValue } from "./source-value.ts";

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

export function importLitellmSettings(said: SourceValue, draft: ConfigDraft): void {
  applyRules(said, LITELLM_SETTINGS);
  for (const key of ["callbacks", "success_callback", "failure_callback", "service_callback"]) {
    const place = said.get(key);
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
  const timeout = said.get("request_timeout").readNumber();
  if (timeout !== undefined) draft.settings["timeouts"] ??= toTimeouts(timeout, undefined);
}

export const importGeneralSettings = (said: SourceValue): void =>
  applyRules(said, GENERAL_SETTINGS);

function applyRules(said: SourceValue, rules: SettingRules): void {
  for (const [key, [kind, message]] of Object.entries(rules))
    if (said.get(key).exists) said.get(key).report(kind, message);
}
