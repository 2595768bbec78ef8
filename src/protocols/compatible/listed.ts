// Lists of models, as compatible servers answer them: the ids are in all of them, the rest is where it happens to be.
import type {
  Json,
  JsonObject,
  Kind,
  ProviderAccess,
  ModelInfo,
  Opt,
  Price,
} from "../../plugin/index.ts";
import { list, object } from "../json.ts";
import { fits } from "../../lib/glob.ts";
import { countIn, type ListPlace, type Page, page, pageOf, textIn as text } from "./listing.ts";

export interface ListShape {
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
const LISTING: ListPlace = { under: ["data", "models"], bare: true };

/** `kinds`: what the backend is asked for here; a model of another kind would be offered, and fail. */
export async function listed(
  line: ProviderAccess,
  shape: ListShape,
  kinds: ReadonlySet<Kind> = USUAL,
): Promise<readonly ModelInfo[]> {
  return infosOf(await page(line, shape.path ?? "models", LISTING), shape, kinds);
}

export const modelsIn = (
  body: Json,
  shape: ListShape,
  kinds: ReadonlySet<Kind> = USUAL,
): readonly ModelInfo[] => infosOf(pageOf(body, LISTING), shape, kinds);

const USUAL: ReadonlySet<Kind> = new Set(["chat", "image"]);

const infosOf = (
  { rows }: Page,
  shape: ListShape,
  kinds: ReadonlySet<Kind>,
): readonly ModelInfo[] =>
  rows.flatMap((row) => {
    const model = text(row["id"]) ?? text(row["model"]) ?? text(row["name"]);
    const kind = model === undefined ? undefined : kindOf(model, row, shape, kinds);
    return model !== undefined && kind ? [infoOf(model, kind, row, shape)] : [];
  });

/** What neither chats nor draws: it would be offered, and fail. */
const OTHER =
  /embed|whisper|transcri|\btts\b|-tts|speech|realtime|\basr\b|-ocr|guard\b|\bsora\b|\bveo\b/i;
/** Families of models that are known for their vectors, beside those that say so. */
const EMBEDS = /embed|\bbge-(?!.*rerank)|\bgte-(?!.*rerank)|\be5-|\bminilm\b/i;

function kindOf(
  model: string,
  row: JsonObject,
  { images = [], embeddings = [], speech = [], transcriptions = [] }: ListShape,
  kinds: ReadonlySet<Kind>,
): Kind | undefined {
  const type = text(row["type"]) ?? text(row["model_type"]) ?? endpointsIn(row);
  if (type === "image" || images.some((pattern) => fits(pattern, model))) return "image";
  const embeds = type === undefined ? EMBEDS.test(model) : /embed/.test(type);
  if (embeds || embeddings.some((pattern) => fits(pattern, model)))
    return kinds.has("embedding") ? "embedding" : undefined;
  if (type === undefined ? /rerank/i.test(model) : /rerank/.test(type))
    return kinds.has("rerank") ? "rerank" : undefined;
  if (type === undefined ? /moderation/i.test(model) : /moderation/.test(type))
    return kinds.has("moderation") ? "moderation" : undefined;
  const sound = soundOf(model, type);
  if (sound === "transcript" || transcriptions.some((pattern) => fits(pattern, model)))
    return kinds.has("transcript") ? "transcript" : undefined;
  if (sound === "speech" || speech.some((pattern) => fits(pattern, model)))
    return kinds.has("speech") ? "speech" : undefined;
  if (type !== undefined && /audio|video/.test(type)) return undefined;
  return OTHER.test(model) ? undefined : "chat";
}

/** Where neither is said: live models that hear and speak at once are asked in another way. */
function soundOf(model: string, type: string | undefined): "transcript" | "speech" | undefined {
  const said = type ?? model;
  if (type === undefined && /realtime|-live\b|\blive-/i.test(model)) return undefined;
  if (/whisper|transcri|\basr\b|speech-to-text|\bstt\b/i.test(said)) return "transcript";
  return /\btts\b|speech/i.test(said) ? "speech" : undefined;
}

/** What it may be asked for, where the list says it by operations. One that also chats is there to chat. */
function endpointsIn({ endpoints }: JsonObject): string | undefined {
  const said = list(endpoints).flatMap((one) => text(one) ?? []);
  return said.length === 0 ? undefined : (said.find((one) => one === "chat") ?? said.join(" "));
}

function infoOf(model: string, kind: Kind, row: JsonObject, shape: ListShape): ModelInfo {
  const top = object(row["top_provider"]);
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
  const released = momentOf(row["created"] ?? row["created_at"]);
  const name = text(row["display_name"]) ?? (text(row["id"]) ? text(row["name"]) : undefined);
  return {
    model,
    kind,
    ...(name !== undefined && { name }),
    ...(released !== undefined && { released }),
    ...((context !== undefined || output !== undefined) && { limits: { context, output } }),
    ...priced(object(row["pricing"]), shape),
  };
}

/** Seconds, as OpenAI says it, or a date. Servers that do not know say zero. */
function momentOf(said: unknown): string | undefined {
  const date = new Date(typeof said === "number" ? said * 1000 : (text(said) ?? Number.NaN));
  const at = date.getTime();
  return at > 0 && at < 1e14 ? date.toISOString() : undefined;
}

function first(row: JsonObject, ...names: readonly string[]): number | undefined {
  for (const name of names) {
    const value = countIn(row[name]);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** A price is only believed whole: what it costs to read and to write, as decimals. */
function priced(pricing: Opt<JsonObject>, { prices }: ListShape): { price?: Price } {
  if (!pricing || !prices) return {};
  const usd = (...names: readonly string[]): string | undefined => {
    for (const name of names) {
      const said = pricing[name];
      const decimal =
        typeof said === "number" || typeof said === "string" ? plain(String(said)) : undefined;
      if (decimal !== undefined) return prices === "per_token" ? millionfold(decimal) : decimal;
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
function plain(said: string): string | undefined {
  const [, whole = "", fraction = "", exponent = "0"] =
    /^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(said.trim()) ?? [];
  return whole === "" ? undefined : shifted(whole, fraction, Number(exponent));
}

const millionfold = (decimal: string): string => {
  const [whole = "0", fraction = ""] = decimal.split(".");
  return shifted(whole, fraction, 6);
};

/** The point, moved so many places: money is never a float. */
function shifted(whole: string, fraction: string, places: number): string {
  const digits = whole + fraction;
  const point = whole.length + places;
  const padded = point <= 0 ? "0".repeat(1 - point) + digits : digits.padEnd(point, "0");
  const at = point <= 0 ? 1 : point;
  const left = padded.slice(0, at).replace(/^0+(?=\d)/, "");
  const right = padded.slice(at).replace(/0+$/, "");
  return right === "" ? left : `${left}.${right}`;
}
