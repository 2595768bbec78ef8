// Constructs of Bifrost's example configs.
import type { Corpus } from "./corpus.ts";

const config = (of: object) => JSON.stringify(of, null, 2);
const key = (name: string, more: object = {}) => ({
  name,
  value: `env.${name}`,
  weight: 1,
  ...more,
});
const providers = (of: object, more: object = {}) => config({ providers: of, ...more });
const one = { openai: { keys: [key("OPENAI_API_KEY", { models: ["*"] })] } };
const vk = (more: object) =>
  providers(one, { governance: { virtual_keys: [{ id: "vk-1", is_active: true, ...more }] } });

export const BIFROST: Corpus = {
  "one provider": providers(one),
  "a schema, stores and logs": providers(one, {
    $schema: "https://www.getbifrost.ai/schema",
    config_store: { enabled: true, type: "sqlite", config: { path: "./config.db" } },
    logs_store: { enabled: true, type: "postgres", config: { host: "db" } },
  }),
  "two keys with shares": providers({
    openai: { keys: [key("A", { weight: 0.7 }), key("B", { weight: 0.3 })] },
  }),
  "keys for some models": providers({
    openai: {
      keys: [key("A", { models: ["gpt-5"] }), key("B", { models: ["gpt-5-mini", "gpt-5"] })],
    },
  }),
  "models that a key may not use": providers({
    openai: { keys: [key("A", { models: ["*"], blacklisted_models: ["o1"] })] },
  }),
  "a key for batches": providers({ openai: { keys: [key("A", { use_for_batch_api: true })] } }),
  "a key that stands in the file": providers({
    groq: { keys: [{ name: "g", value: "gsk-0123456789abcdef", weight: 1 }] },
  }),
  "gemini under its own name": providers({ gemini: { keys: [key("GEMINI_API_KEY")] } }),
  "azure with deployments": providers({
    azure: {
      keys: [
        key("AZURE_KEY", {
          models: ["gpt-5", "backup"],
          azure_key_config: {
            endpoint: "https://acme.openai.azure.com",
            api_version: "2025-04-01-preview",
            deployments: { "gpt-5": "gpt-5", backup: "gpt-5-3" },
          },
        }),
      ],
    },
  }),
  "azure in three regions": providers({
    azure: {
      keys: ["us", "eu", "asia"].map((region, i) =>
        key(`AZURE_${region.toUpperCase()}`, {
          weight: i + 1,
          models: region === "asia" ? ["gpt-5"] : ["gpt-5", "gpt-5-mini"],
          azure_key_config: { endpoint: `https://acme-${region}.openai.azure.com/` },
        }),
      ),
    },
  }),
  "azure with its address in a variable": providers({
    azure: { keys: [key("AZURE_KEY", { azure_key_config: { endpoint: "env.AZURE_ENDPOINT" } })] },
  }),
  "azure with Entra ID": providers({
    azure: {
      keys: [
        {
          name: "entra",
          weight: 1,
          azure_key_config: {
            endpoint: "https://acme.openai.azure.com",
            tenant_id: "env.T",
            client_id: "env.C",
            client_secret: "env.S",
          },
        },
      ],
    },
  }),
  "azure without an address": providers({ azure: { keys: [key("AZURE_KEY")] }, ...one }),
  "bedrock by keys": providers({
    bedrock: {
      keys: [
        {
          name: "b",
          weight: 1,
          models: ["*"],
          bedrock_key_config: {
            access_key: "env.ID",
            secret_key: "env.SECRET",
            region: "us-east-1",
          },
        },
      ],
    },
  }),
  "bedrock in two regions": providers({
    bedrock: {
      keys: ["us-east-1", "eu-central-1"].map((region) => ({
        name: region,
        weight: 1,
        models: ["*"],
        bedrock_key_config: { access_key: "env.ID", secret_key: "env.SECRET", region },
      })),
    },
  }),
  "bedrock with deployments": providers({
    bedrock: {
      keys: [
        {
          name: "b",
          weight: 1,
          models: [],
          bedrock_key_config: {
            access_key: "env.ID",
            secret_key: "env.SECRET",
            region: "us-east-1",
            arn: "arn:aws:bedrock:us-east-1:1:inference-profile",
            deployments: { haiku: "global.anthropic.claude-haiku-4-5-20251001-v1:0" },
          },
        },
      ],
    },
  }),
  "vertex by a service account": providers({
    vertex: {
      keys: [
        {
          name: "v",
          weight: 1,
          models: ["gemini-2.5-pro"],
          vertex_key_config: {
            project_id: "p-1",
            region: "us-east1",
            auth_credentials: "env.VERTEX",
          },
        },
      ],
    },
  }),
  "vertex in two regions": providers({
    vertex: {
      keys: [
        {
          name: "v",
          weight: 1,
          models: ["*"],
          vertex_key_config: { project_id: "env.P", region: "env.R", auth_credentials: "env.V" },
        },
        {
          name: "g",
          weight: 1,
          models: ["claude-sonnet-4-6"],
          vertex_key_config: { project_id: "env.P", region: "global", auth_credentials: "env.V" },
        },
      ],
    },
  }),
  "addresses of one's own": providers(
    Object.fromEntries(
      ["openai", "anthropic", "gemini", "groq", "mistral", "ollama", "vllm", "sgl"].map((name) => [
        name,
        {
          keys: [key(`${name.toUpperCase()}_KEY`)],
          network_config: { base_url: "http://localhost:8000" },
        },
      ]),
    ),
  ),
  "times, retries, a proxy and pools": providers({
    openai: {
      keys: [key("A")],
      network_config: {
        default_request_timeout_in_seconds: 300,
        max_retries: 2,
        retry_backoff_initial: 100,
      },
      concurrency_and_buffer_size: { concurrency: 1000, buffer_size: 5000 },
      proxy_config: { type: "http", url: "http://proxy:3128" },
    },
  }),
  "a provider of one's own": providers({
    mine: {
      keys: [key("MINE")],
      network_config: { base_url: "https://llm.example" },
      custom_provider_config: {
        base_provider_type: "openai",
        allowed_requests: { chat_completion: true },
      },
    },
  }),
  "providers that are not here": providers({
    ...one,
    elevenlabs: { keys: [key("E", { models: ["*"] })] },
    replicate: { keys: [key("R")], network_config: { default_request_timeout_in_seconds: 300 } },
  }),
  "ollama without keys": providers({
    ollama: { keys: [], network_config: { base_url: "http://localhost:11434" } },
  }),
  "a virtual key": vk({ name: "ci", value: "sk-bf-0123456789abcdef" }),
  "a virtual key in a variable": vk({ name: "ci", value: "env.BIFROST_VK" }),
  "a virtual key of some models": vk({
    name: "ci",
    value: "sk-bf-0123456789abcdef",
    provider_configs: [
      { provider: "openai", allowed_models: ["gpt-5"], key_ids: ["*"], weight: 1 },
      { provider: "azure", allowed_models: ["*"], key_ids: ["key-1"], weight: 0.5 },
    ],
  }),
  "a virtual key with tools": vk({
    name: "ci",
    value: "sk-bf-0123456789abcdef",
    mcp_configs: [{ mcp_client_name: "weather", tools_to_execute: ["*"] }],
  }),
  "customers, teams and budgets": providers(one, {
    governance: {
      budgets: [{ id: "b", max_limit: 100, reset_duration: "30d", current_usage: 12.5 }],
      rate_limits: [{ id: "r", request_max_limit: 60, request_reset_duration: "1h" }],
      customers: [{ id: "c", name: "Acme", budget_id: "b" }],
      teams: [{ id: "t", name: "Search", customer_id: "c", rate_limit_id: "r" }],
      virtual_keys: [
        {
          id: "v",
          name: "k",
          value: "sk-bf-0123456789abcdef",
          team_id: "t",
          budget_id: "b",
          is_active: true,
        },
      ],
      auth_config: { is_enabled: false, admin_username: "env.U", admin_password: "env.P" },
      routing_rules: [{ id: "x" }],
    },
  }),
  "plugins, tools and caches": providers(one, {
    plugins: [{ enabled: true, name: "otel", config: {} }],
    mcp: { client_configs: [{ name: "x" }] },
    vector_store: { enabled: true, type: "weaviate" },
    local_cache: { ttl: 300 },
    framework: { pricing: { pricing_sync_interval: 86400 } },
    client: { enable_logging: true, max_request_body_size_mb: 100 },
    server: { read_buffer_size: 65536 },
    encryption_key: "env.E",
  }),
  "no providers": config({ config_store: { enabled: true } }),
};
