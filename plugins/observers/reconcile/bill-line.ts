// A line of a provider's bill, as each reader produces it.
import type { Unit } from "tollgate/plugin";

/** Decimal places of a pico-dollar. Providers bill in fractions of a nano-dollar. */
const PICO_PLACES = 12;
/** Counts are in millionths, because seconds and megapixels have fractions. */
const COUNT_PLACES = 6;

export interface BillLine {
  /** Place of the line in the provider's bill: a bucket, or the number of a row. */
  readonly id: string;
  /** Day in UTC, such as "2026-11-27". */
  readonly day: string;
  /** The provider's name of the model. Undefined for taxes, credits, and other charges. */
  readonly model: string | undefined;
  /** The provider's ID of the project, workspace, or account. */
  readonly project: string | undefined;
  /** The provider's ID of the API key. */
  readonly key: string | undefined;
  /** Unit of `count`. `calls` is the number of requests. Undefined if the bill has no counts. */
  readonly unit: Unit | "calls" | undefined;
  /** In millionths. Undefined if the bill reports only a cost. */
  readonly count: bigint | undefined;
  /** In pico-dollars. Undefined if the bill reports only a count. */
  readonly pico: bigint | undefined;
  /** Text of the bill. */
  readonly description: string;
  /** Whether the count only shows how a cost is divided among keys. Other lines contain it. */
  readonly isShare?: boolean;
}

/**
 * Converts a decimal to an integer multiple of 10^-`places`. Further digits are rounded half to
 * even. Accepts an exponent, because programs write small floats with one.
 */
export function parseDecimal(text: string, places: number): bigint {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^\s*([-+]?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d{1,3}))?\s*$/.exec(text) ?? [];
  if (whole === "" && fraction === "") throw new Error(`"${text}" is not a number`);
  const digits = BigInt(whole + fraction);
  const shift = places - fraction.length + Number(exponent);
  const value =
    shift >= 0 ? digits * 10n ** BigInt(shift) : divideHalfEven(digits, 10n ** BigInt(-shift));
  return sign === "-" ? -value : value;
}

/** Divides and rounds half to even. The divisor is positive. */
export function divideHalfEven(n: bigint, d: bigint): bigint {
  if (n < 0n) return -divideHalfEven(-n, d);
  const whole = n / d;
  const twice = (n % d) * 2n;
  return twice > d || (twice === d && whole % 2n === 1n) ? whole + 1n : whole;
}

/** Distributes an amount in proportion to weights. The parts add up to the amount exactly. */
export function distribute(amount: bigint, weights: readonly bigint[]): readonly bigint[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  let [left, leftWeight] = [amount, total > 0n ? total : BigInt(weights.length)];
  return weights.map((weight) => {
    const own = total > 0n ? weight : 1n;
    const part = leftWeight === 0n ? 0n : (left * own) / leftWeight;
    left -= part;
    leftWeight -= own;
    return part;
  });
}

/** Parses an amount in US dollars as pico-dollars. */
export const parsePico = (usd: string): bigint => parseDecimal(usd, PICO_PLACES);
/** Parses a count as millionths. */
export const parseCount = (count: string): bigint => parseDecimal(count, COUNT_PLACES);

/** Returns the UTC day of a time in Unix milliseconds. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/**
 * Returns the form of a model's name in which the names of a bill and of the ledger are compared. A
 * bill names the dated version of a model, the product, or the meter: "gpt-5-2025-08-07", "Claude
 * Sonnet 4.5 (Amazon Bedrock Edition)". The ledger has the name that was called:
 * "us.anthropic.claude-sonnet-4-5-20250929-v1:0".
 */
export const modelKey = (model: string): string =>
  model
    .replace(/^.*\//, "")
    .replace(/^(?:us|eu|apac|jp|au|ca|global)\./, "")
    .replace(/^[a-z0-9]+\.(?=[a-z])/, "")
    .replace(/\s*\([^)]*\)\s*$/, "")
    .replace(/[-@](?:\d{8}|\d{4}-\d{2}-\d{2})(?=$|-v\d)/, "")
    .replace(/-v\d+(?::\d+)?$/, "")
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "");
