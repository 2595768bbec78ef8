// What other gateways call providers, and what they are called here.

/** By another's word. Words that are the same here stand in `SAME`. */
const OTHERS: Readonly<Record<string, string>> = {
  ai21: "",
  azure_ai: "",
  "azure-openai": "azure",
  azure_text: "azure",
  bedrock_converse: "bedrock",
  cohere_chat: "cohere",
  dashscope: "alibaba",
  fireworks_ai: "fireworks",
  "fireworks-ai": "fireworks",
  gemini: "google",
  hosted_vllm: "vllm",
  lm_studio: "lm-studio",
  llamafile: "llama-cpp",
  mistralai: "mistral",
  "mistral-ai": "mistral",
  nvidia_nim: "nvidia",
  ollama_chat: "ollama",
  "perplexity-ai": "perplexity",
  sgl: "sglang",
  together_ai: "together",
  "together-ai": "together",
  vercel_ai_gateway: "vercel",
  volcengine: "ark",
  "x-ai": "xai",
};

const SAME = new Set(
  (
    "openai anthropic azure bedrock mistral deepseek xai perplexity cohere groq together fireworks cerebras nvidia sambanova deepinfra " +
    "databricks baseten nebius novita hyperbolic moonshot minimax zai openrouter huggingface vercel ollama vllm sglang google recraft"
  ).split(" "),
);

/** Undefined: none here is it. */
export function knownProvider(word: string): string | undefined {
  const name = word.toLowerCase();
  if (SAME.has(name)) return name;
  return (Object.hasOwn(OTHERS, name) && OTHERS[name]) || undefined;
}

/** By a model's own name, where no provider is said. */
export function guessedProvider(model: string): string | undefined {
  if (/^(gpt-|o\d|chatgpt-|text-embedding-|dall-e|gpt$)/.test(model)) return "openai";
  if (model.startsWith("claude")) return "anthropic";
  if (model.startsWith("gemini")) return "google";
  return undefined;
}

/** Servers of one's own ask for no key, and stand at an address that the operator says. */
export const isOwnServer = (use: string): boolean =>
  ["ollama", "vllm", "sglang", "llama-cpp", "lm-studio", "openai-compatible"].includes(use);

/** Their address depends on the account, and must be said. */
export const needsBase = (use: string): boolean =>
  ["azure", "bedrock", "databricks", "baseten", "openai-compatible"].includes(use);
