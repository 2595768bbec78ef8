// Describes one model for clients: OpenAI's four fields, Anthropic's, and the extra fields that
// editors and chat UIs read, named as in OpenRouter's API. Unknown values are omitted or null,
// never guessed.
import type {
  FeatureSupport,
  JsonObject,
  ListedModel,
  Price,
  Unit,
  OperationSpec,
} from "tollgate/plugin";

export function toModelEntry(
  model: ListedModel,
  work: OperationSpec | undefined,
): JsonObject & { id: string } {
  const { limits = {}, can, price, policy } = model;
  const context = limits.context ?? limits.input;
  return {
    id: model.id,
    object: "model",
    created: model.released ? Math.floor(Date.parse(model.released) / 1000) : 0,
    owned_by: model.provider,
    type: "model",
    display_name: model.name ?? model.id,
    created_at: moment(model.released) ?? "1970-01-01T00:00:00Z",
    max_input_tokens: context ?? null,
    max_tokens: limits.output ?? null,
    lifecycle: model.retires === undefined ? "active" : "deprecated",
    line: null,
    deprecated_at: null,
    retires_at: moment(model.retires) ?? null,
    capabilities: null,
    operation: model.operation,
    context_length: context,
    top_provider: {
      context_length: context ?? null,
      max_completion_tokens: limits.output ?? null,
    },
    architecture: can && modalities(work?.outputModality ?? model.operation, can),
    supported_parameters: can && parameters(can, model.rejectedFields ?? []),
    pricing: price && pricing(price),
    image: model.image && { ...model.image, max_n: limits.images },
    expiration_date: model.retires?.slice(0, 10),
    data_policy: {
      retention: policy.retention,
      trains: policy.trains,
      basis: policy.basis,
    },
  };
}

const moment = (date: string | undefined): string | undefined =>
  date === undefined || Number.isNaN(Date.parse(date))
    ? undefined
    : new Date(date).toISOString().replace(".000Z", "Z");

function modalities(modality: string, can: FeatureSupport): JsonObject {
  const more = [
    ...(can.vision ? ["image"] : []),
    ...(can.documents ? ["file"] : []),
    ...(can.audio ? ["audio"] : []),
  ];
  return {
    input_modalities: ["text", ...more],
    output_modalities: [modality],
  };
}

const PARAMETERS: readonly (readonly [keyof FeatureSupport, ...string[]])[] = [
  ["tools", "tools", "tool_choice"],
  ["parallel_tools", "parallel_tool_calls"],
  ["json", "response_format"],
  ["json_schema", "response_format", "structured_outputs"],
  ["reasoning", "reasoning", "include_reasoning", "reasoning_effort"],
  ["logprobs", "logprobs", "top_logprobs"],
];
/** Parameters that every chat model accepts, unless it is known to reject one. */
const COMMON_PARAMETERS = ["max_tokens", "temperature", "top_p", "stop"];

function parameters(can: FeatureSupport, refuses: readonly string[]): readonly string[] {
  const known = PARAMETERS.flatMap(([feature, ...names]) => (can[feature] ? names : []));
  return [...new Set([...COMMON_PARAMETERS, ...known])].filter((name) => !refuses.includes(name));
}

/** Prices per unit, as decimal dollars. Contains only base prices, without tiers or brackets. */
const UNITS: readonly (readonly [name: string, ...units: Unit[]])[] = [
  ["prompt", "input"],
  ["completion", "output"],
  ["input_cache_read", "cache_read"],
  ["input_cache_write", "cache_write_5m", "cache_write_30m"],
  ["input_cache_write_1h", "cache_write_1h"],
  ["internal_reasoning", "reasoning"],
  ["audio", "audio_in"],
  ["image_token", "image_in"],
  ["image_output", "image_out"],
  ["image", "images"],
  ["megapixel", "megapixels"],
  ["web_search", "searches"],
  ["request", "requests"],
];

function pricing(price: Price): JsonObject {
  const prices: Record<string, string> = {};
  for (const [name, ...units] of UNITS)
    for (const unit of units.toReversed()) {
      const line = price.lines.find((l) => l.unit === unit && l.variant === undefined);
      if (line) prices[name] = line.per === 1 ? line.usd : millionth(line.usd);
    }
  return prices;
}

/** Divides decimal text by a million. A float would round the result. */
export function millionth(usd: string): string {
  const [whole = "", fraction = ""] = usd.split(".");
  const digits = whole.padStart(7, "0");
  const point = digits.length - 6;
  const text = `${digits.slice(0, point)}.${digits.slice(point)}${fraction}`;
  return text.replace(/^0+(?=\d)/, "").replace(/\.?0+$/, "");
}
