// Examples for the configuration reference: one file for each page, and one value for each key.
// test/docs/pages.test.ts checks the files, and test/docs/reference.test.ts checks the values.
import { stringify } from "yaml";
import { DURATION_PATTERN, SIZE_PATTERN } from "../../src/lib/time/units.ts";
import type { Setting } from "./settings.ts";

const yaml = (text: string): string => `\`\`\`yaml\n${text.trim()}\n\`\`\``;
const PROVIDER = "providers:\n  demo: { use: demo }";

/** Examples by page, or by kind and name of a plugin. */
export const CONFIG_EXAMPLES: Readonly<Record<string, string>> = {
  README: yaml(`
frontends: [chat-completions, messages, models]
providers:
  openai:
    with: { api_key: "\${env:OPENAI_API_KEY}" }
models:
  fast: openai/gpt-5-mini`),
  listen: yaml(`
listen:
  host: 0.0.0.0
  port: 8787
  hosts: [llm.example.com]
public_url: https://llm.example.com
${PROVIDER}`),
  admin: yaml(`
admin:
  port: 9787
  tokens:
    scraper: { role: metrics, token: "\${env:SCRAPER_TOKEN}" }
${PROVIDER}`),
  process: yaml(`
state_dir: ./state
workers: 2
shutdown: { announce: 5s, timeout: 120s }
log: { level: warn }
${PROVIDER}`),
  requests: yaml(`
timeouts: { connect: 3s, total: 1800s }
retries: { per_target: 2, total: 4 }
max_body: 64MiB
overload: { max_concurrent: 2000, max_queue_wait: 100ms }
${PROVIDER}`),
  providers: yaml(`
proxy: { url: "http://proxy.example.com:3128", bypass: ["*.internal"] }
providers:
  openai:
    credentials:
      - name: team-a
        with: { api_key: "\${env:OPENAI_API_KEY}" }
        weight: 2
      - name: team-b
        with: { api_key: "\${env:OPENAI_B_KEY}" }
        zdr: { declared: true, note: "Agreement of 2026-02-01", until: 2027-02-01 }`),
  "model-metadata": yaml(`
providers:
  local:
    use: openai-compatible
    with: { base_url: "http://127.0.0.1:8000/v1" }
    models:
      llama-4:
        operation: chat
        limits: { context: 131072, output: 8192 }
        can: { tools: true, vision: false }
        price: free`),
  prices: yaml(`
providers:
  local:
    use: openai-compatible
    with: { base_url: "http://127.0.0.1:8000/v1" }
    models:
      llama-4:
        price: { input: "0.25", cache_read: "0.025", output: "1.50" }`),
  models: yaml(`
models:
  fast:
    candidates: [openai/gpt-5-mini, anthropic/claude-haiku-4-5]
    fallback_on: [rate_limited, overloaded, timeout, context_length]
  cheap: openai/gpt-5-nano
providers:
  openai: { with: { api_key: "\${env:OPENAI_API_KEY}" } }
  anthropic: { with: { api_key: "\${env:ANTHROPIC_API_KEY}" } }`),
  accounts: yaml(`
accounts:
  research:
    name: Research
    limits: [usd=300/month, concurrent=20]
    models: ["demo/*"]
    labels: { cost_center: "4711" }
key_defaults: { limits: [requests=600/minute] }
scopes:
  session: { from: [session], limits: [usd=20/total], idle: 12h }
${PROVIDER}`),
  store: yaml(`
store:
  use: sqlite
  with: { durability: process }
ledger: { retention: 400d }
${PROVIDER}`),
  "store-postgres": yaml(`
store:
  use: postgres
  with:
    url: "\${env:TOLLGATE_STORE_URL}"
    on_outage: offline_budget
${PROVIDER}`),
  jobs: yaml(`
frontends:
  - chat-completions
  - use: jobs
    with:
      dir: /mnt/shared/tollgate
      max_file_mb: 1024
${PROVIDER}`),
  frontends: yaml(`
frontends:
  - chat-completions
  - use: messages
    with: { accept: [x-api-key] }
${PROVIDER}`),
  "messages-and-responses": yaml(`
frontends:
  - { use: messages, with: { gateway_mcp: {} } }
  - { use: responses, with: { reasoning: text, gateway_mcp: { max_turns: 5 } } }
  - use: mcp
    with:
      servers: { github: { url: https://mcp.example.com/mcp } }
${PROVIDER}`),
  middleware: yaml(`
middleware:
  - auth
  - zdr
  - use: limits
    with: { limits: [requests=600/minute], hold: expected }
  - use: usage
    for: { models: ["demo/*"] }
    on_error: continue
${PROVIDER}`),
  "middleware jwt": yaml(`
middleware:
  - use: jwt
    with:
      issuers:
        corp:
          issuer: https://login.example.com
          audience: [tollgate]
          jwks: https://login.example.com/keys
          account: staff
accounts:
  staff: { limits: [usd=500/month] }
${PROVIDER}`),
  observers: yaml(`
observers:
  - metrics
  - use: access-log
    with: { file: logs/access.jsonl, client_address: none }
admin:
  tokens:
    scraper: { role: metrics, token: "\${env:SCRAPER_TOKEN}" }
${PROVIDER}`),
  alerts: yaml(`
observers:
  - use: alerts
    with:
      receivers:
        on_call: { url: "https://alerts.example.com/tollgate", secret: "\${env:ALERTS_SECRET}" }
      rules:
        - { on: [provider.cooldown_started, ledger.down], to: [on_call] }
${PROVIDER}`),
  reconcile: yaml(`
observers:
  - use: reconcile
    with:
      bills:
        demo: { from: openai, key: "\${env:OPENAI_ADMIN_KEY}" }
      daily: true
${PROVIDER}`),
  otlp: yaml(`
observers:
  - use: otlp
    with:
      endpoint: http://127.0.0.1:4318
      signals: [traces, metrics]
      sample_ratio: 0.1
${PROVIDER}`),
  "provider-plugins": yaml(`
providers:
  openai: { with: { api_key: "\${env:OPENAI_API_KEY}" } }
  openai-eu:
    use: openai
    with: { api_key: "\${env:OPENAI_EU_KEY}", base_url: "https://eu.api.openai.com/v1" }`),
};

/** Example values by the last part of the path, or by the end of the path where that is ambiguous. */
const VALUES: Readonly<Record<string, unknown>> = {
  "listen.host": "0.0.0.0",
  "listen.port": 8080,
  "admin.host": "10.0.0.5",
  "admin.port": 9000,
  socket: "./run/tollgate.sock",
  mode: "0660",
  cert: "./tls/fullchain.pem",
  key: "./tls/key.pem",
  "bills.<name>.from": "openai",
  "bills.<name>.key": "${env:OPENAI_ADMIN_KEY}",
  "bills.<name>.base_url": "https://api.openai.com",
  "bills.<name>.files": ["./bills/2026-10.csv"],
  "bills.<name>.models": { "gpt-4o-0806": "chat" },
  daily: true,
  max_difference: 5,
  "views.<name>.currency": "EUR",
  "views.<name>.rate": "0.92",
  "views.<name>.rates": "./rates/eur.csv",
  "views.<name>.margin": "12.5",
  "views.<name>.accounts": ["acme"],
  "prices.from": "https://prices.example.com/tollgate-prices.txt",
  "prices.key": "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
  ca: "./tls/clients.pem",
  hosts: ["llm.example.com"],
  origins: ["https://app.example.com"],
  token: "${env:SCRAPER_TOKEN}",
  issuer: "https://login.example.com",
  client_id: "tollgate",
  client_secret: "${env:OIDC_SECRET}",
  "oidc.url": "https://admin.example.com",
  scopes: ["profile", "email", "groups"],
  groups: "roles",
  "oidc.name": "preferred_username",
  account: "research",
  "proxy.url": "http://proxy.example.com:3128",
  bypass: ["*.internal"],
  public_url: "https://llm.example.com",
  state_dir: "./state",
  "jobs.dir": "/mnt/shared/tollgate",
  "background.dir": "/mnt/shared/tollgate",
  include: ["providers/*.yaml"],
  allow: ["tollgate-store-postgres"],
  response_headers: ["x-tollgate-provider", "x-tollgate-cost"],
  retention: "400d",
  use: "demo",
  "for.models": ["openai/gpt-*"],
  "for.frontends": ["messages"],
  "for.providers": ["openai"],
  when: "${env:OPENAI_API_KEY}",
  credentials: [{ name: "team-a", with: { api_key: "${env:OPENAI_API_KEY}" } }],
  "credentials[].name": "team-a",
  note: "Agreement of 2026-02-01",
  until: "2027-02-01",
  "credentials[].models": ["gpt-5*"],
  client_accounts: ["engineering"],
  zdr_allowed_fields: ["min_p"],
  frontends: ["chat-completions", "messages"],
  middleware: ["auth", "zdr", "limits", "usage"],
  observers: ["metrics", "access-log"],
  operation: "chat",
  "models.<name>.name": "Llama 4",
  protocols: ["chat-completions"],
  rejected_fields: ["temperature"],
  priced_as: "gpt-5-mini",
  region: ["eu"],
  evidence: ["https://example.com/privacy"],
  verified_at: "2026-11-01",
  expires: "2027-05-01",
  "limits.context": 131_072,
  "limits.input": 120_000,
  "limits.output": 8192,
  "limits.images": 4,
  "data_policy.retention": "zero",
  "retention.days": 30,
  "price.images": "0.04",
  sizes: ["1024x1024", "auto"],
  "sides.min": 256,
  "sides.max": 2048,
  "sides.step": 16,
  qualities: ["low", "high"],
  formats: ["png", "webp"],
  released: "2026-04-01",
  retires: "2027-04-01",
  "price.from": "2027-01-01",
  parent: "company",
  "accounts.<name>.name": "Research",
  limits: ["usd=300/month", "concurrent=20"],
  "accounts.<name>.models": ["openai/*"],
  from: ["session"],
  within: "account",
  "scopes.<name>.models": ["anthropic/claude-opus-*"],
  "scopes.<name>.providers": ["anthropic"],
  "scopes.<name>.credentials": ["team-a"],
  "scopes.<name>.accounts": ["research"],
  overflow: "warn",
  "overflow.downgrade": "anthropic/claude-haiku-4-5",
  "models.<name>.description": "For everyday coding",
  "scopes.<name>.hold": "hard",
  candidates: ["openai/gpt-5-mini", "anthropic/claude-haiku-4-5"],
  "candidates[].model": "openai/gpt-5-mini",
  weight: 2,
  fallback_on: ["rate_limited", "context_length"],
  hedge: "2s",
  pick: "sticky",
  // Options of plugins.
  accept: ["bearer"],
  default_model: "openai/omni-moderation-latest",
  "keys[].id": "ci",
  "keys[].digest": "0".repeat(64),
  "keys[].name": "CI",
  "keys[].models": ["demo/*"],
  "keys[].frontends": ["messages"],
  "keys[].expires": "2027-01-31",
  "names.<name>.models": ["demo/*"],
  "names.<name>.frontends": ["messages"],
  audience: ["tollgate"],
  jwks: "https://login.example.com/keys",
  jwks_file: "./keys.json",
  "map.id": "sub",
  "map.name": "preferred_username",
  "map.account": "department",
  "map.models": "allowed_models",
  "map.privacy": "zdr",
  label_headers: ["x-team"],
  "access-log.file": "logs/access.jsonl",
  "access-log.fields": ["time", "id", "status", "model", "cost_usd"],
  ok: 0.1,
  "receivers.<name>.url": "https://alerts.example.com/tollgate",
  "webhooks[].url": "https://app.example.com/webhooks",
  "webhooks[].events": ["batch.*"],
  "webhooks[].accounts": ["research"],
  "webhooks[].keys": ["ci"],
  secret: "${env:ALERTS_SECRET}",
  rules: [{ on: ["ledger.down"], to: ["on_call"] }],
  on: ["budget.threshold_reached", "ledger.down"],
  "where.account": ["research"],
  "where.key": ["key_4f2c"],
  "where.provider": ["openai"],
  "where.model": ["openai/gpt-*"],
  "where.credential": ["team-a"],
  "where.code": ["model_not_found"],
  percent: [80, 100],
  to: ["on_call"],
  "alerts.gateway": "production",
  endpoint: "http://127.0.0.1:4318",
  signals: ["traces", "metrics"],
  sample_ratio: 0.1,
  "metrics.labels": ["team"],
  "sqlite.file": "./ledger.db",
  base_url: "https://llm.example.com/v1",
  api_key: "${env:OPENAI_API_KEY}",
  "anthropic.betas": ["files-api-2026-04-14"],
  version: "2023-06-01",
  drop_fields: ["seed"],
  key_header: "api-key",
  images: ["*flux*"],
  embeddings: ["*embed*"],
  rerank: ["*rerank*"],
  speech: ["tts*"],
  transcriptions: ["*whisper*"],
  videos: ["sora*"],
  migrate_url: "postgres://owner@db.internal:5432/tollgate",
  read_url: "postgres://reader@replica.internal:5432/tollgate",
  "postgres.url": "postgres://gateway@db.internal:5432/tollgate",
  password_file: "/run/secrets/db-password",
  "postgres.schema": "tollgate",
  ca_file: "./tls/db-ca.pem",
  cert_file: "./tls/db-client.pem",
  key_file: "./tls/db-client-key.pem",
  // Options of providers in packages.
  "aws.region": "eu-central-1",
  "aws.claude": ["*claude-team*"],
  "aws.openai": ["openai.gpt-oss*"],
  "aws.mantle": ["openai.*"],
  "aws.betas": ["context-1m-2025-08-07"],
  "aws.guardrail": { id: "gr1abc2def3", version: "2" },
  "aws.guardrail.id": "gr1abc2def3",
  "aws.guardrail.version": "2",
  runtime_url: "https://vpce-1.bedrock-runtime.eu-central-1.vpce.amazonaws.com",
  agent_url: "https://vpce-1.bedrock-agent-runtime.eu-central-1.vpce.amazonaws.com",
  mantle_url: "https://vpce-1.bedrock-mantle.eu-central-1.vpce.amazonaws.com",
  control_url: "https://vpce-1.bedrock.eu-central-1.vpce.amazonaws.com",
  "aws.api_key": "${env:AWS_BEARER_TOKEN_BEDROCK}",
  access_key_id: "${env:AWS_ACCESS_KEY_ID}",
  secret_access_key: "${env:AWS_SECRET_ACCESS_KEY}",
  session_token: "${env:AWS_SESSION_TOKEN}",
  profile: "bedrock",
  "vertex.project": "acme-models",
  "vertex.version": "v1",
  "vertex.base_url": "https://europe-west1-aiplatform.googleapis.com",
  service_account: "${file:/run/secrets/vertex.json}",
  access_token: "${env:VERTEX_ACCESS_TOKEN}",
  "vertex.api_key": "${env:VERTEX_API_KEY}",
  resource: "acme-ai",
  "azure-foundry.base_url": "https://acme-ai.openai.azure.com/openai/v1",
  claude_url: "https://acme-ai.services.ai.azure.com/anthropic/v1",
  api_version: "preview",
  "azure-foundry.api_key": "${env:AZURE_API_KEY}",
  tenant_id: "00000000-0000-0000-0000-000000000000",
  "azure-foundry.client_id": "11111111-1111-1111-1111-111111111111",
  "azure-foundry.client_secret": "${env:AZURE_CLIENT_SECRET}",
  // Options of the frontend claude-gateway.
  "claude-gateway.oidc": {
    issuer: "https://login.example.com",
    client_id: "tollgate",
    client_secret: "${env:OIDC_TOKEN}",
  },
  "claude-gateway.oidc.parameters": { access_type: "offline", prompt: "consent" },
  "claude-gateway.groups": "/realm_access/roles",
  "claude-gateway.settings": [{ account: "research", file: "./claude-settings.json" }],
  "claude-gateway.settings[].account": "research",
  "claude-gateway.settings[].file": "./claude-settings.json",
  "claude-gateway.telemetry": { url: "https://collector.example.com" },
  "claude-gateway.telemetry.url": "https://collector.example.com",
  "claude-gateway.telemetry.headers": { "x-api-key": "${env:COLLECTOR_KEY}" },
  "claude-gateway.map": { account: "groups", name: "name" },
  login_notice: "Sign in with your company account",
  run_role: "tollgate_run",
  read_role: "tollgate_read",
  tools: ["github/*"],
  "mcp.servers.<name>.auth.header": "x-api-key",
  "mcp.servers.<name>.auth.issuer": "https://login.example.com",
  "mcp.servers.<name>.auth.token_url": "https://login.example.com/token",
  "mcp.servers.<name>.auth.client_id": "tollgate",
  "mcp.servers.<name>.auth.client_secret": "${env:CLIENT_TOKEN}",
  "mcp.servers.<name>.auth.scopes": ["read"],
  "mcp.servers.<name>.auth.audience": "billing",
  "mcp.authorization": {
    resource: "https://gateway.example.com",
    servers: ["https://login.example.com"],
  },
  "mcp.authorization.resource": "https://gateway.example.com",
  "mcp.authorization.servers": ["https://login.example.com"],
  "mcp.authorization.scopes": { "repo:read": ["github/get_*"] },
  "mcp.authorization.scopes.<name>": ["github/get_*"],
  "mcp.connections": { admin_url: "https://admin.example.com" },
  "mcp.connections.admin_url": "https://admin.example.com",
  "mcp.connections.encryption_keys": ["${env:MCP_VAULT_KEY}"],
  "mcp.servers.<name>.url": "https://mcp.example.com/mcp",
  "auth.token": "${env:MCP_TOKEN}",
  "openapi.document": "./api.yaml",
  "openapi.document_url": "https://api.example.com/openapi.json",
  operations: ["tag:issues"],
  exclude: ["deleteIssue"],
  "tools.allow": ["get_*"],
  "tools.deny": ["delete_*"],
  "tools.pin.<name>": "0".repeat(64),
  "prices.<name>": "0.005",
  "servers.<name>.conditions": [{ tools: ["create_issue"], arguments: { required: ["owner"] } }],
  "remote-mcp.allow": [{ servers: ["https://mcp.example.com/*"] }],
  "remote-mcp.allow[].servers": ["https://mcp.example.com/*"],
  "remote-mcp.allow[].keys": ["agent"],
  "remote-mcp.allow[].accounts": ["research"],
  gateway_mcp: { max_turns: 10, max_calls: 50 },
  "conditions[].tools": ["create_issue"],
  "conditions[].keys": ["ci"],
  "conditions[].accounts": ["research"],
  "conditions[].arguments": { required: ["owner"] },
  "sets.<name>": ["github/get_*"],
};

const isKnown = (name: string): boolean => Object.hasOwn(VALUES, name);

/** Returns an example value of a key, or undefined if there is none. */
export function exampleValue({ path, schema, isMap }: Setting, plugin?: string): unknown {
  const whole = plugin === undefined ? path : `${plugin}.${path}`;
  const parts = whole.split(".");
  for (let from = 0; from < parts.length; from++) {
    const name = parts.slice(from).join(".");
    if (isKnown(name)) return VALUES[name];
    if (name.endsWith("[]") && isKnown(name.slice(0, -2))) return VALUES[name.slice(0, -2)];
  }
  const values = schema["enum"] as readonly unknown[] | undefined;
  const first = schema["default"];
  if (values) return values.find((value) => value !== first) ?? values[0];
  if (schema["type"] === "boolean") return first !== true;
  if (schema["pattern"] === DURATION_PATTERN) return first ?? "30s";
  if (schema["pattern"] === SIZE_PATTERN) return first ?? "64MiB";
  if (first !== undefined && !isMap) return first;
  if (schema["type"] === "integer") return schema["maximum"] === 65_535 ? 9000 : 5000;
  return undefined;
}

/** Returns the example as one line of YAML: "connect: 5s". */
export function inlineExample(setting: Setting, plugin?: string): string | undefined {
  const value = exampleValue(setting, plugin);
  const key = setting.path.split(".").at(-1)!.replace("[]", "");
  if (value === undefined) return undefined;
  const flow = stringify({ [key]: value }, { collectionStyle: "flow", lineWidth: 0 }).trim();
  // The outer braces belong to the map that contains the key.
  return flow.replace(/^\{ ?/, "").replace(/ ?\}$/, "").replaceAll("[ ", "[").replaceAll(" ]", "]");
}
