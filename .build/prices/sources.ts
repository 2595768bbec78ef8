// Reads public price lists as sources of a price document: the list of LiteLLM, and the models of
// OpenRouter. A figure is one rate in pico-dollars per unit, so that lists with other notations are
// comparable: "input", "over.272000.input", "tiers.batch.output".
import { parseDecimal } from "../../plugins/observers/reconcile/bill-line.ts";
import type { Unit } from "tollgate/plugin";

/** Statement of one source about one model. */
export interface Stated {
  readonly figures: ReadonlyMap<string, bigint>;
  readonly operation?: string;
  readonly context?: number;
  readonly output?: number;
  /** ISO date. */
  readonly retires?: string;
  /** Rates that apply at certain hours in UTC, "HH:MM". Later windows take precedence. */
  readonly windows?: readonly PriceWindow[];
  /** Rates that a price cannot express, by the name that the source uses. */
  readonly skipped: readonly string[];
}

export interface PriceWindow {
  readonly from: string;
  readonly to: string;
  readonly figures: ReadonlyMap<string, bigint>;
}

/** Models by provider and name. */
export type Source = ReadonlyMap<string, ReadonlyMap<string, Stated>>;

interface Digits {
  readonly digits: string;
}
const parseExact = (text: string): unknown =>
  JSON.parse(text, ((_key: string, value: unknown, context: { readonly source: string }) =>
    typeof value === "number" ? { digits: context.source } : value) as (
    key: string,
    value: unknown,
  ) => unknown);
const pico = (text: string): bigint => parseDecimal(text, 12);

/** Plugins by the provider names of LiteLLM, with the prefix of its model names. */
const LITELLM_PROVIDERS: Readonly<Record<string, readonly [plugin: string, prefix: string]>> = {
  openai: ["openai", ""],
  anthropic: ["anthropic", ""],
  gemini: ["google", "gemini/"],
  "vertex_ai-language-models": ["vertex", ""],
  "vertex_ai-anthropic_models": ["vertex", "vertex_ai/"],
  bedrock: ["bedrock", ""],
  bedrock_converse: ["bedrock", ""],
  azure: ["azure", "azure/"],
  mistral: ["mistral", "mistral/"],
  xai: ["xai", "xai/"],
  deepseek: ["deepseek", "deepseek/"],
  groq: ["groq", "groq/"],
  together_ai: ["together", "together_ai/"],
  fireworks_ai: ["fireworks", "fireworks_ai/"],
  perplexity: ["perplexity", "perplexity/"],
  cohere: ["cohere", ""],
  cohere_chat: ["cohere", ""],
  moonshot: ["moonshot", "moonshot/"],
  dashscope: ["alibaba", "dashscope/"],
  minimax: ["minimax", "minimax/"],
  zai: ["zai", "zai/"],
  cerebras: ["cerebras", "cerebras/"],
  sambanova: ["sambanova", "sambanova/"],
  openrouter: ["openrouter", "openrouter/"],
  deepinfra: ["deepinfra", "deepinfra/"],
  novita: ["novita", "novita/"],
  voyage: ["voyage", "voyage/"],
};

const LITELLM_OPERATIONS: Readonly<Record<string, string>> = {
  chat: "chat",
  responses: "chat",
  completion: "completion",
  embedding: "embedding",
  image_generation: "image",
  audio_transcription: "transcript",
  audio_speech: "speech",
  rerank: "rerank",
  moderation: "moderation",
};

const LITELLM_UNITS: Readonly<Record<string, Unit>> = {
  input_cost_per_token: "input",
  output_cost_per_token: "output",
  output_cost_per_reasoning_token: "reasoning",
  cache_read_input_token_cost: "cache_read",
  cache_creation_input_token_cost: "cache_write_5m",
  cache_creation_input_token_cost_above_1hr: "cache_write_1h",
  cache_read_input_audio_token_cost: "cache_read_audio",
  input_cost_per_audio_token: "audio_in",
  output_cost_per_audio_token: "audio_out",
  input_cost_per_image_token: "image_in",
  output_cost_per_image_token: "image_out",
  output_cost_per_image: "images",
  input_cost_per_character: "characters",
  input_cost_per_second: "seconds",
  output_cost_per_second: "seconds_out",
};

/** Reads `model_prices_and_context_window.json` of LiteLLM. */
export function readLitellm(text: string): Source {
  const source = new Map<string, Map<string, Stated>>();
  for (const [name, entry] of Object.entries(
    parseExact(text) as Record<string, Record<string, unknown>>,
  )) {
    const [plugin, prefix] = LITELLM_PROVIDERS[String(entry["litellm_provider"])] ?? [];
    if (plugin === undefined || prefix === undefined || !name.startsWith(prefix)) continue;
    const model = name.slice(prefix.length);
    // Prices by region and by size of an image have names with a slash.
    if (
      plugin !== "openrouter" &&
      plugin !== "fireworks" &&
      plugin !== "together" &&
      plugin !== "deepinfra" &&
      plugin !== "novita" &&
      model.includes("/")
    )
      continue;
    const figures = new Map<string, bigint>();
    const skipped: string[] = [];
    for (const [field, value] of Object.entries(entry)) {
      if (!field.includes("cost") || !isDigits(value)) continue;
      const figure = litellmFigure(field);
      // A rate of zero in this list often means that the rate is not known.
      if (figure === undefined) skipped.push(field);
      else if (pico(value.digits) > 0n) figures.set(figure, pico(value.digits));
    }
    const operation = LITELLM_OPERATIONS[String(entry["mode"])];
    const [context, output] = [entry["max_input_tokens"], entry["max_output_tokens"]].map((value) =>
      isDigits(value) ? Number(value.digits) : undefined,
    );
    const retires = entry["deprecation_date"];
    put(source, plugin, model, {
      figures,
      skipped,
      ...(operation !== undefined && { operation }),
      ...(context !== undefined && context > 0 && { context }),
      ...(output !== undefined && output > 0 && { output }),
      ...(typeof retires === "string" && /^\d{4}-\d\d-\d\d$/.test(retires) && { retires }),
    });
  }
  return source;
}

const isDigits = (value: unknown): value is Digits =>
  typeof value === "object" && value !== null && typeof (value as Digits).digits === "string";

/** Returns the figure of a field, such as "input_cost_per_token_above_272k_tokens". */
function litellmFigure(field: string): string | undefined {
  const [, base = field, tier] = /^(.*)_(batches|flex|priority)$/.exec(field) ?? [];
  const [, bare = base, thousands] = /^(.*)_above_(\d+)k_tokens$/.exec(base) ?? [];
  const unit = LITELLM_UNITS[bare];
  if (unit === undefined) return undefined;
  const named = tier === undefined ? unit : `tiers.${tier === "batches" ? "batch" : tier}.${unit}`;
  return thousands === undefined ? named : `over.${thousands}000.${named}`;
}

const OPENROUTER_UNITS: Readonly<Record<string, Unit>> = {
  prompt: "input",
  completion: "output",
  input_cache_read: "cache_read",
  input_cache_write: "cache_write_5m",
  input_cache_write_1h: "cache_write_1h",
  audio: "audio_in",
  audio_output: "audio_out",
  input_audio_cache: "cache_read_audio",
  web_search: "searches",
};

/** Plugins by the vendor prefix of OpenRouter, which passes most vendors' prices on. */
const OPENROUTER_VENDORS: Readonly<Record<string, string>> = {
  openai: "openai",
  anthropic: "anthropic",
  google: "google",
  "x-ai": "xai",
  deepseek: "deepseek",
  mistralai: "mistral",
  moonshotai: "moonshot",
  "z-ai": "zai",
  minimax: "minimax",
  perplexity: "perplexity",
  cohere: "cohere",
  qwen: "alibaba",
  meta: "meta",
};

/**
 * Reads the response of OpenRouter's `/api/v1/models`. Each model is stated for OpenRouter, and for
 * its vendor.
 */
export function readOpenrouter(text: string): Source {
  const source = new Map<string, Map<string, Stated>>();
  const root = parseExact(text) as { readonly data?: unknown } | readonly unknown[];
  const models = (Array.isArray(root) ? root : (root as { data: unknown }).data) as readonly Record<
    string,
    unknown
  >[];
  for (const entry of models) {
    const id = String(entry["id"]);
    const pricing = entry["pricing"] as Record<string, unknown>;
    const figures = new Map<string, bigint>();
    const skipped: string[] = [];
    const isFree = id.endsWith(":free");
    const windows: PriceWindow[] = [];
    const read = (of: Record<string, unknown>, prefix: string, to = figures) => {
      for (const [field, value] of Object.entries(of)) {
        const unit = OPENROUTER_UNITS[field];
        if (unit === undefined || typeof value !== "string") continue;
        const rate = pico(value);
        // A negative rate marks a router, whose price depends on the model that it selects.
        if (rate > 0n || (isFree && rate === 0n)) to.set(`${prefix}${unit}`, rate);
      }
    };
    read(pricing, "");
    for (const override of (pricing["overrides"] ?? []) as readonly Record<string, unknown>[]) {
      const least = override["min_prompt_tokens"];
      const [from, to] = [parseTime(override["utc_start"]), parseTime(override["utc_end"])];
      const isTimed = override["utc_start"] !== undefined || override["utc_end"] !== undefined;
      if (isDigits(least) && !isTimed) read(override, `over.${least.digits}.`);
      else if (least === undefined && from !== undefined && to !== undefined) {
        const rates = new Map<string, bigint>();
        read(override, "", rates);
        windows.push({ from, to, figures: rates });
      } else skipped.push("overrides by time");
    }
    const context = entry["context_length"];
    const stated: Stated = {
      figures,
      skipped,
      ...(windows.length > 0 && { windows }),
      operation: "chat",
      ...(isDigits(context) && { context: Number(context.digits) }),
    };
    put(source, "openrouter", id, stated);
    const slash = id.indexOf("/");
    const vendor = OPENROUTER_VENDORS[id.slice(0, slash)];
    if (vendor !== undefined && !id.includes(":")) put(source, vendor, id.slice(slash + 1), stated);
  }
  return source;
}

/** Parses a time such as "16:30", "1630", or 1630. */
function parseTime(value: unknown): string | undefined {
  const text = isDigits(value) ? value.digits.padStart(4, "0") : value;
  const [, hours, minutes] =
    typeof text === "string" ? (/^([01]\d|2[0-3]):?([0-5]\d)(?::?00)?$/.exec(text) ?? []) : [];
  return hours === undefined ? undefined : `${hours}:${minutes}`;
}

function put(
  source: Map<string, Map<string, Stated>>,
  plugin: string,
  model: string,
  stated: Stated,
): void {
  const models = source.get(plugin) ?? new Map<string, Stated>();
  models.set(model, stated);
  source.set(plugin, models);
}
