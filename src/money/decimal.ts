// Exact arithmetic on decimal strings and integers. No floating-point number is used between a
// price list and a bill.
import { fail } from "../model/error.ts";

/**
 * Parses a decimal string as an integer multiple of 10^-`places`. Throws if it has more decimal
 * places.
 */
export function parseDecimal(text: string, places: number): bigint {
  const [, sign, whole, fraction = ""] =
    /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ??
    fail("invalid", `"${text}" is not a decimal number like 0.25 (no exponent, no thousands).`, {
      code: "bad_decimal",
    });
  const digits = fraction.replace(/0+$/, "");
  if (digits.length > places)
    fail("invalid", `"${text}" has more than ${places} decimal places.`, { code: "bad_decimal" });
  const value = BigInt(whole + digits.padEnd(places, "0"));
  return sign ? -value : value;
}

/**
 * Formats the result of `parseDecimal`, without trailing zeros beyond `minPlaces` decimal places.
 */
export function formatDecimal(value: bigint, places: number, minPlaces = 0): string {
  const digits = (value < 0n ? -value : value).toString().padStart(places + 1, "0");
  const fraction = digits
    .slice(digits.length - places)
    .replace(/0+$/, "")
    .padEnd(minPlaces, "0");
  const whole = digits.slice(0, digits.length - places);
  return (value < 0n ? "-" : "") + whole + (fraction && `.${fraction}`);
}

/**
 * Converts a JavaScript number to an integer number of millionths. Counts in megapixels or half
 * seconds are converted exactly.
 */
export function toMillionths(count: number): bigint {
  if (Number.isSafeInteger(count) && count >= 0) return BigInt(count) * 1_000_000n;
  if (!Number.isFinite(count) || count < 0)
    return fail("invalid", `${count} is not a count.`, { code: "bad_count" });
  // `toFixed` is exact for the binary value of the number. Counts from 1e15 on are treated as
  // integers.
  return count < 1e15 ? BigInt(count.toFixed(6).replace(".", "")) : BigInt(count) * 1_000_000n;
}

/** An exact intermediate sum, which is rounded only once. */
export interface Fraction {
  readonly n: bigint;
  readonly d: bigint;
}

export const multiplyFractions = (a: Fraction, b: Fraction): Fraction => ({
  n: a.n * b.n,
  d: a.d * b.d,
});

export const addFractions = (a: Fraction, b: Fraction): Fraction =>
  a.d === b.d ? { n: a.n + b.n, d: a.d } : { n: a.n * b.d + b.n * a.d, d: a.d * b.d };

export const compareFractions = (a: Fraction, b: Fraction): number => {
  const difference = a.n * b.d - b.n * a.d;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
};

/**
 * Rounds to the nearest integer, and ties to the even integer, so that errors do not accumulate
 * over many rows. Supports only non-negative amounts.
 */
export function roundHalfEven({ n, d }: Fraction): bigint {
  const whole = n / d;
  const twice = (n % d) * 2n;
  return twice > d || (twice === d && whole % 2n === 1n) ? whole + 1n : whole;
}

export const roundUp = ({ n, d }: Fraction): bigint => (n + d - 1n) / d;

// Formats and parses amounts in nano-dollars.

/**
 * Formats an amount: "$0.001234", "$1.50", "-$3.00". The result has at least two decimal places and
 * is never rounded.
 */
export const formatUsd = (nano: bigint): string =>
  `${nano < 0n ? "-" : ""}$${formatDecimal(nano < 0n ? -nano : nano, 9, 2)}`;

/** Formats an amount for JSON: "0.001234". */
export const nanoToDecimal = (nano: bigint): string => formatDecimal(nano, 9);

/** Parses an amount that a person wrote: "1.50" or "$1.50". */
export const parseUsd = (text: string): bigint => parseDecimal(text.replace(/^\$/, ""), 9);
