// Frontend for GET /v1/models: lists the models that the key may use. One format is used for the
// SDKs of OpenAI and Anthropic, and another for Google's.
import {
  defineFrontend,
  type RequestHead,
  type ListedModel,
  type FeatureSupport,
  type JsonObject,
  type Price,
  type Unit,
  type OperationSpec,
  fail,
} from "tollgate/plugin";
import { gemini } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import {
  toGeminiModel,
  createGeminiPage,
  findModel,
  readModelFilter,
} from "./models/model-lists.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { versionedPaths, azurePaths, googlePaths } from "./route-paths.ts";

/** Encoders of errors. All OpenAI-like protocols use the same format. */
const anthropic = messages().server!;
const openai = images().server!;
const google = gemini().server!;
const isMessagesClient = (x: RequestHead) => x.headers["anthropic-version"] !== undefined;
/**
 * Google's SDKs identify themselves. Google's other clients are recognized by the header in which
 * they send the key, because no other clients use it.
 */
const isGeminiClient = (x: RequestHead) =>
  x.headers["x-goog-api-client"] !== undefined ||
  x.credentialSources.some((place) => place === "x-goog-api-key" || place === "?key");
const errorEncoderFor = (x: RequestHead) =>
  isGeminiClient(x) ? google : isMessagesClient(x) ? anthropic : openai;

export default defineFrontend({
  api: 1,
  name: "models",
  summary: "List the models that a key may use",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "x-api-key", "api-key", "x-goog-api-key", "key") },
  },
  setup({ accept: schemes }, ctx) {
    const listed = (x: RequestHead): readonly ListedModel[] => {
      const { operation, provider, privacy } = readModelFilter(x, ctx.catalog.operations());
      const all = ctx.catalog.list({ identity: x.identity, privacy, operation });
      return provider === undefined ? all : all.filter((model) => model.provider === provider);
    };
    const rowed = (model: ListedModel) =>
      toModelEntry(model, ctx.catalog.operations().get(model.operation));
    return {
      extractCredential: (headers, query) => extractCredential(headers, schemes, query),
      encodeFault: (fault, x) => errorEncoderFor(x).encodeFault(fault, { id: x.id }),
      routes: [
        {
          method: "GET",
          path: [...versionedPaths("/models"), ...azurePaths("/models"), ...googlePaths("/models")],
          handle: (x) => ({
            status: 200,
            body: isGeminiClient(x)
              ? createGeminiPage(listed(x), x.query)
              : createListPage(listed(x).map(rowed), x.query, isMessagesClient(x)),
          }),
        },
        {
          method: "GET",
          path: [
            ...versionedPaths("/models/**:id"),
            ...azurePaths("/models/**:id"),
            ...googlePaths("/models/**:id"),
          ],
          handle: (x) => {
            const model = findModel(listed(x), x.params["id"] ?? "");
            return { status: 200, body: isGeminiClient(x) ? toGeminiModel(model) : rowed(model) };
          },
        },
      ],
    };
  },
});

// Describes one model for clients: OpenAI's four fields, Anthropic's, and the extra fields that
// editors and chat UIs read, named as in OpenRouter's API. Unknown values are omitted or null. They
// are never guessed.

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
    description: model.description ?? describeModel(model),
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

/** Describes a model by its context window and its price, if the catalog contains them. */
function describeModel({ limits = {}, price }: ListedModel): string | undefined {
  const context = limits.context ?? limits.input;
  const rate = (unit: Unit) =>
    price?.lines.find((line) => line.unit === unit && line.variant === undefined && line.per > 1)
      ?.usd;
  const [input, output] = [rate("input"), rate("output")];
  const parts = [
    ...(context === undefined ? [] : [`${tokenCount(context)} tokens of context`]),
    ...(input === undefined || output === undefined
      ? []
      : [`$${input} input and $${output} output per million tokens`]),
  ];
  return parts.length > 0 ? parts.join(", ") : undefined;
}

const tokenCount = (tokens: number): string =>
  tokens % 1_000_000 === 0
    ? `${tokens / 1_000_000}M`
    : tokens % 1_000 === 0
      ? `${tokens / 1_000}K`
      : String(tokens);

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

/**
 * Default page size of clients of the messages protocol. OpenAI's clients send no limit and expect
 * the whole list.
 */
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;

/** Creates one page of a list, with the fields that OpenAI's and Anthropic's SDKs each read. */
export function createListPage(
  rows: readonly (JsonObject & { id: string })[],
  query: URLSearchParams,
  paged: boolean,
): JsonObject {
  const limit = limitOf(query.get("limit")) ?? (paged ? DEFAULT_LIMIT : rows.length);
  const after = query.get("after_id");
  const before = query.get("before_id");
  if (after !== null && before !== null)
    fail("invalid", "after_id and before_id cannot be used together.", { param: "before_id" });
  const at = (id: string, param: string): number => {
    const found = rows.findIndex((row) => row.id === id);
    return found >= 0
      ? found
      : fail("invalid", `${param} must be the ID of a model in the list.`, { param });
  };
  let from = 0;
  let to = rows.length;
  if (after !== null) from = at(after, "after_id") + 1;
  if (before !== null) {
    to = at(before, "before_id");
    from = Math.max(0, to - limit);
  }
  const data = rows.slice(from, Math.min(to, from + limit));
  return {
    object: "list",
    data,
    has_more: before === null ? from + data.length < rows.length : from > 0,
    first_id: data[0]?.id ?? null,
    last_id: data[data.length - 1]?.id ?? null,
  };
}

function limitOf(value: string | null): number | undefined {
  if (value === null) return undefined;
  const limit = /^\d{1,6}$/.test(value) ? Number(value) : 0;
  if (limit < 1 || limit > MAX_LIMIT)
    fail("invalid", `limit must be a number from 1 to ${MAX_LIMIT}.`, { param: "limit" });
  return limit;
}
