// Reads model lists of compatible servers. All lists contain model IDs. The location of other data
// differs.
import { matchesGlob } from "../../lib/glob.ts";
import {
  type Json,
  type JsonObject,
  type Operation,
  type ProviderClient,
  type ModelInfo,
  type Opt,
  type Price,
  fail,
} from "../../plugin/index.ts";
import { asList, asObject, isObject } from "../json-values.ts";

export interface ModelListFormat {
  /** Path below the base URL. Default: `models`. */
  path?: string;
  /**
   * Unit of the prices in the list: US dollars per token or per million tokens. If unset, prices
   * are not read.
   */
  prices?: "per_token" | "per_million";
  /** IDs of image models. A pattern may contain one `*`, which matches any text. Default: none. */
  images?: readonly string[];
  /** IDs of embedding models, in addition to those that their name identifies. */
  embeddings?: readonly string[];
  /**
   * IDs of speech models (`speech`) and transcription models (`transcriptions`), in addition to
   * those that their name identifies.
   */
  speech?: readonly string[];
  transcriptions?: readonly string[];
  /** IDs of realtime models. Default: none. */
  realtime?: readonly string[];
  /** IDs of video models. Default: none. */
  videos?: readonly string[];
}

/** Location of the list. `{data: […]}`, `{models: […]}`, and a bare list are all in use. */
const MODEL_LIST_PLACE: ListLocation = { fields: ["data", "models"], mayBeTopLevel: true };

/**
 * Fetches the model list.
 *
 * @param kinds Operations that the backend is used for. Models for other operations are omitted,
 *   because calls to them would fail.
 */
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
    const model =
      asNonEmptyText(row["id"]) ?? asNonEmptyText(row["model"]) ?? asNonEmptyText(row["name"]);
    const kind = model === undefined ? undefined : operationOf(model, row, shape, kinds);
    return model !== undefined && kind ? [infoOf(model, kind, row, shape)] : [];
  });

/**
 * Matches models that serve neither chat nor images. They are omitted, because calls to them would
 * fail.
 */
const UNSUPPORTED_MODEL =
  /embed|whisper|transcri|\btts\b|-tts|speech|realtime|\basr\b|-ocr|guard\b|\bsora\b|\bveo\b/i;

/** Matches known families of embedding models and models with "embed" in their name. */
const EMBEDDING_MODEL = /embed|\bbge-(?!.*rerank)|\bgte-(?!.*rerank)|\be5-|\bminilm\b/i;

function operationOf(
  model: string,
  row: JsonObject,
  {
    images = [],
    embeddings = [],
    speech = [],
    transcriptions = [],
    realtime = [],
    videos = [],
  }: ModelListFormat,
  kinds: ReadonlySet<Operation>,
): Operation | undefined {
  const type = asNonEmptyText(row["type"]) ?? asNonEmptyText(row["model_type"]) ?? endpointsIn(row);
  if (type === "image" || images.some((pattern) => matchesGlob(pattern, model))) return "image";
  if (realtime.some((pattern) => matchesGlob(pattern, model)))
    return kinds.has("realtime") ? "realtime" : undefined;
  if (videos.some((pattern) => matchesGlob(pattern, model)))
    return kinds.has("video") ? "video" : undefined;
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

/**
 * Returns the audio operation of a model. If the list states no type, live models, which listen and
 * speak at the same time, are excluded because they use a different API.
 */
function audioOperationOf(
  model: string,
  type: string | undefined,
): "transcript" | "speech" | undefined {
  const description = type ?? model;
  if (type === undefined && /realtime|-live\b|\blive-/i.test(model)) return undefined;
  if (/whisper|transcri|\basr\b|speech-to-text|\bstt\b/i.test(description)) return "transcript";
  return /\btts\b|speech/i.test(description) ? "speech" : undefined;
}

/**
 * Returns the operations that a list entry names, as text. If `chat` is among them, it takes
 * precedence.
 */
function endpointsIn({ endpoints }: JsonObject): string | undefined {
  const names = asList(endpoints).flatMap((one) => asNonEmptyText(one) ?? []);
  return names.length === 0 ? undefined : (names.find((one) => one === "chat") ?? names.join(" "));
}

/** Maximum number of characters of a description that are kept. */
const MAX_DESCRIPTION = 200;

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
  const name =
    asNonEmptyText(row["display_name"]) ??
    (asNonEmptyText(row["id"]) ? asNonEmptyText(row["name"]) : undefined);
  const description = asNonEmptyText(row["description"]);
  return {
    model,
    operation: kind,
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description: description.slice(0, MAX_DESCRIPTION) }),
    ...(released !== undefined && { released }),
    ...((context !== undefined || output !== undefined) && { limits: { context, output } }),
    ...parsePrice(asObject(row["pricing"]), shape),
  };
}

/** Parses a date in Unix seconds, as OpenAI sends it, or as text. Servers without a date send 0. */
function parseDate(value: unknown): string | undefined {
  const date = new Date(
    typeof value === "number" ? value * 1000 : (asNonEmptyText(value) ?? Number.NaN),
  );
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

/** Parses a price. A price is used only if both the input and the output price are decimals. */
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

/**
 * Parses a non-negative decimal. Small numbers may have an exponent. Negative prices mean that the
 * price varies, and are rejected.
 */
function parseDecimalText(textContent: string): string | undefined {
  const [, whole = "", fraction = "", exponent = "0"] =
    /^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(textContent.trim()) ?? [];
  return whole === "" ? undefined : shiftDecimalPoint(whole, fraction, Number(exponent));
}

const timesMillion = (decimal: string): string => {
  const [whole = "0", fraction = ""] = decimal.split(".");
  return shiftDecimalPoint(whole, fraction, 6);
};

/** Moves the decimal point of a text. Money is never converted to a float. */
function shiftDecimalPoint(whole: string, fraction: string, places: number): string {
  const digits = whole + fraction;
  const point = whole.length + places;
  const padded = point <= 0 ? "0".repeat(1 - point) + digits : digits.padEnd(point, "0");
  const at = point <= 0 ? 1 : point;
  const left = padded.slice(0, at).replace(/^0+(?=\d)/, "");
  const right = padded.slice(at).replace(/0+$/, "");
  return right === "" ? left : `${left}.${right}`;
}

/**
 * Reads a page of a provider's model list. Providers can send anything. If the response is not a
 * model list, the error names the expected and the received value. Rows that are not objects are
 * skipped.
 */
export interface ListPage {
  /** Rows of the list that are objects. */
  readonly rows: readonly JsonObject[];
  /** The object that contains the list. Empty if the list is the whole response. */
  readonly otherFields: JsonObject;
}

export interface ListLocation {
  /** Names of the field that contains the list. */
  readonly fields: readonly [string, ...string[]];
  /** Whether the list can be the whole response. */
  readonly mayBeTopLevel?: true;
  /** Whether the response is `{}` if there are no rows. */
  readonly mayBeMissing?: true;
  readonly headers?: Record<string, string>;
}

export const asNonEmptyText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

export const asPositiveCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;

const unavailable = (message: string): never =>
  fail("upstream", message, { code: "models_unavailable" });

/** Fetches one page of a model list. */
export async function fetchListPage(
  line: ProviderClient,
  path: string,
  of: ListLocation,
): Promise<ListPage> {
  const answer = await line.fetch(path, of.headers && { headers: of.headers });
  if (!answer.ok) unavailable(`The request for the model list returned status ${answer.status}.`);
  const text = await answer.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return failUnexpectedShape(of, text.trim() === "" ? "nothing" : "no JSON");
  }
  return parseListPage(body, of);
}

function parseListPage(body: unknown, of: ListLocation): ListPage {
  const json = asObject(body);
  const found = of.fields.map((name) => json?.[name]).find((value) => value !== undefined);
  const empty = of.mayBeMissing && json && Object.keys(json).length === 0 ? [] : undefined;
  const rows: unknown = of.mayBeTopLevel && Array.isArray(body) ? body : (found ?? empty);
  if (!Array.isArray(rows)) return failUnexpectedShape(of, describeShape(body));
  return { rows: rows.filter(isObject), otherFields: json ?? {} };
}

function failUnexpectedShape({ fields, mayBeTopLevel }: ListLocation, came: string): never {
  const expected = [...fields.map((name) => `{"${name}": […]}`), ...(mayBeTopLevel ? ["[…]"] : [])];
  return unavailable(
    `The response is not a model list: expected ${expected.join(" or ")}, received ${came}.`,
  );
}

/** Describes a response by its field names, without values: `{"error", "status"}`. */
function describeShape(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a plain list";
  if (typeof value !== "object") return `a ${typeof value === "string" ? "text" : typeof value}`;
  const names = Object.keys(value);
  const shown = names.slice(0, 4).map((name) => JSON.stringify(name.slice(0, 30)));
  return `{${shown.join(", ")}${names.length > shown.length ? ", …" : ""}}`;
}
