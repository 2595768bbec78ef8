// The built-in plugins, by kind and by their name in `use:`. A plugin is imported only if
// gateway.yaml contains it, so that unused plugins do not slow down the start.
export const builtin = {
  frontend: {
    "chat-completions": () => import("./frontends/chat-completions.ts"),
    completions: () => import("./frontends/completions.ts"),
    embeddings: () => import("./frontends/embeddings.ts"),
    "claude-gateway": () => import("./frontends/claude-gateway.ts"),
    jobs: () => import("./frontends/jobs.ts"),
    gemini: () => import("./frontends/gemini.ts"),
    images: () => import("./frontends/images.ts"),
    models: () => import("./frontends/models.ts"),
    mcp: () => import("./frontends/mcp.ts"),
    messages: () => import("./frontends/messages.ts"),
    moderations: () => import("./frontends/moderations.ts"),
    rerank: () => import("./frontends/rerank.ts"),
    realtime: () => import("./frontends/realtime.ts"),
    responses: () => import("./frontends/responses.ts"),
    speech: () => import("./frontends/speech.ts"),
    transcriptions: () => import("./frontends/transcriptions.ts"),
    usage: () => import("./frontends/usage.ts"),
    videos: () => import("./frontends/videos.ts"),
  },
  provider: {
    bfl: listed("bfl", () => import("./providers/bfl.ts")),
    demo: () => import("./providers/demo.ts"),
    anthropic: listed("anthropic", () => import("./providers/anthropic.ts")),
    "anthropic-compatible": () => import("./providers/anthropic-compatible.ts"),
    google: listed("google", () => import("./providers/google.ts")),
    openai: listed("openai", () => import("./providers/openai.ts")),
    "openai-compatible": () => import("./providers/openai-compatible.ts"),
    ...rows(
      "mistral",
      "deepseek",
      "xai",
      "perplexity",
      "cohere",
      "voyage",
      "meta",
      "recraft",
      "moonshot",
      "moonshot-cn",
      "zai",
      "zai-coding",
      "zhipu",
      "alibaba",
      "alibaba-cn",
      "minimax",
      "minimax-cn",
      "byteplus",
      "ark",
      "hunyuan",
      "xiaomi",
      "stepfun",
      "groq",
      "together",
      "fireworks",
      "cerebras",
      "nvidia",
      "sambanova",
      "deepinfra",
      "cloudflare",
      "databricks",
      "azure",
      "azure-anthropic",
      "bedrock",
      "baseten",
      "coreweave",
      "nebius",
      "novita",
      "parasail",
      "hyperbolic",
      "siliconflow",
      "chutes",
      "openrouter",
      "vercel",
      "huggingface",
      "ollama",
      "ollama-cloud",
      "vllm",
      "sglang",
      "llama-cpp",
      "lm-studio",
    ),
  },
  middleware: {
    "agent-hints": () => import("./middleware/agent-hints.ts"),
    "prompt-caches": () => import("./middleware/prompt-caches.ts"),
    "remote-mcp": () => import("./middleware/remote-mcp.ts"),
    auth: () => import("./middleware/auth.ts"),
    "client-certificates": () => import("./middleware/client-certificates.ts"),
    jwt: () => import("./middleware/jwt.ts"),
    limits: () => import("./middleware/limits.ts"),
    usage: () => import("./middleware/usage.ts"),
    zdr: () => import("./middleware/zdr.ts"),
  },
  observer: {
    alerts: () => import("./observers/alerts.ts"),
    "access-log": () => import("./observers/access-log.ts"),
    console: () => import("./observers/console.ts"),
    otlp: () => import("./observers/otlp.ts"),
    metrics: () => import("./observers/metrics.ts"),
    reconcile: () => import("./observers/reconcile.ts"),
  },
  store: {
    memory: () => import("./stores/memory.ts"),
    sqlite: () => import("./stores/sqlite.ts"),
  },
};

/** Providers that consist of data, by name. Their data is loaded when one of them is used. */
function rows<N extends string>(...names: readonly N[]): Record<N, () => Promise<unknown>> {
  const row = (name: N) =>
    listed(name, async () => ({
      default: (await import("./providers/provider-rows.ts")).rowProviders[name]!,
    }));
  return Object.fromEntries(names.map((name) => [name, row(name)])) as Record<
    N,
    () => Promise<unknown>
  >;
}

/** Adds the model metadata and the data policy of a provider. */
function listed<D extends object>(
  name: string,
  load: () => Promise<{ default: D }>,
): () => Promise<unknown> {
  return async () => {
    const [{ withFacts }, { withPolicy }, { default: definition }] = await Promise.all([
      import("./providers/facts.ts"),
      import("./providers/policy.ts"),
      load(),
    ]);
    return { default: await withPolicy(name, await withFacts(name, definition)) };
  };
}
