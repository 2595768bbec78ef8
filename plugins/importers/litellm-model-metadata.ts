// Imports the metadata of a LiteLLM deployment's model: price, type, limits, capabilities, and
// timeouts.
import { readPrice, formatSeconds } from "./amounts.ts";
import type { ConfigDraft, DraftProvider } from "./config-draft.ts";
import { packageOf, guessProvider, isSelfHosted, needsBaseUrl } from "./known-providers.ts";
import type { SourceValue } from "./source-value.ts";
import { awsProvider, azureProvider, vertexProvider, type CloudProvider } from "./clouds.ts";

/** Operations by `mode` of LiteLLM. */
const OPERATIONS: Readonly<Record<string, string>> = {
  chat: "chat",
  responses: "chat",
  completion: "completion",
  embedding: "embedding",
  image_generation: "image",
  audio_transcription: "transcript",
  audio_speech: "speech",
  rerank: "rerank",
  moderation: "moderation",
  moderations: "moderation",
};

const ABILITIES: Readonly<Record<string, string>> = {
  supports_vision: "vision",
  supports_function_calling: "tools",
  supports_parallel_function_calling: "parallel_tools",
  supports_response_schema: "json_schema",
  supports_pdf_input: "documents",
  supports_audio_input: "audio",
  supports_reasoning: "reasoning",
  supports_system_messages: "system",
};

const OPERATION_PATTERNS: readonly (readonly [pattern: RegExp, kind: string])[] = [
  [/embed|(^|\/)(bge|e5|gte)-/i, "embedding"],
  [/rerank/i, "rerank"],
  [/whisper|transcribe/i, "transcript"],
  [/(^|[/-])tts(-|$)/i, "speech"],
  [/dall-e|gpt-image|(^|\/)(flux|stable-diffusion|imagen)/i, "image"],
  [/moderation/i, "moderation"],
];

/** Returns the operation in `mode`, or else the operation that the model's name suggests. */
export function operationOf(model: string, info: SourceValue): string {
  const mode = info.get("mode");
  const modeName = mode.readText();
  if (modeName !== undefined && Object.hasOwn(OPERATIONS, modeName)) return OPERATIONS[modeName]!;
  if (modeName !== undefined) mode.report("unsupported", `unknown model type "${modeName}"`);
  return operationByName(model);
}

export const operationByName = (model: string): string =>
  OPERATION_PATTERNS.find(([pattern]) => pattern.test(model))?.[1] ?? "chat";

/** A deployment whose model is based on another one, by `model_info.base_model`. */
export interface BaseModel {
  readonly place: SourceValue;
  readonly provider: DraftProvider;
  readonly model: string;
  readonly base: string;
}

/** Imports the stated metadata, and returns the model that this model is based on. */
export function importMetadata(
  provider: DraftProvider,
  model: string,
  {
    params,
    info,
    kind,
  }: { readonly params: SourceValue; readonly info: SourceValue; readonly kind: string },
): BaseModel | undefined {
  const metadata: Record<string, unknown> = {};
  // An operation that follows from the name needs no entry if the provider has a catalog that ships
  // with Tollgate.
  if (kind !== "chat" && (info.get("mode").exists || isUnlisted(provider.use)))
    metadata["operation"] = kind;
  const price = readPrice(params, info);
  if (price !== undefined) metadata["price"] = price;
  const input = info.get("max_input_tokens").readNumber();
  const output = info.firstOf("max_output_tokens", "max_tokens").readNumber();
  info.get("max_tokens").readValue();
  const limits = {
    ...(input !== undefined && input >= 1 && { input }),
    ...(output !== undefined && output >= 1 && kind === "chat" && { output }),
  };
  if (Object.keys(limits).length > 0) metadata["limits"] = limits;
  const can = Object.entries(ABILITIES).flatMap(([key, ability]) => {
    const has = info.get(key).readValue();
    return typeof has === "boolean" ? [[ability, has] as const] : [];
  });
  if (can.length > 0) metadata["can"] = Object.fromEntries(can);
  if (Object.keys(metadata).length > 0 && !model.includes("*"))
    provider.facts.set(model, { ...provider.facts.get(model), ...metadata });
  importTimeouts(provider, params);
  const place = info.get("base_model");
  const base = place.readText()?.replace(/^.*\//, "");
  return base === undefined || base === model || price !== undefined
    ? undefined
    : { place, provider, model, base };
}

/**
 * Whether the provider has no list of models. In that case a model with only a name is a chat
 * model.
 */
const isUnlisted = (use: string): boolean =>
  ["azure", "openai-compatible", "vllm", "ollama", "lm-studio", "sglang", "llama-cpp"].includes(
    use,
  ) || packageOf(use) !== undefined;

/** Vendors whose prices ship with the gateway, by patterns of their model names. */
const VENDOR_PATTERNS: readonly (readonly [pattern: RegExp, use: string])[] = [
  [/^(gpt-|o\d|chatgpt-|text-embedding-|dall-e|whisper-|tts-)/, "openai"],
  [/^claude/, "anthropic"],
  [/^gemini/, "google"],
];

/** Uses the price of the vendor's own model, if that vendor is mounted. */
export function referencePrices(bases: readonly BaseModel[], draft: ConfigDraft): void {
  for (const { place, provider, model, base } of bases) {
    const use = VENDOR_PATTERNS.find(([pattern]) => pattern.test(base))?.[1];
    const vendor = [...draft.providers.values()].find((each) => each.use === use);
    if (vendor && !model.includes("*")) {
      provider.facts.set(model, {
        ...provider.facts.get(model),
        priced_as: `${vendor.name}/${base}`,
      });
      place.report(
        "approximate",
        `priced like ${vendor.name}/${base}; other metadata of ${base} does not apply to ${model}`,
      );
    } else
      place.report(
        "manual",
        `set the price of ${base}: providers.${provider.name}.models."${model}".price`,
      );
  }
}

/**
 * LiteLLM's `timeout` ends a call whose connection is silent for that time: before the headers, or
 * between two chunks of the body. It does not end a stream that is still sending data.
 */
export function toTimeouts(
  timeout: number | undefined,
  stream: number | undefined,
): Record<string, unknown> | undefined {
  if (timeout === undefined && stream === undefined) return undefined;
  const quick = stream ?? timeout!;
  return {
    ...(timeout !== undefined && {
      first_byte: formatSeconds(timeout),
      idle: formatSeconds(timeout),
    }),
    classes: { quick: { first_byte: formatSeconds(quick) } },
  };
}

function importTimeouts(provider: DraftProvider, params: SourceValue): void {
  const stream = params.get("stream_timeout");
  const made = toTimeouts(params.get("timeout").readNumber(), stream.readNumber());
  if (made !== undefined) provider.timeouts ??= made;
  reportStreamTimeout(stream);
}

export function reportStreamTimeout(stream: SourceValue): void {
  if (stream.exists)
    stream.report(
      "approximate",
      "timeouts.classes.quick: it applies to streams of models that do not reason",
    );
}

// Finds the provider and address that a LiteLLM deployment calls.

const BASES = ["api_base", "base_url"] as const;

interface ProviderPlacement {
  readonly use: string;
  readonly model: string;
  readonly options: Readonly<Record<string, unknown>>;
  /** The provider and credential fields, for a cloud. */
  readonly cloud?: CloudProvider;
}

/**
 * Returns the provider of a deployment, or the reason why there is none.
 * @param at Location of the credentials: the parameters, or the credential that they name.
 * @param host `secret` turns a literal key into a reference to a file of its own.
 */
export function importLitellmProvider(
  litellmModel: string,
  params: SourceValue,
  at: SourceValue,
  host: {
    readonly draft: ConfigDraft;
    readonly secret: (place: SourceValue, name: string) => string | undefined;
  },
): ProviderPlacement | string {
  const { draft, secret } = host;
  const custom = params.get("custom_llm_provider").readText();
  const slash = litellmModel.indexOf("/");
  const known = slash < 0 ? undefined : draft.findProvider(litellmModel.slice(0, slash));
  const word = custom ?? (slash < 0 ? guessProvider(litellmModel) : litellmModel.slice(0, slash));
  const model =
    slash < 0 || (custom !== undefined && !known) ? litellmModel : litellmModel.slice(slash + 1);
  const base = [...BASES]
    .map((key) => toVariable((at.get(key).exists ? at : params).get(key).readText()))
    .find(Boolean);
  const use = word === undefined ? undefined : draft.findProvider(word);
  const of = { model, base, params, at, secret };
  if (use === "azure" || use === "azure-foundry") return azurePlacement(use, of);
  if (use === "aws") return awsPlacement(of);
  if (use === "vertex") return vertexPlacement(of);
  // A custom address with a vendor's prefix is a server that uses that vendor's protocol.
  if (base !== undefined && (use === "openai" || use === undefined || isSelfHosted(use)))
    return {
      use: use && isSelfHosted(use) ? use : "openai-compatible",
      model,
      options: { base_url: use === "ollama" ? ollamaBase(base) : base },
    };
  if (use === undefined)
    return word === undefined
      ? `the config does not name the provider of "${litellmModel}"`
      : `"${word}" is not a built-in provider; if it supports chat completions, use openai-compatible with its base_url`;
  if (needsBaseUrl(use) && base === undefined)
    return `${use} requires a base URL (api_base), which this config does not set`;
  return { use, model, options: base === undefined ? {} : { base_url: base } };
}

/**
 * LiteLLM calls Ollama's own API, whose address has no version. Tollgate calls its
 * OpenAI-compatible API, under `/v1`.
 */
const ollamaBase = (base: string): string => {
  const bare = base.replace(/\/+$/, "");
  return /\/v\d+$/.test(bare) ? bare : `${bare}/v1`;
};

interface DeploymentSource {
  readonly model: string;
  readonly base: string | undefined;
  readonly params: SourceValue;
  readonly at: SourceValue;
  readonly secret: (place: SourceValue, name: string) => string | undefined;
}

/** Reads fields from the named credential, or else from the parameters. */
const createFieldReader = ({ at, params }: DeploymentSource) => ({
  place: (key: string): SourceValue => (at.get(key).exists ? at : params).get(key),
  text(key: string): string | undefined {
    return toVariable(this.place(key).readText());
  },
});

function azurePlacement(
  use: "azure" | "azure-foundry",
  of: DeploymentSource,
): ProviderPlacement | string {
  if (of.base === undefined) return `${use} requires the endpoint of its resource (api_base)`;
  const read = createFieldReader(of);
  if (of.params.get("api_version").exists)
    of.params.get("api_version").report("exact", "not needed: the gateway uses Azure's v1 API");
  const cloud = azureProvider(
    {
      endpoint: of.base,
      apiKey: of.secret(read.place("api_key"), "azure-key"),
      tenantId: read.text("tenant_id"),
      clientId: read.text("client_id"),
      clientSecret: of.secret(read.place("client_secret"), "azure-client"),
    },
    use === "azure-foundry",
  );
  const keyed = cloud.fields ?? { api_key: "${env:AZURE_API_KEY}" };
  return {
    use: cloud.use,
    model: of.model,
    options: cloud.options,
    cloud: { ...cloud, fields: keyed },
  };
}

function awsPlacement(of: DeploymentSource): ProviderPlacement {
  const read = createFieldReader(of);
  const [, placed, bare = of.model] =
    /^(?:converse\/|invoke\/)?(?:([a-z]{2}(?:-[a-z]+)+-\d)\/)?(.+)$/.exec(of.model) ?? [];
  for (const key of ["aws_role_name", "aws_session_name", "aws_web_identity_token"])
    if (of.params.get(key).exists)
      of.params
        .get(key)
        .report(
          "manual",
          "roles are assumed by the AWS credential chain: name the role in a profile of " +
            "~/.aws/config, and set from: chain with that profile",
        );
  const cloud = awsProvider({
    region: read.text("aws_region_name") ?? read.text("region_name") ?? placed,
    runtimeUrl: of.base ?? read.text("aws_bedrock_runtime_endpoint"),
    apiKey: of.secret(read.place("api_key"), "aws-key"),
    accessKeyId: read.text("aws_access_key_id"),
    secretAccessKey: of.secret(read.place("aws_secret_access_key"), "aws-secret"),
    sessionToken: of.secret(read.place("aws_session_token"), "aws-session"),
    profile: read.text("aws_profile_name"),
  });
  return { use: cloud.use, model: bare, options: cloud.options, cloud };
}

function vertexPlacement(of: DeploymentSource): ProviderPlacement {
  const read = createFieldReader(of);
  const place = read.place("vertex_credentials").exists
    ? read.place("vertex_credentials")
    : read.place("vertex_ai_credentials");
  const cloud = vertexProvider({
    project: read.text("vertex_project") ?? read.text("vertex_ai_project"),
    location: read.text("vertex_location") ?? read.text("vertex_ai_location"),
    baseUrl: of.base,
    serviceAccount: readServiceAccount(place, of),
    apiKey: of.secret(read.place("api_key"), "vertex-key"),
  });
  return { use: cloud.use, model: of.model, options: cloud.options, cloud };
}

/** LiteLLM accepts the JSON of a key, the path of its file, or a variable that contains either. */
function readServiceAccount(place: SourceValue, { secret }: DeploymentSource): string | undefined {
  const text = place.readText();
  if (text !== undefined && /^[^{}]+\.json$/.test(text) && !text.includes("os.environ"))
    return `\${file:${/^[./]/.test(text) ? text : `./${text}`}}`;
  return secret(place, "vertex-account");
}

/** Converts `os.environ/NAME` to the syntax of gateway.yaml. Leaves literal text unchanged. */
export const toVariable = (text: string | undefined): string | undefined =>
  text?.replace(/^os\.environ\/(\w+)$/, (_, name: string) => `\${env:${name}}`);
