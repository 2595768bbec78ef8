// Maps provider names of other gateways to providers of Tollgate.

/** Names that differ in Tollgate. Equal names are not in this table. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = {
  azure_ai: "azure-foundry",
  "azure-ai": "azure-foundry",
  "azure-openai": "azure",
  azure_text: "azure",
  bedrock: "aws",
  bedrock_converse: "aws",
  sagemaker: "",
  cohere_chat: "cohere",
  custom_openai: "openai-compatible",
  dashscope: "alibaba",
  fireworks_ai: "fireworks",
  "fireworks-ai": "fireworks",
  gemini: "google",
  hosted_vllm: "vllm",
  litellm_proxy: "openai-compatible",
  lm_studio: "lm-studio",
  llamafile: "llama-cpp",
  mistralai: "mistral",
  "mistral-ai": "mistral",
  nvidia_nim: "nvidia",
  ollama_chat: "ollama",
  openai_like: "openai-compatible",
  "perplexity-ai": "perplexity",
  sgl: "sglang",
  "text-completion-openai": "openai",
  together_ai: "together",
  "together-ai": "together",
  vercel_ai_gateway: "vercel",
  vertex_ai: "vertex",
  vertex_ai_beta: "vertex",
  "vertex-ai": "vertex",
  volcengine: "ark",
  "x-ai": "xai",
};

/** Providers in separate npm packages. */
const PACKAGED_PROVIDERS = ["aws", "azure-foundry", "vertex"];

/** Returns the npm package of a provider that is not built in. */
export const packageOf = (use: string): string | undefined =>
  PACKAGED_PROVIDERS.includes(use) ? `tollgate-provider-${use}` : undefined;

/**
 * Returns undefined if no provider here corresponds to the name.
 * @param builtIn Names of the built-in providers.
 */
export function findProvider(word: string, builtIn: ReadonlySet<string>): string | undefined {
  const name = word.toLowerCase();
  if (Object.hasOwn(PROVIDER_NAMES, name)) return PROVIDER_NAMES[name] || undefined;
  return PACKAGED_PROVIDERS.includes(name) || builtIn.has(name) ? name : undefined;
}

/** Guesses the provider by the name of a model, if no provider is stated. */
export function guessProvider(model: string): string | undefined {
  if (/^(gpt-|o\d|chatgpt-|text-embedding-|dall-e|whisper-|tts-|gpt$)/.test(model)) return "openai";
  if (model.startsWith("claude")) return "anthropic";
  if (model.startsWith("gemini")) return "google";
  return undefined;
}

/**
 * Whether the provider is a self-hosted server, which needs no key and has an address that the
 * operator configures.
 */
export const isSelfHosted = (use: string): boolean =>
  ["ollama", "vllm", "sglang", "llama-cpp", "lm-studio", "openai-compatible"].includes(use);

/** Whether the address depends on the account and must be configured. */
export const needsBaseUrl = (use: string): boolean =>
  ["azure", "azure-foundry", "databricks", "baseten", "openai-compatible", "cloudflare"].includes(
    use,
  );
