// Clouds that serve other people's models.
import type { Backend } from "./row-backend.ts";
import { but, plain } from "./row-dialects.ts";
import { hears } from "./sound-facts.ts";

/** How templates of open models are told to think. */
const template = { control: "chat_template_kwargs" } as const;

export const clouds: readonly Backend[] = [
  {
    name: "groq",
    summary: "Groq",
    limits: "openai",
    errors: "openai",
    stability: "beta",
    base: "https://api.groq.com/openai/v1",
    facts: { asOf: "2026-11-22", models: [hears("whisper-large-v3", "30.8")] },
    speaks: {
      "chat-completions": {
        ...plain,
        maxTokens: "max_completion_tokens",
        strictTools: true,
        drop: [...but("service_tier", "metadata"), "logit_bias", "logprobs", "top_logprobs"],
        refuse: ["n"],
        reasoning: {
          control: "effort",
          efforts: ["low", "medium", "high"],
          off: false,
          echo: "reasoning",
        },
        models: [
          {
            of: ["qwen/qwen3.6*"],
            reasoning: {
              control: "effort",
              efforts: ["none", "default"],
              on: "default",
              echo: "reasoning",
            },
          },
          {
            of: ["qwen/qwen3.8*"],
            reasoning: {
              control: "effort",
              efforts: ["none", "low", "medium", "high"],
              on: "medium",
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
    unchecked: ["images", "embeddings", "rerank", "limits"],
    stability: "beta",
    base: "https://api.together.ai/v1",
    models: { prices: "per_million" },
    speaks: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "reasoning.enabled", effortToo: true, echo: "reasoning" },
        models: [
          {
            of: ["openai/gpt-oss*"],
            reasoning: {
              control: "effort",
              efforts: ["low", "medium", "high"],
              off: false,
              echo: "reasoning",
            },
          },
        ],
      },
      images: { responseFormat: "base64", size: "width_height", most: 4 },
      embeddings: { ids: false },
      rerank: {},
    },
  },
  {
    name: "fireworks",
    summary: "Fireworks AI",
    limits: "fireworks",
    errors: "openai",
    unchecked: ["limits", "affinity"],
    stability: "beta",
    base: "https://api.fireworks.ai/inference/v1",
    affinity: { header: "x-session-affinity" },
    speaks: {
      "chat-completions": {
        ...plain,
        drop: but("metadata"),
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
              off: false,
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
    speaks: {
      "chat-completions": {
        ...plain,
        maxTokens: "max_completion_tokens",
        strictTools: true,
        drop: [
          ...but("service_tier", "prompt_cache_key"),
          "logit_bias",
          "presence_penalty",
          "frequency_penalty",
        ],
        refuse: ["n"],
        reasoning: {
          control: "effort",
          efforts: ["none", "low", "medium", "high"],
          on: "medium",
          echo: "reasoning",
        },
        models: [
          {
            of: ["gpt-oss*"],
            reasoning: {
              control: "effort",
              efforts: ["low", "medium", "high"],
              off: false,
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
    unchecked: ["thinking", "limits", "errors"],
    stability: "beta",
    base: "https://integrate.api.nvidia.com/v1",
    speaks: {
      "chat-completions": {
        ...plain,
        drop: [...but(), "parallel_tool_calls", "user"],
        reasoning: { ...template, echo: "reasoning_content" },
      },
    },
  },
  {
    name: "sambanova",
    summary: "SambaNova",
    limits: "none",
    errors: "openai",
    unchecked: ["responses", "models", "limits", "errors"],
    base: "https://api.sambanova.ai/v1",
    models: { prices: "per_token" },
    speaks: { "chat-completions": plain, responses: {} },
  },
  {
    name: "deepinfra",
    summary: "DeepInfra",
    limits: "none",
    errors: "openai",
    unchecked: ["messages", "images", "embeddings", "thinking", "limits", "errors", "affinity"],
    base: "https://api.deepinfra.com/v1/openai",
    affinity: { header: "x-session-affinity" },
    speaks: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "effort", echo: "reasoning_content" },
      },
      messages: { base: "../../anthropic/v1", header: "x-api-key", thinking: "budget" },
      images: { serves: ["black-forest-labs/*", "stabilityai/*"] },
      embeddings: {},
    },
  },
  {
    name: "cloudflare",
    summary: "Cloudflare Workers AI; base_url holds the account",
    limits: "none",
    errors: "errors",
    unchecked: ["thinking", "limits"],
    models: false,
    speaks: {
      "chat-completions": {
        ...plain,
        maxTokens: "max_completion_tokens",
        reasoning: { control: "effort", echo: "reasoning_content" },
        models: [
          {
            of: ["@cf/deepseek-ai/*"],
            reasoning: {
              control: "thinking.type",
              effortToo: true,
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
    summary: "Databricks; base_url holds the workspace",
    limits: "none",
    errors: "message",
    unchecked: ["responses", "limits", "errors"],
    models: false,
    speaks: { "chat-completions": { ...plain, reasoning: { control: "effort" } }, responses: {} },
  },
];
