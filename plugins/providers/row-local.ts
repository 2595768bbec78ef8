// Self-hosted servers. The operator configures their data retention and their price (`price:
// free`).
import { type Backend, but, plain } from "./row-backend.ts";

export const local: readonly Backend[] = [
  {
    name: "ollama",
    summary: "Ollama on this machine",
    limits: "none",
    errors: "openai",
    stability: "beta",
    base: "http://localhost:11434/v1",
    keyRequirement: "optional",
    protocols: {
      "chat-completions": {
        ...plain,
        dropFields: [...but(), "parallel_tool_calls", "logit_bias", "user"],
        toolChoice: "auto",
        rejectFields: ["n"],
        reasoning: {
          control: "effort",
          efforts: ["none", "low", "medium", "high"],
          defaultEffort: "medium",
          echo: "reasoning",
        },
      },
      messages: { thinking: "budget" },
      responses: { store: false },
      "ollama-embed": { base: ".." },
      "ollama-generate": { base: ".." },
    },
  },
  {
    name: "ollama-cloud",
    summary: "Ollama's cloud",
    limits: "none",
    errors: "openai",
    unverified: ["limits", "errors"],
    base: "https://ollama.com/v1",
    protocols: {
      "chat-completions": {
        ...plain,
        reasoning: {
          control: "effort",
          efforts: ["none", "low", "medium", "high"],
          defaultEffort: "medium",
          echo: "reasoning",
        },
      },
    },
  },
  {
    name: "vllm",
    summary: "vLLM",
    limits: "none",
    errors: "flat",
    stability: "beta",
    base: "http://localhost:8000/v1",
    keyRequirement: "optional",
    protocols: {
      "chat-completions": {
        ...plain,
        dropFields: but(),
        topK: true,
        mediaUrls: true,
        reasoning: { control: "chat_template_kwargs", alsoAcceptsEffort: true, echo: "reasoning" },
        models: [
          {
            of: ["deepseek-ai/*", "moonshotai/*"],
            reasoning: {
              control: "chat_template_kwargs",
              templateKwarg: "thinking",
              alsoAcceptsEffort: true,
              echo: "reasoning",
            },
          },
        ],
      },
      messages: { countsTokens: true, thinking: "budget" },
      responses: {},
      completions: {},
      embeddings: {},
      rerank: {},
      transcriptions: {},
    },
  },
  {
    name: "sglang",
    summary: "SGLang",
    limits: "none",
    errors: "flat",
    unverified: ["responses", "messages"],
    stability: "beta",
    base: "http://localhost:30000/v1",
    keyRequirement: "optional",
    protocols: {
      "chat-completions": {
        ...plain,
        topK: true,
        mediaUrls: true,
        reasoning: { control: "chat_template_kwargs", echo: "reasoning_content" },
        models: [
          {
            of: ["deepseek-ai/*", "moonshotai/*"],
            reasoning: {
              control: "chat_template_kwargs",
              templateKwarg: "thinking",
              echo: "reasoning_content",
            },
          },
        ],
      },
      // Container images older than February 2026 return 404 for messages and responses.
      messages: { thinking: "budget" },
      responses: {},
      completions: {},
      embeddings: {},
    },
  },
  {
    name: "llama-cpp",
    summary: "llama.cpp server",
    limits: "none",
    errors: "openai",
    stability: "beta",
    base: "http://localhost:8080/v1",
    keyRequirement: "optional",
    protocols: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "chat_template_kwargs", echo: "reasoning_content" },
      },
      messages: { thinking: "budget" },
      completions: {},
      embeddings: {},
    },
  },
  {
    name: "lm-studio",
    summary: "LM Studio",
    limits: "none",
    errors: "openai",
    unverified: ["errors"],
    base: "http://localhost:1234/v1",
    keyRequirement: "optional",
    protocols: {
      "chat-completions": {
        ...plain,
        topK: true,
        reasoning: { control: "effort", echo: "reasoning_content" },
      },
      messages: { thinking: "budget" },
      responses: {},
      embeddings: {},
    },
  },
];
