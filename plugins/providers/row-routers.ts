// Gateways like this one, with providers behind them. Privacy requirements are forwarded, so the
// inner gateway fails closed too.
import type { Backend } from "./row-backend.ts";
import { plain } from "./row-dialects.ts";

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
