// Formats and parses amounts in nano-dollars.
import { formatDecimal, parseDecimal } from "./decimal.ts";

/**
 * Formats an amount: "$0.001234", "$1.50", "-$3.00". Has at least two decimal places and is never
 * rounded.
 */
export const formatUsd = (nano: bigint): string =>
  `${nano < 0n ? "-" : ""}$${formatDecimal(nano < 0n ? -nano : nano, 9, 2)}`;

/** Formats an amount for JSON: "0.001234". */
export const nanoToDecimal = (nano: bigint): string => formatDecimal(nano, 9);

/** Parses an amount that a person wrote: "1.50" or "$1.50". */
export const parseUsd = (text: string): bigint => parseDecimal(text.replace(/^\$/, ""), 9);
