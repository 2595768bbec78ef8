// Words that other products and people use for a plugin or a key of gateway.yaml, with what to write here.
import type { PluginKind } from "../plugin/define.ts";

const NAMES: Readonly<Partial<Record<PluginKind, Readonly<Record<string, string>>>>> = {
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

/** The name here of what another product calls `use`, if it is known. */
export function otherName(
  kind: PluginKind,
  use: string,
  known: readonly string[],
): string | undefined {
  const names = NAMES[kind] ?? {};
  const name = Object.hasOwn(names, use) ? names[use] : undefined;
  return name !== undefined && known.includes(name) ? name : undefined;
}

const LIMIT = "write limits: [usd=100/month]";
const RATE = "write limits: [requests=60/minute]";
const ACCOUNT = "under accounts.<name>, or tollgate keys create --limit";

/** What to write in place of a key, by the key in lower case without marks between its words. */
const KEYS: Readonly<Record<string, string>> = {
  accesslog: "write observers: [console, access-log]",
  alerts: "write observers: [console, { use: alerts, with: { to: … } }]",
  budget: `${LIMIT} ${ACCOUNT} usd=100/month`,
  budgets: `${LIMIT} ${ACCOUNT} usd=100/month`,
  maxbudget: `${LIMIT} ${ACCOUNT} usd=100/month`,
  metrics: "write observers: [console, metrics]",
  otlp: "write observers: [console, { use: otlp, with: { endpoint: … } }]",
  ratelimit: `${RATE} ${ACCOUNT} requests=60/minute`,
  ratelimits: `${RATE} ${ACCOUNT} requests=60/minute`,
  rpm: `${RATE} ${ACCOUNT} requests=60/minute`,
  zdr: "write middleware: [auth, zdr, limits, usage], and privacy: required on an account or a key",
};

/** What to write in place of a key that gateway.yaml does not have. Undefined: nothing is known of it. */
export function otherKey(key: string, known: Iterable<string>): string | undefined {
  const word = key.toLowerCase().replace(/[^a-z]/g, "");
  // Where limits can be written, the rest of the sentence would be wrong.
  if (!Object.hasOwn(KEYS, word)) return undefined;
  const hint = KEYS[word]!;
  return [...known].includes("limits") ? hint.split(` ${ACCOUNT}`)[0] : hint;
}
