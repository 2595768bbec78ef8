// Cloud platforms that offer the protocols of several vendors in one account. The URL depends on
// the account, so `base_url` is required. Models have the names of the account's own deployments or
// profiles, so they are not listed here.
import type { Backend } from "./row-backend.ts";
import { but } from "./row-dialects.ts";

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
