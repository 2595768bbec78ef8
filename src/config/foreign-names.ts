// Names of other products for plugins and config keys, with the names to use in gateway.yaml.
import type { PluginKind } from "../plugin/define.ts";

const PLUGIN_ALIASES: Readonly<Partial<Record<PluginKind, Readonly<Record<string, string>>>>> = {
  provider: { gemini: "google", claude: "anthropic", grok: "xai", "azure-openai": "azure" },
  frontend: {
    google: "gemini",
    openai: "chat-completions",
    chat: "chat-completions",
    anthropic: "messages",
  },
  middleware: { cors: "auth", budget: "limits", "rate-limit": "limits", "rate-limits": "limits" },
  observer: { prometheus: "metrics", otel: "otlp", opentelemetry: "otlp", log: "access-log" },
};

/** Returns the name here of what another product calls `use`, if it is known. */
export function findPluginAlias(
  kind: PluginKind,
  use: string,
  known: readonly string[],
): string | undefined {
  const names = PLUGIN_ALIASES[kind] ?? {};
  const name = Object.hasOwn(names, use) ? names[use] : undefined;
  return name !== undefined && known.includes(name) ? name : undefined;
}

const LIMIT_HINT = "write limits: [usd=100/month]";
const RATE_HINT = "write limits: [requests=60/minute]";
const ACCOUNT_HINT = "under accounts.<name>, or tollgate keys create --limit";

/** Hints about replacements, by the key in lower case without separators between its words. */
const KEY_HINTS: Readonly<Record<string, string>> = {
  accesslog: "write observers: [console, access-log]",
  alerts: "write observers: [console, { use: alerts, with: { receivers: … } }]",
  budget: `${LIMIT_HINT} ${ACCOUNT_HINT} usd=100/month`,
  budgets: `${LIMIT_HINT} ${ACCOUNT_HINT} usd=100/month`,
  drain: "write shutdown: { announce: 5s, timeout: 300s }",
  maxbudget: `${LIMIT_HINT} ${ACCOUNT_HINT} usd=100/month`,
  metrics: "write observers: [console, metrics]",
  otlp: "write observers: [console, { use: otlp, with: { endpoint: … } }]",
  ratelimit: `${RATE_HINT} ${ACCOUNT_HINT} requests=60/minute`,
  ratelimits: `${RATE_HINT} ${ACCOUNT_HINT} requests=60/minute`,
  rpm: `${RATE_HINT} ${ACCOUNT_HINT} requests=60/minute`,
  zdrfields: "write zdr_allowed_fields",
  zdr: "write middleware: [auth, zdr, limits, usage], and privacy: required on an account or a key",
};

/**
 * Returns what to write in place of an unknown key of gateway.yaml, or undefined if no hint exists.
 */
export function findKeyHint(key: string, known: Iterable<string>): string | undefined {
  const normalized = key.toLowerCase().replace(/[^a-z]/g, "");
  // If limits can be set in this place, the rest of the sentence would be wrong.
  if (!Object.hasOwn(KEY_HINTS, normalized)) return undefined;
  const hint = KEY_HINTS[normalized]!;
  return [...known].includes("limits") ? hint.split(` ${ACCOUNT_HINT}`)[0] : hint;
}
