// Hosts of open models whose documented API is the basic OpenAI API. Their URLs come from secondary
// sources.
import type { Backend } from "./row-backend.ts";
import { plain } from "./row-dialects.ts";

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
    unverified: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.novita.ai/openai/v1",
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
    unverified: ["base", "models", "embeddings", "rerank", "thinking", "limits", "errors"],
    base: "https://api.siliconflow.com/v1",
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
