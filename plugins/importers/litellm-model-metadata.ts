// Imports the metadata of a LiteLLM deployment's model: price, type, limits, capabilities, and
// timeouts.
import { readPrice, formatSeconds } from "./amounts.ts";
import type { ConfigDraft, DraftProvider } from "./config-draft.ts";
import { packageOf } from "./known-providers.ts";
import type { SourceValue } from "./source-value.ts";

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

/** Returns the operation that `mode` states, or else the one that the model's name suggests. */
export function operationOf(model: string, info: SourceValue): string {
  const mode = info.get("mode");
  const said = mode.readText();
  if (said !== undefined && Object.hasOwn(OPERATIONS, said)) return OPERATIONS[said]!;
  if (said !== undefined) mode.report("unsupported", `unknown model type "${said}"`);
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

/** Imports the stated metadata, and returns the model that this one is based on. */
export function importMetadata(
  provider: DraftProvider,
  model: string,
  {
    params,
    info,
    kind,
  }: { readonly params: SourceValue; readonly info: SourceValue; readonly kind: string },
): BaseModel | undefined {
  const said: Record<string, unknown> = {};
  // An operation that follows from the name needs no entry if the provider has a catalog that ships
  // with Tollgate.
  if (kind !== "chat" && (info.get("mode").exists || isUnlisted(provider.use)))
    said["operation"] = kind;
  const price = readPrice(params, info);
  if (price !== undefined) said["price"] = price;
  const input = info.get("max_input_tokens").readNumber();
  const output = info.firstOf("max_output_tokens", "max_tokens").readNumber();
  info.get("max_tokens").readValue();
  const limits = {
    ...(input !== undefined && input >= 1 && { input }),
    ...(output !== undefined && output >= 1 && kind === "chat" && { output }),
  };
  if (Object.keys(limits).length > 0) said["limits"] = limits;
  const can = Object.entries(ABILITIES).flatMap(([key, ability]) => {
    const has = info.get(key).readValue();
    return typeof has === "boolean" ? [[ability, has] as const] : [];
  });
  if (can.length > 0) said["can"] = Object.fromEntries(can);
  if (Object.keys(said).length > 0 && !model.includes("*"))
    provider.facts.set(model, { ...provider.facts.get(model), ...said });
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
 * LiteLLM's `timeout` ends a call whose connection is silent for that time: before the headers, and
 * between two chunks of the body. It does not end a stream that still sends data.
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
