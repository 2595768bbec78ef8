// Converts amounts, durations, and limits of other gateways. Money is never converted to a float.
import { type Limit, formatLimit, parseLimit } from "tollgate/plugin";
import type { SourceValue } from "./source-value.ts";

/**
 * Multiplies decimal text by a power of ten: "3e-7" by 6 places is "0.3". Returns undefined if the
 * text is not a plain number.
 */
export function shiftDecimal(text: string, places: number): string | undefined {
  const [, whole = "", fraction = "", exponent = "0"] =
    /^(\d*)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i.exec(text.trim()) ?? [];
  if (whole === "" && fraction === "") return undefined;
  const point = whole.length + Number(exponent) + places;
  const digits = whole + fraction;
  const padded = point <= 0 ? "0".repeat(1 - point) + digits : digits.padEnd(point, "0");
  const at = point <= 0 ? 1 : point;
  const before = padded.slice(0, at).replace(/^0+(?=\d)/, "");
  const after = padded.slice(at).replace(/0+$/, "");
  return after === "" ? before : `${before}.${after}`;
}

/**
 * Price fields of other gateways, in dollars per token. Tollgate's prices are in dollars per
 * million tokens.
 */
const PRICE_FIELDS: Readonly<Record<string, readonly [unit: string, places: number]>> = {
  input_cost_per_token: ["input", 6],
  output_cost_per_token: ["output", 6],
  cache_read_input_token_cost: ["cache_read", 6],
  cache_creation_input_token_cost: ["cache_write_5m", 6],
};

/** Reads a price. Returns undefined if there is none. */
export function readPrice(
  ...places: readonly SourceValue[]
): Record<string, string> | "free" | undefined {
  const price: Record<string, string> = {};
  for (const [name, [unit, digits]] of Object.entries(PRICE_FIELDS))
    for (const place of places) {
      const text = place.get(name).readText();
      const amount = text === undefined ? undefined : shiftDecimal(text, digits);
      if (amount !== undefined) price[unit] ??= amount;
    }
  const amounts = Object.values(price);
  if (amounts.length === 0) return undefined;
  return amounts.every((amount) => amount === "0") ? "free" : price;
}

const WINDOW_PATTERNS: readonly (readonly [RegExp, per: Limit["per"], exact: boolean])[] = [
  [/^(1h|60m)$/, "hour", true],
  [/^(1d|24h|daily)$/i, "day", true],
  [/^(7d|1w|weekly)$/i, "week", true],
  [/^(1M|1mo|monthly)$/i, "month", true],
  [/^(28|29|30|31)d$/, "month", false],
];

/**
 * Reads a budget in dollars per calendar period. Reports periods that are only approximately the
 * same.
 */
export function readBudget(max: SourceValue, span: SourceValue): string | undefined {
  const nano = parseNano(max.readText() ?? "");
  if (nano === undefined) return undefined;
  const period = span.readText();
  const [, per, exact] =
    period === undefined
      ? ([undefined, "total", true] as const)
      : (WINDOW_PATTERNS.find(([pattern]) => pattern.test(period)) ??
        ([undefined, "month", false] as const));
  if (!exact) span.report("approximate", `a budget of ${period} is counted by the calendar ${per}`);
  const limit = formatLimit({ unit: "nano_usd", max: nano, per });
  if (parseLimit(limit)) return limit;
  max.report("unsupported", "budgets of 1,000,000,000 dollars or more are not supported");
  return undefined;
}

/**
 * Converts decimal dollars to nano-dollars, rounded. Returns undefined if the text is not a plain
 * number.
 */
export function parseNano(usd: string): bigint | undefined {
  const [whole, fraction = ""] = shiftDecimal(usd, 9)?.split(".") ?? [];
  return whole === undefined ? undefined : BigInt(whole) + (fraction >= "5" ? 1n : 0n);
}

/** Reads limits of requests per minute, tokens per minute, and concurrent requests. */
export function readRateLimits(
  of: SourceValue,
  names: Readonly<Record<"requests" | "tokens" | "concurrent", string>>,
) {
  const limits: string[] = [];
  for (const unit of ["requests", "tokens", "concurrent"] as const) {
    const max = of.get(names[unit]).readNumber();
    if (max === undefined || max < 1) continue;
    const limit = formatLimit({ unit, max: Math.floor(max), per: "minute" });
    if (parseLimit(limit)) limits.push(limit);
    else of.get(names[unit]).report("unsupported", "the limit is too large");
  }
  return limits;
}

/** Formats seconds as a duration of gateway.yaml. */
export const formatSeconds = (of: number): string =>
  Number.isInteger(of) ? `${of}s` : `${Math.round(of * 1_000)}ms`;
