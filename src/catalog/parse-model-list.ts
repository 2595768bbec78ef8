import { fail } from "../model/error.ts";
import type { ModelInfo } from "../model/facts.ts";
import { UNITS } from "../model/usage.ts";
import { parseDecimal } from "../money/decimal.ts";

/** Maximum number of models in a list. */
const MAX_MODELS = 20_000;
/**
 * Characters and length allowed after the slash of a model id. Models whose name no request could
 * carry are omitted.
 */
const MODEL_NAME = /^[!#-~]{1,255}$/;
const DATE_PREFIX = /^\d{4}-\d\d-\d\d/;

/**
 * Validates a model list and keeps only known fields of the right type. Used for lists from
 * provider plugins and for lists stored on disk. One invalid entry rejects the whole list, so that
 * garbage never replaces a good list.
 */
export function parseModelList(value: unknown): readonly ModelInfo[] {
  if (!Array.isArray(value)) return rejectList("it is not a list");
  if (value.length > MAX_MODELS)
    return rejectList(`it has ${value.length} entries, more than ${MAX_MODELS}`);
  const models = new Map<string, ModelInfo>();
  value.forEach((entry, i) => {
    const where = `entry ${i + 1}`;
    if (!isObject(entry)) return rejectList(`${where} is not an object`);
    const { model } = entry;
    if (typeof model !== "string" || model === "") return rejectList(`${where} has no model name`);
    if (MODEL_NAME.test(model) && !models.has(model)) models.set(model, parseModel(entry, model));
    return undefined;
  });
  return [...models.values()];
}

function parseModel(entry: Record<string, unknown>, model: string): ModelInfo {
  const info: Record<string, unknown> = { model };
  for (const [field, fits] of Object.entries(FIELD_CHECKS)) {
    const value = entry[field];
    if (value === undefined || value === null) continue;
    if (!fits(value)) return rejectList(`the ${field} of ${model} cannot be read`);
    info[field] = value;
  }
  if (info["operation"] === undefined) return rejectList(`${model} has no operation`);
  return info as unknown as ModelInfo;
}

type Check = (value: unknown) => boolean;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText: Check = (v) => typeof v === "string" && v.length <= 1_000;
const isDateText: Check = (v) => typeof v === "string" && v.length <= 40 && DATE_PREFIX.test(v);
const isBoolean: Check = (v) => typeof v === "boolean";
const isCount: Check = (v) => typeof v === "number" && Number.isFinite(v) && v >= 0;
const isOneOf =
  (...words: readonly unknown[]): Check =>
  (v) =>
    words.includes(v);
const isListOf =
  (fits: Check): Check =>
  (v) =>
    Array.isArray(v) && v.length <= 1_000 && v.every(fits);
const isMapOf =
  (fits: Check): Check =>
  (v) =>
    isObject(v) &&
    Object.keys(v).length <= 1_000 &&
    Object.values(v).every((x) => x === undefined || fits(x));
const isShape =
  (fields: { readonly [field: string]: Check }, ...required: readonly string[]): Check =>
  (v) =>
    isObject(v) &&
    required.every((field) => v[field] !== undefined) &&
    Object.entries(v).every(([field, x]) => x === undefined || (fields[field]?.(x) ?? false));

/**
 * Whether a value is a non-negative decimal with at most `places` decimal places, so that costs are
 * exact.
 */
const isDecimal =
  (places: number): Check =>
  (v) => {
    if (typeof v !== "string" || v.length > 30) return false;
    try {
      return parseDecimal(v, places) >= 0n;
    } catch {
      return false;
    }
  };
const isPriceLine = isShape(
  {
    unit: isOneOf(...UNITS),
    usd: isDecimal(6),
    per: isOneOf(1, 1_000_000),
    variant: isShape({ quality: isText, size: isText, first: isBoolean }),
  },
  "unit",
  "usd",
  "per",
);
const isPrice: Check = isShape(
  {
    lines: isListOf(isPriceLine),
    over: isListOf(isShape({ input: isCount, lines: isListOf(isPriceLine) }, "input", "lines")),
    tiers: isMapOf(isListOf(isPriceLine)),
    multipliers: isListOf(isShape({ when: isMapOf(isText), by: isDecimal(9) }, "when", "by")),
    from: isDateText,
    until: isDateText,
    hours: isShape({ from: isText, to: isText, days: isListOf(isCount) }, "from", "to"),
    otherwise: (v) => isPrice(v),
  },
  "lines",
);

/** Form of operation names. */
const OPERATION_NAME = /^[a-z][a-z0-9_-]{0,31}$/;

const FIELD_CHECKS: { readonly [field in Exclude<keyof ModelInfo, "model">]: Check } = {
  // The set of known operations depends on what is mounted.
  operation: (v) => typeof v === "string" && OPERATION_NAME.test(v),
  name: isText,
  protocols: isListOf(isText),
  can: isMapOf(isBoolean),
  rejectedFields: isListOf(isText),
  price: isPrice,
  pricedAs: isText,
  dataPolicy: isObject,
  limits: isMapOf(isCount),
  image: isShape({
    sizes: isListOf(isText),
    sides: isShape({ min: isCount, max: isCount, step: isCount }, "min", "max"),
    qualities: isListOf(isText),
    formats: isListOf(isText),
  }),
  released: isDateText,
  retires: isDateText,
};

const rejectList = (why: string): never =>
  fail("upstream", `The list of models is not usable: ${why}.`, { code: "bad_model_list" });
