// An honest provider that interprets a request as generously as possible: it accepts a cost field
// under any name and in any form that some backend accepts, and bills all of it. Written from the
// backends' documentation, not from the gateway's tables, which it tests.
import type { Json, JsonObject } from "tollgate/plugin";

export type Fields = Record<string, Json>;

/** Cost of one model's units, in nano-dollars. */
export interface Rates {
  readonly input?: number;
  readonly output?: number;
  readonly image?: number;
  readonly imageToken?: number;
  readonly megapixel?: number;
  readonly search?: number;
  readonly character?: number;
  readonly soundToken?: number;
  readonly second?: number;
}

const words = (text: string): readonly (readonly string[])[] =>
  text.split(" ").map((name) => name.split("_"));
/** Each of these requests several responses or images on some backend. */
export const MANY = words(
  "n best_of num_return_sequences candidate_count num_completions num_images number_of_images n_images image_count images_per_prompt num_images_per_prompt max_images num_outputs number_results num_results samples num_samples n_samples sample_count batch_size num_generations",
);
export const ROUNDS = words("batch_count n_iter num_batches num_iterations");
export const LONG = words(
  "max_tokens max_completion_tokens max_output_tokens max_new_tokens max_tokens_to_sample max_token_count max_gen_len num_predict n_predict max_length",
);
/** Positions of such a field other than the top level. */
export const PLACES: readonly (readonly string[])[] = [
  [],
  ["generationConfig"],
  ["generation_config"],
  ["parameters"],
  ["options"],
  ["extra_body"],
  ["config"],
  ["imageConfig"],
  ["settings"],
  ["sampling_params"],
  ["inferenceConfig"],
  ["provider_options", "openai"],
  ["parameters", "extra"],
  ["generationConfig", "imageConfig"],
  // "[]": the first item of a list.
  ["extra_body", "overrides[]"],
  ["parameters", "configs[]", "options"],
  ["generationConfig", "requests[]"],
];

const upper = (word: string) => word.slice(0, 1).toUpperCase() + word.slice(1);
/** Spellings of a name. */
export const SPELLINGS: readonly ((name: readonly string[]) => string)[] = [
  (name) => name.join("_"),
  (name) => name.map((word, i) => (i === 0 ? word : upper(word))).join(""),
  (name) => name.map(upper).join(""),
  (name) => name.join("-"),
  (name) => name.join("_").toUpperCase(),
  (name) => name.join(""),
];

/** Forms of a number that some parser accepts for it, or for a larger one. */
export const FORMS: readonly ((n: number) => Json)[] = [
  (n) => n,
  (n) => n,
  (n) => String(n),
  (n) => `${n}.0`,
  (n) => ` ${n} `,
  (n) => `+${n}`,
  (n) => `${n}e0`,
  (n) => `1e${String(n).length}`,
  (n) => `0x${n.toString(16)}`,
  (n) => `${n}_0`,
  (n) => `${n},000`,
  (n) => `${n} images`,
  (n) => String(n).replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
  (n) => [n],
  (n) => [1, n],
  (n) => ({ value: n }),
  (n) => -n,
  (n) => n + 0.5,
  () => 0,
  () => true,
  () => "",
  () => 1e12,
  () => "many",
];

/** The largest number that some parser returns for it. 0: none does. */
export function generously(value: Json | undefined): number {
  if (value === true) return 1;
  if (typeof value === "number") return Math.abs(value);
  if (typeof value === "object" && value !== null)
    return Math.max(0, ...Object.values(value).map((one) => generously(one as Json)));
  if (typeof value !== "string") return 0;
  const plain = value.normalize("NFKC").trim();
  const bare = plain.replace(/[_,' ]/g, "");
  const read = [Number(plain), Number(bare), Number.parseFloat(bare)];
  return Math.max(0, ...read.filter(Number.isFinite).map(Math.abs));
}

const flat = (name: string) => name.replace(/[_-]/g, "").toLowerCase();
const flatNames = (names: readonly (readonly string[])[]): ReadonlySet<string> =>
  new Set(names.map((name) => name.join("")));
const [MANY_FLAT, ROUNDS_FLAT, LONG_FLAT] = [MANY, ROUNDS, LONG].map(flatNames) as [
  ReadonlySet<string>,
  ReadonlySet<string>,
  ReadonlySet<string>,
];
/** Client data, or no setting. */
const CONTENT = /^(?:messages|contents|input|prompt|tools|documents|query|metadata|system.*|file)$/;
const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Every value of one of these names in a position for settings. */
function found(of: Fields, names: ReadonlySet<string>, depth = 0): Json[] {
  return Object.entries(of).flatMap(([name, value]) => {
    if (depth === 0 && CONTENT.test(name)) return [];
    if (names.has(flat(name))) return [value];
    const inside = Array.isArray(value) && depth > 0 ? value : [value];
    return inside.flatMap((one) =>
      isObject(one) && depth < 4 ? found(one as Fields, names, depth + 1) : [],
    );
  });
}

const largest = (of: Fields, names: ReadonlySet<string>): number =>
  Math.max(0, ...found(of, names).map(generously));

/** Number of responses or images. */
export function answersOf(asked: Fields): number {
  const sequence = asked["sequential_image_generation"];
  const group =
    sequence !== undefined && sequence !== "disabled"
      ? largest(asked, new Set(["maximages"])) || 15
      : 1;
  const many = Math.max(1, Math.ceil(largest(asked, MANY_FLAT)), group);
  return many * Math.max(1, Math.ceil(largest(asked, ROUNDS_FLAT)));
}

/**
 * Tokens of one response. A limit of 0 or below is ignored, except where 0 is documented: then
 * `limit`, the model's maximum, counts.
 */
export function writtenOf(asked: Fields, limit: number): number {
  const bounds = found(asked, LONG_FLAT);
  if (bounds.length === 1 && bounds[0] === 0 && asked["max_tokens"] === 0) return limit;
  const open = bounds.length === 0 || bounds.some((one) => !(Number(one) > 0));
  return Math.max(open ? limit : 0, ...bounds.map((one) => Math.ceil(generously(one))));
}

/** Pixels of one image. Without a size, the model's largest. */
export function pixelsOf(asked: Fields, most: number): number {
  const areas: number[] = [];
  const side = new Map<string, number>();
  for (const [name, value] of Object.entries(asked)) {
    const key = flat(name);
    if (key === "width" || key === "height") side.set(key, generously(value));
    if (/^(?:size|resolution|imagesize|imageresolution)$/.test(key)) areas.push(areaOf(value));
    if (key.endsWith("megapixels")) areas.push(generously(value) * 1e6);
    if (/^(?:upscale|upscalefactor|scale|hrscale)$/.test(key)) areas.push(most);
  }
  if (side.size > 0) areas.push((side.get("width") || 1_024) * (side.get("height") || 1_024));
  const stated = Math.max(0, ...areas);
  return stated > 0 ? stated : most;
}

function areaOf(value: Json): number {
  if (Array.isArray(value))
    return value.reduce<number>((product, one) => product * generously(one as Json), 1);
  if (isObject(value))
    return generously(value["width"] as Json) * generously(value["height"] as Json);
  const text = String(value).normalize("NFKC");
  const [, wide, high] = /(\d+)\s*[x×*X,]\s*(\d+)/.exec(text) ?? [];
  if (wide && high) return Number(wide) * Number(high);
  const [, thousand] = /^(\d+)k$/i.exec(text.trim()) ?? [];
  return thousand ? (Number(thousand) * 1_024) ** 2 : 0;
}

/** Its hosted tools, and the number of runs that `api` documents. 0: none. */
export function runsOf(asked: Fields, api: string): number {
  const tools = Array.isArray(asked["tools"]) ? asked["tools"].filter(isObject) : [];
  const hosted = tools.filter(({ type }) => /web_search|advisor/.test(String(type)));
  if (hosted.length === 0) return 0;
  const plain = (value: unknown) =>
    typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
  if (api === "responses") return plain(asked["max_tool_calls"]) ?? 10;
  if (api !== "messages") return 10;
  const uses = hosted.map(({ max_uses }) => plain(max_uses) ?? 10);
  return Math.min(
    10,
    uses.reduce((a, b) => a + b, 0),
  );
}

/** A document in pieces of 500 tokens, one byte each, with as much of the query in each as fits. */
export function searchesOf(asked: Fields): number {
  const query = Math.min(250, Buffer.byteLength(String(asked["query"])));
  const documents = (asked["documents"] as Json[]).map((one) =>
    Math.ceil(
      Buffer.byteLength(typeof one === "string" ? one : JSON.stringify(one)) / (500 - query),
    ),
  );
  return Math.ceil(documents.reduce((a, b) => a + Math.max(1, b), 0) / 100);
}

/** Bytes of every text in it, which is the maximum number of tokens. */
export function textOf(value: Json | undefined): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce<number>((sum, one) => sum + textOf(one as Json), 0);
}

export const nano = (amount: number): bigint => BigInt(Math.ceil(amount));
