// Clouds that serve models of other vendors.
import { type Backend, but, plain } from "./row-backend.ts";
import { transcriptionModel } from "./operation-facts.ts";

/** Open models receive reasoning options through their chat templates. */
const template = { control: "chat_template_kwargs" } as const;

export const clouds: readonly Backend[] = [
  {
    name: "groq",
    summary: "Groq",
    limits: "openai",
    errors: "openai",
    stability: "beta",
    base: "https://api.groq.com/openai/v1",
    batches: { protocols: ["chat-completions"], bytes: 100_000_000 },
    facts: { asOf: "2026-11-22", models: [transcriptionModel("whisper-large-v3", "30.8")] },
    protocols: {
      "chat-completions": {
        ...plain,
        maxTokens: "max_completion_tokens",
        strictTools: true,
        dropFields: [...but("service_tier", "metadata"), "logit_bias", "logprobs", "top_logprobs"],
        rejectFields: ["n"],
        reasoning: {
          control: "effort",
          efforts: ["low", "medium", "high"],
          canDisable: false,
          echo: "reasoning",
        },
        models: [
          {
            of: ["qwen/qwen3.6*"],
            reasoning: {
              control: "effort",
              efforts: ["none", "default"],
              defaultEffort: "default",
              echo: "reasoning",
            },
          },
          {
            of: ["qwen/qwen3.8*"],
            reasoning: {
              control: "effort",
              efforts: ["none", "low", "medium", "high"],
              defaultEffort: "medium",
              echo: "reasoning",
            },
          },
          { of: ["llama-*", "meta-llama/*"], reasoning: { control: "none", echo: "never" } },
        ],
      },
      responses: {},
      transcriptions: {},
    },
  },
  {
    name: "together",
    summary: "Together AI",
    limits: "together",
    errors: "openai",
    unverified: ["images", "embeddings", "rerank", "limits"],
    stability: "beta",
    base: "https://api.together.ai/v1",
    models: { prices: "per_million" },
    protocols: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "reasoning.enabled", alsoAcceptsEffort: true, echo: "reasoning" },
        models: [
          {
            of: ["openai/gpt-oss*"],
            reasoning: {
              control: "effort",
              efforts: ["low", "medium", "high"],
              canDisable: false,
              echo: "reasoning",
            },
          },
        ],
      },
      images: { responseFormat: "base64", size: "width_height", maxImages: 4 },
      embeddings: { tokenIds: false },
      rerank: {},
    },
  },
  {
    name: "fireworks",
    summary: "Fireworks AI",
    limits: "fireworks",
    errors: "openai",
    unverified: ["limits", "affinity"],
    stability: "beta",
    base: "https://api.fireworks.ai/inference/v1",
    sessionAffinity: { header: "x-session-affinity" },
    protocols: {
      "chat-completions": {
        ...plain,
        dropFields: but("metadata"),
        topK: true,
        reasoning: {
          control: "effort",
          efforts: ["none", "low", "medium", "high", "xhigh", "max"],
          echo: "reasoning_content",
        },
        models: [
          {
            of: ["accounts/fireworks/models/kimi-k3*", "accounts/fireworks/models/glm-5p3*"],
            reasoning: {
              control: "effort",
              efforts: ["low", "high", "max"],
              canDisable: false,
              echo: "reasoning_content",
              echoRequired: true,
            },
          },
        ],
      },
      responses: {},
      messages: { thinking: "budget" },
    },
  },
  {
    name: "cerebras",
    summary: "Cerebras",
    limits: "cerebras",
    errors: "openai",
    stability: "beta",
    base: "https://api.cerebras.ai/v1",
    protocols: {
      "chat-completions": {
        ...plain,
        maxTokens: "max_completion_tokens",
        strictTools: true,
        dropFields: [
          ...but("service_tier", "prompt_cache_key"),
          "logit_bias",
          "presence_penalty",
          "frequency_penalty",
        ],
        rejectFields: ["n"],
        reasoning: {
          control: "effort",
          efforts: ["none", "low", "medium", "high"],
          defaultEffort: "medium",
          echo: "reasoning",
        },
        models: [
          {
            of: ["gpt-oss*"],
            reasoning: {
              control: "effort",
              efforts: ["low", "medium", "high"],
              canDisable: false,
              echo: "reasoning",
            },
          },
        ],
      },
    },
  },
  {
    name: "nvidia",
    summary: "NVIDIA NIM",
    limits: "none",
    errors: "openai",
    unverified: ["thinking", "limits", "errors"],
    stability: "beta",
    base: "https://integrate.api.nvidia.com/v1",
    protocols: {
      "chat-completions": {
        ...plain,
        dropFields: [...but(), "parallel_tool_calls", "user"],
        reasoning: { ...template, echo: "reasoning_content" },
      },
    },
  },
  {
    name: "sambanova",
    summary: "SambaNova",
    limits: "none",
    errors: "openai",
    unverified: ["responses", "models", "limits", "errors"],
    base: "https://api.sambanova.ai/v1",
    models: { prices: "per_token" },
    protocols: { "chat-completions": plain, responses: {} },
  },
  {
    name: "deepinfra",
    summary: "DeepInfra",
    limits: "none",
    errors: "openai",
    unverified: [
      "messages",
      "images",
      "embeddings",
      "thinking",
      "batches",
      "limits",
      "errors",
      "affinity",
    ],
    base: "https://api.deepinfra.com/v1/openai",
    batches: { protocols: ["chat-completions"] },
    sessionAffinity: { header: "x-session-affinity" },
    protocols: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "effort", echo: "reasoning_content" },
      },
      messages: { base: "../../anthropic/v1", header: "x-api-key", thinking: "budget" },
      images: { servedModels: ["black-forest-labs/*", "stabilityai/*"] },
      embeddings: {},
    },
  },
  {
    name: "cloudflare",
    summary: "Cloudflare Workers AI; base_url contains the account",
    limits: "none",
    errors: "errors",
    unverified: ["thinking", "limits"],
    models: false,
    protocols: {
      "chat-completions": {
        ...plain,
        maxTokens: "max_completion_tokens",
        reasoning: { control: "effort", echo: "reasoning_content" },
        models: [
          {
            of: ["@cf/deepseek-ai/*"],
            reasoning: {
              control: "thinking.type",
              alsoAcceptsEffort: true,
              efforts: ["high", "max"],
              echo: "reasoning_content",
              echoRequired: true,
            },
          },
        ],
      },
      responses: {},
    },
  },
  {
    name: "databricks",
    summary: "Databricks; base_url contains the workspace",
    limits: "none",
    errors: "message",
    unverified: ["responses", "limits", "errors"],
    models: false,
    protocols: {
      "chat-completions": { ...plain, reasoning: { control: "effort" } },
      responses: {},
    },
  },
];
