// Names from the OpenTelemetry GenAI semantic conventions. Each name has two spellings: the name of
// the last release (1.41) and its replacement. Metrics and spans take all GenAI names from this
// file. A spelling is null if that version does not define the name. Source, read in August 2026:
// github.com/open-telemetry/semantic-conventions (v1.41.0) and …/semantic-conventions-genai.

export type NamingVersion = "released" | "latest";

/** Values of the `genai_names` option. */
export const NAMING_CHOICES = ["both", "released", "latest", "off"] as const;

export type VersionedName = { readonly [S in NamingVersion]: string | null };

/** Returns the naming conventions that an option value selects. */
export const namingVersionsOf = (
  choice: (typeof NAMING_CHOICES)[number],
): readonly NamingVersion[] =>
  choice === "both" ? ["released", "latest"] : choice === "off" ? [] : [choice];

/** Returns the name in each selected spelling, without duplicates. */
export const namesOf = (
  of: VersionedName,
  spellings: readonly NamingVersion[],
): readonly string[] => [...new Set(spellings.flatMap((spelling) => of[spelling] ?? []))];

/** A name with the same spelling in both versions. */
const sameName = <N extends string>(name: N) => ({ released: name, latest: name });
/** A name that was added after the conventions moved to their own repository. */
const latestOnly = <N extends string>(name: N) => ({ released: null, latest: name });

export const GEN_AI_METRICS = {
  duration: {
    released: "gen_ai.client.operation.duration",
    latest: "gen_ai.client.inference.duration",
  },
  firstChunk: {
    released: "gen_ai.client.operation.time_to_first_chunk",
    latest: "gen_ai.client.inference.time_to_first_chunk",
  },
  /** Has the label `gen_ai.token.type` with the values input and output. */
  tokenUsage: { released: "gen_ai.client.token.usage", latest: null },
  inputTokens: { released: null, latest: "gen_ai.client.inference.operation.input_tokens" },
  outputTokens: { released: null, latest: "gen_ai.client.inference.operation.output_tokens" },
  usedInput: { released: null, latest: "gen_ai.client.inference.usage.input_tokens" },
  usedOutput: { released: null, latest: "gen_ai.client.inference.usage.output_tokens" },
  usedCacheRead: {
    released: null,
    latest: "gen_ai.client.inference.usage.cache_read.input_tokens",
  },
  usedCacheWrite: {
    released: null,
    latest: "gen_ai.client.inference.usage.cache_write.input_tokens",
  },
  usedReasoning: {
    released: null,
    latest: "gen_ai.client.inference.usage.reasoning.output_tokens",
  },
} as const satisfies Readonly<Record<string, VersionedName>>;

/** Durations of MCP requests: of clients to the gateway, and of the gateway to servers. */
export const MCP_METRICS = {
  server: sameName("mcp.server.operation.duration"),
  client: sameName("mcp.client.operation.duration"),
} as const satisfies Readonly<Record<string, VersionedName>>;

export const GEN_AI_ATTRIBUTES = {
  operation: sameName("gen_ai.operation.name"),
  provider: sameName("gen_ai.provider.name"),
  requestModel: sameName("gen_ai.request.model"),
  responseModel: sameName("gen_ai.response.model"),
  tokenType: sameName("gen_ai.token.type"),
  errorType: sameName("error.type"),
  stream: sameName("gen_ai.request.stream"),
  finishReasons: sameName("gen_ai.response.finish_reasons"),
  firstChunk: sameName("gen_ai.response.time_to_first_chunk"),
  inputTokens: sameName("gen_ai.usage.input_tokens"),
  outputTokens: sameName("gen_ai.usage.output_tokens"),
  cacheRead: sameName("gen_ai.usage.cache_read.input_tokens"),
  cacheWrite: {
    released: "gen_ai.usage.cache_creation.input_tokens",
    latest: "gen_ai.usage.cache_write.input_tokens",
  },
  reasoning: sameName("gen_ai.usage.reasoning.output_tokens"),
  audioInput: latestOnly("gen_ai.usage.audio.input_tokens"),
  audioOutput: latestOnly("gen_ai.usage.audio.output_tokens"),
  imageInput: latestOnly("gen_ai.usage.image.input_tokens"),
  imageOutput: latestOnly("gen_ai.usage.image.output_tokens"),
  toolName: sameName("gen_ai.tool.name"),
  promptName: sameName("gen_ai.prompt.name"),
  mcpMethod: sameName("mcp.method.name"),
  mcpVersion: sameName("mcp.protocol.version"),
  rpcStatus: sameName("rpc.response.status_code"),
} as const satisfies Readonly<Record<string, VersionedName>>;

/** Operation of a call of a tool. */
export const TOOL_OPERATION = "execute_tool";
/** Protocol of calls of MCP servers, and system of requests of MCP clients. */
export const MCP = "mcp";

/**
 * Operation names by model type. The conventions have no name for image generation, so the name
 * that other gateways use is taken.
 */
const OPERATIONS: Readonly<Record<string, string>> = {
  completion: "text_completion",
  embedding: "embeddings",
  image: "image_generation",
};

export const genAiOperation = (kind: string): string => OPERATIONS[kind] ?? kind;

/** The conventions' provider names, by the name that each provider usually has in gateway.yaml. */
const PROVIDERS: Readonly<Record<string, string>> = {
  azure: "azure.ai.openai",
  bedrock: "aws.bedrock",
  google: "gcp.gemini",
  mistral: "mistral_ai",
  moonshot: "moonshot_ai",
  "moonshot-cn": "moonshot_ai",
  vertex: "gcp.vertex_ai",
  xai: "x_ai",
};

/**
 * Returns the name of a provider in the GenAI conventions. A provider that the conventions do not
 * list keeps its own name.
 */
export const genAiProvider = (name: string): string => PROVIDERS[name] ?? name;
