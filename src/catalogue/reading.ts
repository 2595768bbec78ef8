import { fail } from "../model/error.ts";
import type { ModelInfo } from "../model/facts.ts";
import { UNITS } from "../model/usage.ts";
import { parseDecimal } from "../money/decimal.ts";

/** More is not a list of models. */
const MOST = 20_000;
/** What can stand behind the slash of a model id; a name that no request can carry is left out. */
const NAME = /^[!#-~]{1,255}$/;
const DATE = /^\d{4}-\d\d-\d\d/;

/**
 * A list of models as we trust it: only fields we know, each of its type. What a provider's code made of an upstream's
 * answer comes through here, and what was kept on disk. One entry that cannot be read refuses the whole, so that a
 * list which is garbage never stands in for a good one.
 */
export function readList(value: unknown): readonly ModelInfo[] {
  if (!Array.isArray(value)) return refuse("it is not a list");
  if (value.length > MOST) return refuse(`it has ${value.length} entries, more than ${MOST}`);
  const models = new Map<string, ModelInfo>();
  value.forEach((entry, i) => {
    const where = `entry ${i + 1}`;
    if (!isObject(entry)) return refuse(`${where} is not an object`);
    const { model } = entry;
    if (typeof model !== "string" || model === "") return refuse(`${where} has no model name`);
    if (NAME.test(model) && !models.has(model)) models.set(model, readEntry(entry, model));
    return undefined;
  });
  return [...models.values()];
}

function readEntry(entry: Record<string, unknown>, model: string): ModelInfo {
  const info: Record<string, unknown> = { model };
  for (const [field, fits] of Object.entries(FIELDS)) {
    const value = entry[field];
    if (value === undefined || value === null) continue;
    if (!fits(value)) return refuse(`the ${field} of ${model} cannot be read`);
    info[field] = value;
  }
  if (info["kind"] === undefined) return refuse(`${model} has no kind`);
  return info as unknown as ModelInfo;
}

type Fits = (value: unknown) => boolean;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const text: Fits = (v) => typeof v === "string" && v.length <= 1_000;
const date: Fits = (v) => typeof v === "string" && v.length <= 40 && DATE.test(v);
const yes: Fits = (v) => typeof v === "boolean";
const count: Fits = (v) => typeof v === "number" && Number.isFinite(v) && v >= 0;
const oneOf =
  (...words: readonly unknown[]): Fits =>
  (v) =>
    words.includes(v);
const listOf =
  (fits: Fits): Fits =>
  (v) =>
    Array.isArray(v) && v.length <= 1_000 && v.every(fits);
const mapOf =
  (fits: Fits): Fits =>
  (v) =>
    isObject(v) &&
    Object.keys(v).length <= 1_000 &&
    Object.values(v).every((x) => x === undefined || fits(x));
const shape =
  (fields: { readonly [field: string]: Fits }, ...required: readonly string[]): Fits =>
  (v) =>
    isObject(v) &&
    required.every((field) => v[field] !== undefined) &&
    Object.entries(v).every(([field, x]) => x === undefined || (fields[field]?.(x) ?? false));

/** What money can calculate with: a decimal that is exact in so many places. */
const decimal =
  (places: number): Fits =>
  (v) => {
    if (typeof v !== "string" || v.length > 30) return false;
    try {
      return parseDecimal(v, places) >= 0n;
    } catch {
      return false;
    }
  };
const line = shape(
  {
    unit: oneOf(...UNITS),
    usd: decimal(6),
    per: oneOf(1, 1_000_000),
    variant: shape({ quality: text, size: text, first: yes }),
  },
  "unit",
  "usd",
  "per",
);
const price: Fits = shape(
  {
    lines: listOf(line),
    over: listOf(shape({ input: count, lines: listOf(line) }, "input", "lines")),
    tiers: mapOf(listOf(line)),
    multipliers: listOf(shape({ when: mapOf(text), by: decimal(9) }, "when", "by")),
    from: date,
    until: date,
    hours: shape({ from: text, to: text, days: listOf(count) }, "from", "to"),
    otherwise: (v) => price(v),
  },
  "lines",
);

/** A kind, as packages name them. */
const KIND = /^[a-z][a-z0-9_-]{0,31}$/;

const FIELDS: { readonly [field in Exclude<keyof ModelInfo, "model">]: Fits } = {
  // Which of them are known depends on what is mounted.
  kind: (v) => typeof v === "string" && KIND.test(v),
  name: text,
  protocols: listOf(text),
  can: mapOf(yes),
  refuses: listOf(text),
  price,
  pricedAs: text,
  data: isObject,
  limits: mapOf(count),
  image: shape({
    sizes: listOf(text),
    sides: shape({ min: count, max: count, step: count }, "min", "max"),
    qualities: listOf(text),
    formats: listOf(text),
  }),
  released: date,
  retires: date,
};

const refuse = (why: string): never =>
  fail("upstream", `The list of models is not usable: ${why}.`, { code: "bad_model_list" });
