// Hosts of open models whose documented API is the basic OpenAI API. Their URLs were taken from
// secondary sources.
import { type Backend, plain, but } from "./row-backend.ts";

export const hosts: readonly Backend[] = [
  {
    name: "baseten",
    summary: "Baseten",
    limits: "none",
    errors: "openai",
    unverified: ["base", "models", "thinking", "limits", "errors"],
    base: "https://inference.baseten.co/v1",
    protocols: { "chat-completions": plain },
  },
  {
    name: "coreweave",
    summary: "CoreWeave Serverless Inference",
    limits: "none",
    errors: "openai",
    unverified: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.inference.wandb.ai/v1",
    protocols: { "chat-completions": plain },
  },
  {
    name: "nebius",
    summary: "Nebius",
    limits: "none",
    errors: "openai",
    unverified: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.tokenfactory.nebius.com/v1",
    protocols: { "chat-completions": plain },
  },
  {
    name: "novita",
    summary: "Novita AI",
    limits: "none",
    errors: "openai",
    unverified: ["base", "models", "thinking", "batches", "limits", "errors"],
    base: "https://api.novita.ai/openai/v1",
    batches: { protocols: ["chat-completions"] },
    protocols: { "chat-completions": plain },
  },
  {
    name: "parasail",
    summary: "Parasail",
    limits: "none",
    errors: "openai",
    unverified: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.parasail.io/v1",
    protocols: { "chat-completions": plain },
  },
  {
    name: "hyperbolic",
    summary: "Hyperbolic",
    limits: "none",
    errors: "openai",
    unverified: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.hyperbolic.xyz/v1",
    protocols: { "chat-completions": plain },
  },
  {
    name: "siliconflow",
    summary: "SiliconFlow",
    limits: "none",
    errors: "openai",
    unverified: [
      "base",
      "models",
      "embeddings",
      "rerank",
      "thinking",
      "batches",
      "limits",
      "errors",
    ],
    base: "https://api.siliconflow.com/v1",
    batches: { protocols: ["chat-completions"], lines: 5_000, bytes: 1_000_000_000 },
    protocols: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "enable_thinking", echo: "reasoning_content" },
      },
      embeddings: {},
      rerank: {},
    },
  },
  {
    name: "chutes",
    summary: "Chutes",
    limits: "none",
    errors: "openai",
    unverified: ["base", "models", "thinking", "limits", "errors"],
    base: "https://llm.chutes.ai/v1",
    protocols: { "chat-completions": plain },
  },
];

// Cloud platforms that offer the protocols of several vendors in one account. The URL depends on
// the account, so `base_url` is required. Models have the names of the account's own deployments or
// profiles, so they are not listed here.

/** Names of Claude inference profiles, regional and global. */
const CLAUDE = ["", "us.", "eu.", "apac.", "jp.", "au.", "ca.", "in.", "us-gov.", "global."].map(
  (region) => `${region}anthropic.*`,
);
const OTHERS = "openai qwen deepseek google moonshotai zai minimax mistral nvidia xai meta amazon"
  .split(" ")
  .map((vendor) => `${vendor}.*`);

export const platforms: readonly Backend[] = [
  {
    name: "azure",
    summary: "Azure OpenAI; base_url is https://<resource>.openai.azure.com/openai/v1",
    stability: "beta",
    limits: "openai",
    errors: "openai",
    models: false,
    auth: { header: "api-key" },
    protocols: {
      responses: {},
      "chat-completions": {
        maxTokens: "max_completion_tokens",
        cacheWriteTtl: "30m",
        dropFields: but(
          "store",
          "metadata",
          "service_tier",
          "prompt_cache_key",
          "prediction",
          "verbosity",
        ),
        reasoning: { control: "effort", defaultEffort: "medium", echo: "never" },
      },
      images: { responseFormat: "bytes" },
      embeddings: { task: false },
      realtime: {},
    },
  },
  {
    name: "azure-anthropic",
    summary: "Claude in Azure; base_url is https://<resource>.services.ai.azure.com/anthropic/v1",
    limits: "anthropic",
    errors: "anthropic",
    unverified: ["limits"],
    models: false,
    auth: { header: "x-api-key" },
    // Signatures of Claude are valid on every platform.
    protocols: {
      messages: {
        signer: "messages",
        acceptsUnsignedThinking: false,
        betas: true,
        thinking: "adaptive",
      },
    },
  },
  {
    name: "bedrock",
    summary:
      "Amazon Bedrock by API key; base_url is https://bedrock-runtime.<region>.amazonaws.com/openai/v1",
    limits: "none",
    errors: "openai",
    unverified: ["models served", "errors"],
    models: false,
    protocols: {
      messages: {
        base: "../../anthropic/v1",
        servedModels: CLAUDE,
        signer: "messages",
        acceptsUnsignedThinking: false,
        thinking: "adaptive",
      },
      responses: { servedModels: OTHERS },
      "chat-completions": {
        servedModels: OTHERS,
        maxTokens: "max_completion_tokens",
        dropFields: but(),
        customTools: false,
        reasoning: { control: "effort" },
      },
    },
  },
];

// Gateways like Tollgate, with providers behind them. Privacy requirements are forwarded to them,
// so the inner gateway also fails closed.

export const routers: readonly Backend[] = [
  {
    name: "openrouter",
    summary: "OpenRouter",
    limits: "openrouter",
    errors: "openai",
    unverified: ["limits", "affinity"],
    stability: "beta",
    base: "https://openrouter.ai/api/v1",
    sessionAffinity: { header: "x-session-id" },
    models: { prices: "per_token" },
    protocols: {
      "chat-completions": {
        maxTokens: "max_tokens",
        developerRole: true,
        topK: true,
        mediaUrls: true,
        cacheMarks: "cache_control",
        cacheWriteTtl: "5m",
        customTools: false,
        dropFields: [
          "store",
          "safety_identifier",
          "prompt_cache_retention",
          "prompt_cache_options",
          "moderation",
        ],
        reasoning: { control: "reasoning", echo: "reasoning_details" },
      },
      responses: {},
      messages: { thinking: "adaptive" },
    },
  },
  {
    name: "vercel",
    summary: "Vercel AI Gateway",
    limits: "none",
    errors: "openai",
    unverified: ["limits", "errors"],
    base: "https://ai-gateway.vercel.sh/v1",
    models: { prices: "per_token" },
    protocols: {
      "chat-completions": {
        maxTokens: "max_tokens",
        customTools: false,
        topK: true,
        cacheMarks: "cache_control",
        cacheWriteTtl: "5m",
        reasoning: { control: "reasoning", echo: "reasoning_details" },
      },
      responses: {},
      messages: { header: "x-api-key", thinking: "adaptive" },
    },
  },
  {
    name: "huggingface",
    summary: "Hugging Face router",
    limits: "none",
    errors: "openai",
    unverified: ["responses", "thinking", "limits", "errors"],
    base: "https://router.huggingface.co/v1",
    protocols: { "chat-completions": plain, responses: {} },
  },
];
