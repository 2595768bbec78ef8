// Converts amounts to another currency with a margin. The rate is that of the day of the charge, so
// an invoice never changes when a rate does. Arithmetic is exact, and rounds once per amount.
import { fail } from "../model/error.ts";
import { parseDecimal, roundHalfEven } from "./decimal.ts";

const RATE_PLACES = 9;
const RATE_UNIT = 1_000_000_000n;
/** A margin is in billionths of a percent. */
const MARGIN_UNIT = 100n * RATE_UNIT;

/** Exchange rates by day, the oldest first, in billionths. */
export type DailyRates = readonly (readonly [day: string, rate: bigint])[];

/** A fixed rate, for every day. */
export const fixedRate = (rate: string): DailyRates => [["", parseDecimal(rate, RATE_PLACES)]];

/** Parses a CSV text with the columns date and rate. Throws if a line is not valid. */
export function parseRates(text: string, name: string): DailyRates {
  const [header = "", ...lines] = text
    .replace(/^\uFEFF/, "")
    .trim()
    .split(/\r?\n/);
  const columns = header
    .toLowerCase()
    .split(",")
    .map((column) => column.trim());
  const [date, rate] = [columns.indexOf("date"), columns.indexOf("rate")];
  if (date < 0 || rate < 0)
    fail("invalid", `${name} must have the columns date and rate.`, { code: "bad_rates" });
  const rates = lines.map((line, i) => {
    const cells = line.split(",").map((cell) => cell.trim());
    const [day = "", value = ""] = [cells[date], cells[rate]];
    if (
      !/^\d{4}-\d\d-\d\d$/.test(day) ||
      !/^\d{1,9}(\.\d{1,9})?$/.test(value) ||
      /^[0.]+$/.test(value)
    )
      fail("invalid", `${name}:${i + 2} is not a date and a rate above 0.`, { code: "bad_rates" });
    return [day, parseDecimal(value, RATE_PLACES)] as const;
  });
  return rates.toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/**
 * Returns the rate of a day: its own, or that of the last day before it, because banks publish no
 * rates on weekends. Throws if there is none.
 */
export function rateOn(rates: DailyRates, day: string): bigint {
  const found = rates.findLast(([from]) => from <= day);
  return found
    ? found[1]
    : fail("invalid", `No exchange rate is known for ${day}.`, { code: "no_rate" });
}

/**
 * Returns an amount in billionths of the currency, rounded half to even.
 * @param nano Amount in nano-dollars. Negative for a correction.
 * @param rate Rate in billionths.
 * @param margin Percent, as a decimal.
 */
export function convert(nano: bigint, rate: bigint, margin: string): bigint {
  const factor = MARGIN_UNIT + parseDecimal(margin, RATE_PLACES);
  const n = (nano < 0n ? -nano : nano) * rate * factor;
  const rounded = roundHalfEven({ n, d: RATE_UNIT * MARGIN_UNIT });
  return nano < 0n ? -rounded : rounded;
}
