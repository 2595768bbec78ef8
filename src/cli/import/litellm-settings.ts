// Imports LiteLLM's global settings: callbacks that become observers, settings that are not needed,
// and settings without an equivalent.
import type { ConfigDraft } from "./config-draft.ts";
import { toTimeouts } from "./litellm-model-metadata.ts";
import type { FindingKind, SourceValue } from "./source-value.ts";

type SettingRules = Readonly<Record<string, readonly [FindingKind, string]>>;

const LITELLM_SETTINGS: SettingRules = {
  drop_params: [
    "exact",
    "what a model does not know is left out and named in a header; `strict: true` refuses it",
  ],
  modify_params: ["exact", "translations do what a protocol asks for"],
  cache: [
    "unsupported",
    "answers are not kept; a middleware may be a cache (docs/plugins/middleware.md)",
  ],
  cache_params: [
    "unsupported",
    "answers are not kept; a middleware may be a cache (docs/plugins/middleware.md)",
  ],
  max_budget: [
    "manual",
    "give an account that limit, and put keys into it: accounts: { all: { limits: [usd=…/month] } }",
  ],
  budget_duration: ["manual", "it belongs to max_budget"],
  ssl_verify: [
    "manual",
    "authorities of one's own are said to Node: NODE_EXTRA_CA_CERTS=/path/ca.pem",
  ],
  set_verbose: ["approximate", "log: { level: debug }"],
  json_logs: ["exact", "lines are JSON wherever no person reads them"],
  turn_off_message_logging: ["exact", "no prompt is ever logged"],
  redact_user_api_key_info: ["exact", "no key is ever logged"],
  default_internal_user_params: ["unsupported", "there are no users beside keys and accounts"],
  default_team_settings: ["manual", "accounts.<name>.key_defaults says what new keys get"],
  guardrails: ["unsupported", "no guardrails come with the gateway"],
  num_retries: ["approximate", "`retries` says how often one request is tried"],
};

const GENERAL_SETTINGS: SettingRules = {
  master_key: [
    "manual",
    "make an admin (tollgate admins create ann --role owner), and a key for models (tollgate keys create)",
  ],
  database_url: [
    "manual",
    "its database is not used: export keys and teams, and name them with --keys and --teams",
  ],
  database_connection_pool_limit: ["exact", "not needed"],
  database_connection_timeout: ["exact", "not needed"],
  store_model_in_db: ["unsupported", "files are the truth here"],
  disable_spend_logs: ["unsupported", "every call is a row of the ledger"],
  alerting: [
    "manual",
    "observers: [{ use: alerts, with: { to: { chat: { url: …, format: slack } } } }]",
  ],
  alerting_threshold: ["manual", "it belongs to alerting"],
  alert_types: ["manual", "rules of the observer alerts"],
  enable_jwt_auth: ["manual", "middleware: [{ use: jwt, with: { issuers: … } }, auth]"],
  litellm_jwtauth: ["manual", "the claims go to `map` of the middleware jwt"],
  key_management_system: [
    "unsupported",
    "secrets come from variables, files and credentials of the service manager",
  ],
  key_management_settings: [
    "unsupported",
    "secrets come from variables, files and credentials of the service manager",
  ],
  maximum_spend_logs_retention_period: ["manual", "ledger: { retention: 400d }"],
  background_health_checks: ["exact", "not needed: what fails rests, and one call goes to see"],
  health_check_interval: ["exact", "not needed"],
  allow_requests_on_db_unavailable: ["unsupported", "what cannot be written down is not sent"],
  proxy_batch_write_at: ["exact", "not needed: rows are written before an answer ends"],
  max_parallel_requests: [
    "manual",
    "overload: { max_concurrent: … } for one process, or a limit of a key",
  ],
  global_max_parallel_requests: ["manual", "overload: { max_concurrent: … }"],
  custom_auth: ["unsupported", "a middleware with `admit` (docs/plugins/middleware.md)"],
  pass_through_endpoints: ["unsupported", "there is no way through for other paths"],
  ui_access_mode: ["exact", "the console is on a listener of its own"],
};

/** Observers by the name of their LiteLLM callback. */
const CALLBACK_OBSERVERS: Readonly<
  Record<string, readonly [observer: string | undefined, FindingKind, string]>
> = {
  prometheus: [
    "metrics",
    "approximate",
    "the observer metrics; its names are its own (docs/metrics.md)",
  ],
  otel: [undefined, "manual", "observers: [{ use: otlp, with: { endpoint: … } }]"],
  langfuse: [undefined, "manual", "the observer otlp sends spans there; prompts are not in them"],
  langfuse_otel: [
    undefined,
    "manual",
    "the observer otlp sends spans there; prompts are not in them",
  ],
  arize_phoenix: [
    undefined,
    "manual",
    "the observer otlp sends spans there; prompts are not in them",
  ],
  datadog: [undefined, "manual", "the observer otlp sends spans, metrics and lines to its agent"],
};

export function importLitellmSettings(said: SourceValue, draft: ConfigDraft): void {
  applyRules(said, LITELLM_SETTINGS);
  for (const key of ["callbacks", "success_callback", "failure_callback", "service_callback"]) {
    const place = said.get(key);
    for (const name of place.readTexts()) {
      const [observer, kind, message] = CALLBACK_OBSERVERS[name] ?? [
        undefined,
        "unsupported" as const,
        `nothing here is "${name}"; an observer may be (docs/plugins/observer.md)`,
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
