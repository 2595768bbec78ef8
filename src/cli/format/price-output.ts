// Formats prices for people who compare them.
import type { Price, PriceLine } from "../../model/facts.ts";
import { UNITS, type Unit } from "../../model/usage.ts";

/** Labels of units. Other units are shown by their own names. */
const UNIT_LABELS: { readonly [unit in Unit]?: string } = {
  input: "in",
  output: "out",
  cache_read: "read from cache",
  image_in: "of image in",
  image_out: "of image out",
  audio_in: "of audio in",
  audio_out: "of audio out",
  images: "an image",
  megapixels: "a megapixel",
  searches: "a search",
  fetches: "a fetched page",
  file_searches: "a file search",
  map_searches: "a map search",
  code_sessions: "a code session",
  tool_runs: "a run of another tool",
  seconds: "a second",
  requests: "a request",
};
/** Units in the short form of a price. */
const MAIN_UNITS: readonly Unit[] = ["input", "output", "image_out", "images", "megapixels"];

const isFree = ({ lines }: Price): boolean =>
  UNITS.every((unit) => lines.some((l) => l.unit === unit && /^[0.]+$/.test(l.usd)));

/** Formats a price in short: "$1.10 in, $4.40 out". Token prices are per million. */
export function formatPriceBrief(price: Price | undefined): string {
  if (!price) return "unpriced";
  if (isFree(price)) return "free";
  const lines = price.lines.filter((l) => MAIN_UNITS.includes(l.unit) && l.variant === undefined);
  return lines.length === 0 ? "it depends" : lines.map(formatPriceLine).join(", ");
}

/** Returns the whole price, with a row for each condition that has rates of its own. */
export function priceRows(price: Price): readonly (readonly [name: string, words: string])[] {
  if (isFree(price)) return [["price", "free"]];
  const rows: [string, string][] = [["price", formatRates(price.lines)]];
  for (const { input, lines } of price.over ?? [])
    rows.push([`above ${input.toLocaleString("en")} in`, formatRates(lines)]);
  for (const [tier, lines] of Object.entries(price.tiers ?? {}))
    rows.push([`tier ${tier}`, formatRates(lines)]);
  for (const { when, by } of price.multipliers ?? [])
    rows.push([Object.entries(when).flat().join(" "), `tokens by ${by}`]);
  const { from, until, hours, otherwise } = price;
  const holds = [
    from && `from ${from}`,
    until && `until ${until}`,
    hours && `${hours.from} to ${hours.to} UTC`,
  ];
  if (holds.some(Boolean)) rows.push(["holds", holds.filter(Boolean).join(", ")]);
  if (otherwise)
    rows.push(...priceRows(otherwise).map(([k, v]) => [`else ${k}`, v] as [string, string]));
  return rows;
}

const formatRates = (lines: readonly PriceLine[]): string =>
  `${lines.map(formatPriceLine).join(", ")}${lines.some(({ per }) => per !== 1) ? "; tokens by the million" : ""}`;

function formatPriceLine({ unit, usd, variant = {} }: PriceLine): string {
  const particular = [variant.first && "the first", variant.quality, variant.size].filter(Boolean);
  const amount = /\.\d$/.test(usd) ? `${usd}0` : usd;
  return `$${amount} ${UNIT_LABELS[unit] ?? unit}${particular.length > 0 ? ` (${particular.join(" ")})` : ""}`;
}
