// Nano-dollars in words, and back.
import { formatDecimal, parseDecimal } from "./decimal.ts";

/** "$0.001234", "$1.50", "-$3.00": never fewer than two decimal places, never a rounded one. */
export const formatUsd = (nano: bigint): string =>
  `${nano < 0n ? "-" : ""}$${formatDecimal(nano < 0n ? -nano : nano, 9, 2)}`;

/** "0.001234": what JSON carries. */
export const nanoToDecimal = (nano: bigint): string => formatDecimal(nano, 9);

/** "1.50" or "$1.50": a budget as a person writes it. */
export const parseUsd = (text: string): bigint => parseDecimal(text.replace(/^\$/, ""), 9);
