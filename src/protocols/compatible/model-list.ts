// Lists of models, as compatible servers answer them: the ids are in all of them, the rest is where it happens to be.
import type {
  Json,
  JsonObject,
  Operation,
  ProviderClient,
  ModelInfo,
  Opt,
  Price,
} from "../../plugin/index.ts";
import { asList, asObject } from "../json-values.ts";
import { matchesGlob } from "../../lib/glob.ts";
import {
  asPositiveCount,
  type ListLocation,
  type ListPage,
  fetchListPage,
  parseListPage,
  asNonEmptyText as text,
} from "./list-page.ts";

export interface ModelListFormat {
  /** Below the base; absent: `models`. */
  path?: string;
  /** How the list says prices: in dollars a token, or a million tokens. Absent: not at all. */
  prices?: "per_token" | "per_million";
  /** Ids of models that make images. One `*` in each stands for anything. Absent: it has none. */
  images?: readonly string[];
  /** Ids of models that make vectors, beside those whose names say so. */
  embeddings?: readonly string[];
  /** Ids of models that speak, and of those that write down what they hear, beside those whose names say so. */
  speech?: readonly string[];
  transcriptions?: readonly string[];
}

/** `{data: […]}`, `{models: […]}` and a bare list are all in use. */
const MODEL_LIST_PLACE: ListLocation = { fields: ["data", "models"], mayBeTopLevel: true };

/** `kinds`: what the backend is asked for here; a model of another kind would be offered, and fail. */
export async function fetchModelList(
  line: ProviderClient,
  shape: ModelListFormat,
  kinds: ReadonlySet<Operation> = DEFAULT_OPERATIONS,
): Promise<readonly ModelInfo[]> {
  return toModelInfos(
    await fetchListPage(line, shape.path ?? "models", MODEL_LIST_PLACE),
    shape,
    kinds,
  );
}

export const parseModelList = (
  body: Json,
  shape: ModelListFormat,
  kinds: ReadonlySet<Operation> = DEFAULT_OPERATIONS,
): readonly ModelInfo[] => toModelInfos(parseListPage(body, MODEL_LIST_PLACE), shape, kinds);

const DEFAULT_OPERATIONS: ReadonlySet<Operation> = new Set(["chat", "image"]);

const toModelInfos = (
  { rows }: ListPage,
  shape: ModelListFormat,
  kinds: ReadonlySet<Operation>,
): readonly ModelInfo[] =>
  rows.flatMap((row) => {
    const model = text(row["id"]) ?? text(row["model"]) ?? text(row["name"]);
    const kind = model === undefined ? undefined : operationOf(model, row, shape, kinds);
    return model !== undefined && kind ? [infoOf(model, kind, row, shape)] : [];
  });

/** What neither chats nor draws: it would be offered, and fail. */
const UNSUPPORTED_MODEL =
  /embed|whisper|transcri|\btts\b|-tts|speech|realtime|\basr\b|-ocr|guard\b|\bsora\b|\bveo\b/i;
/** Families of models that are known for their vectors, beside those that say so. */
const EMBEDDING_MODEL = /embed|\bbge-(?!.*rerank)|\bgte-(?!.*rerank)|\be5-|\bminilm\b/i;

function operationOf(
  model: string,
  row: JsonObject,
  { images = [], embeddings = [], speech = [], transcriptions = [] }: ModelListFormat,
  kinds: ReadonlySet<Operation>,
): Operation | undefined {
  const type = text(row["type"]) ?? text(row["model_type"]) ?? endpointsIn(row);
  if (type === "image" || images.some((pattern) => matchesGlob(pattern, model))) return "image";
  const embeds = type === undefined ? EMBEDDING_MODEL.test(model) : /embed/.test(type);
  if (embeds || embeddings.some((pattern) => matchesGlob(pattern, model)))
    return kinds.has("embedding") ? "embedding" : undefined;
  if (type === undefined ? /rerank/i.test(model) : /rerank/.test(type))
    return kinds.has("rerank") ? "rerank" : undefined;
  if (type === undefined ? /moderation/i.test(model) : /moderation/.test(type))
    return kinds.has("moderation") ? "moderation" : undefined;
  const sound = audioOperationOf(model, type);
  if (sound === "transcript" || transcriptions.some((pattern) => matchesGlob(pattern, model)))
    return kinds.has("transcript") ? "transcript" : undefined;
  if (sound === "speech" || speech.some((pattern) => matchesGlob(pattern, model)))
    return kinds.has("speech") ? "speech" : undefined;
  if (type !== undefined && /audio|video/.test(type)) return undefined;
  return UNSUPPORTED_MODEL.test(model) ? undefined : "chat";
}

/** Where neither is said: live models that hear and speak at once are asked in another way. */
function audioOperationOf(
  model: string,
  type: string | undefined,
): "transcript" | "speech" | undefined {
  const description = type ?? model;
  if (type === undefined && /realtime|-live\b|\blive-/i.test(model)) return undefined;
  if (/whisper|transcri|\basr\b|speech-to-text|\bstt\b/i.test(description)) return "transcript";
  return /\btts\b|speech/i.test(description) ? "speech" : undefined;
}

/** What it may be asked for, where the list says it by operations. One that also chats is there to chat. */
function endpointsIn({ endpoints }: JsonObject): string | undefined {
  const names = asList(endpoints).flatMap((one) => text(one) ?? []);
  return names.length === 0 ? undefined : (names.find((one) => one === "chat") ?? names.join(" "));
}

function infoOf(
  model: string,
  kind: Operation,
  row: JsonObject,
  shape: ModelListFormat,
): ModelInfo {
  const top = asObject(row["top_provider"]);
  const context = first(
    row,
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
  );
  const output =
    first(row, "max_output_tokens", "max_completion_tokens", "max_output_length") ??
    first(top ?? {}, "max_completion_tokens");
  const released = parseDate(row["created"] ?? row["created_at"]);
  const name = text(row["display_name"]) ?? (text(row["id"]) ? text(row["name"]) : undefined);
  return {
    model,
    operation: kind,
    ...(name !== undefined && { name }),
    ...(released !== undefined && { released }),
    ...((context !== undefined || output !== undefined) && { limits: { context, output } }),
    ...parsePrice(asObject(row["pricing"]), shape),
  };
}

/** Seconds, as OpenAI says it, or a date. Servers that do not know say zero. */
function parseDate(value: unknown): string | undefined {
  const date = new Date(typeof value === "number" ? value * 1000 : (text(value) ?? Number.NaN));
  const at = date.getTime();
  return at > 0 && at < 1e14 ? date.toISOString() : undefined;
}

function first(row: JsonObject, ...names: readonly string[]): number | undefined {
  for (const name of names) {
    const value = asPositiveCount(row[name]);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** A price is only believed whole: what it costs to read and to write, as decimals. */
function parsePrice(pricing: Opt<JsonObject>, { prices }: ModelListFormat): { price?: Price } {
  if (!pricing || !prices) return {};
  const usd = (...names: readonly string[]): string | undefined => {
    for (const name of names) {
      const amount = pricing[name];
      const decimal =
        typeof amount === "number" || typeof amount === "string"
          ? parseDecimalText(String(amount))
          : undefined;
      if (decimal !== undefined) return prices === "per_token" ? timesMillion(decimal) : decimal;
    }
    return undefined;
  };
  const input = usd("prompt", "input");
  const output = usd("completion", "output");
  if (input === undefined || output === undefined) return {};
  const read = usd("input_cache_read", "cached_input", "cached") ?? input;
  const written = usd("input_cache_write") ?? input;
  return {
    price: {
      lines: [
        { unit: "input", usd: input, per: 1_000_000 },
        { unit: "cache_read", usd: read, per: 1_000_000 },
        { unit: "cache_write_5m", usd: written, per: 1_000_000 },
        { unit: "cache_write_30m", usd: written, per: 1_000_000 },
        { unit: "output", usd: output, per: 1_000_000 },
      ],
    },
  };
}

/** Digits and a point; small numbers come with an exponent. Negative prices mean "it depends". */
function parseDecimalText(textContent: string): string | undefined {
  const [, whole = "", fraction = "", exponent = "0"] =
    /^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(textContent.trim()) ?? [];
  return whole === "" ? undefined : shiftDecimalPoint(whole, fraction, Number(exponent));
}

const timesMillion = (decimal: string): string => {
  const [whole = "0", fraction = ""] = decimal.split(".");
  return shiftDecimalPoint(whole, fraction, 6);
};

/** The point, moved so many places: money is never a float. */
function shiftDecimalPoint(whole: string, fraction: string, places: number): string {
  const digits = whole + fraction;
  const point = whole.length + places;
  const padded = point <= 0 ? "0".repeat(1 - point) + digits : digits.padEnd(point, "0");
  const at = point <= 0 ? 1 : point;
  const left = padded.slice(0, at).replace(/^0+(?=\d)/, "");
  const right = padded.slice(at).replace(/0+$/, "");
  return right === "" ? left : `${left}.${right}`;
}
