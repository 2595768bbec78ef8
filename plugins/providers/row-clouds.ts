// Clouds that serve other people's models.
import type { Row } from "tollgate/protocols/compatible";
import { but, plain } from "./row-dialects.ts";

/** How templates of open models are told to think. */
const template = { control: "chat_template_kwargs" } as const;

export const clouds: readonly Row[] = [
  {
    name: "groq",
    summary: "Groq",
    stability: "beta",
    base: "https://api.groq.com/openai/v1",
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
    },
  },
  {
    name: "together",
    summary: "Together AI",
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
    },
  },
  {
    name: "fireworks",
    summary: "Fireworks AI",
    stability: "beta",
    base: "https://api.fireworks.ai/inference/v1",
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
    base: "https://api.sambanova.ai/v1",
    models: { prices: "per_token" },
    speaks: { "chat-completions": plain },
  },
  {
    name: "deepinfra",
    summary: "DeepInfra",
    base: "https://api.deepinfra.com/v1/openai",
    speaks: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "effort", echo: "reasoning_content" },
      },
      messages: { base: "../../anthropic/v1", header: "x-api-key", thinking: "budget" },
    },
  },
  {
    name: "cloudflare",
    summary: "Cloudflare Workers AI; base_url holds the account",
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
    models: false,
    speaks: { "chat-completions": { ...plain, reasoning: { control: "effort" } } },
  },
  {
    name: "baseten",
    summary: "Baseten",
    base: "https://inference.baseten.co/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "coreweave",
    summary: "CoreWeave Serverless Inference",
    base: "https://api.inference.wandb.ai/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "nebius",
    summary: "Nebius",
    base: "https://api.tokenfactory.nebius.com/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "novita",
    summary: "Novita AI",
    base: "https://api.novita.ai/openai/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "parasail",
    summary: "Parasail",
    base: "https://api.parasail.io/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "hyperbolic",
    summary: "Hyperbolic",
    base: "https://api.hyperbolic.xyz/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "siliconflow",
    summary: "SiliconFlow",
    base: "https://api.siliconflow.com/v1",
    speaks: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "enable_thinking", echo: "reasoning_content" },
      },
    },
  },
  {
    name: "chutes",
    summary: "Chutes",
    base: "https://llm.chutes.ai/v1",
    speaks: { "chat-completions": plain },
  },
];
