// Hosts of open models whose API is OpenAI's as it was, as far as they document it. Their addresses are known at second hand.
import type { Backend } from "./row-backend.ts";
import { plain } from "./row-dialects.ts";

export const hosts: readonly Backend[] = [
  {
    name: "baseten",
    summary: "Baseten",
    limits: "none",
    errors: "openai",
    unchecked: ["base", "models", "thinking", "limits", "errors"],
    base: "https://inference.baseten.co/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "coreweave",
    summary: "CoreWeave Serverless Inference",
    limits: "none",
    errors: "openai",
    unchecked: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.inference.wandb.ai/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "nebius",
    summary: "Nebius",
    limits: "none",
    errors: "openai",
    unchecked: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.tokenfactory.nebius.com/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "novita",
    summary: "Novita AI",
    limits: "none",
    errors: "openai",
    unchecked: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.novita.ai/openai/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "parasail",
    summary: "Parasail",
    limits: "none",
    errors: "openai",
    unchecked: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.parasail.io/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "hyperbolic",
    summary: "Hyperbolic",
    limits: "none",
    errors: "openai",
    unchecked: ["base", "models", "thinking", "limits", "errors"],
    base: "https://api.hyperbolic.xyz/v1",
    speaks: { "chat-completions": plain },
  },
  {
    name: "siliconflow",
    summary: "SiliconFlow",
    limits: "none",
    errors: "openai",
    unchecked: ["base", "models", "thinking", "limits", "errors"],
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
    limits: "none",
    errors: "openai",
    unchecked: ["base", "models", "thinking", "limits", "errors"],
    base: "https://llm.chutes.ai/v1",
    speaks: { "chat-completions": plain },
  },
];
