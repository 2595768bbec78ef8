// Formats prices for people who compare them.
import type { Price, PriceLine } from "../../model/facts.ts";
import { UNITS, type Unit } from "../../model/usage.ts";

/** Labels of units. Other units are shown by their own names. */
const UNIT_LABELS: { readonly [unit in Unit]?: string } = {
  input: "in",
  output: "out",
  cache_read: "cache read",
  cache_read_audio: "audio cache read",
  cache_read_image: "image cache read",
  image_in: "image input",
  image_out: "image output",
  audio_in: "audio input",
  audio_out: "audio output",
  images: "per image",
  megapixels: "per megapixel",
  searches: "per search",
  fetches: "per page fetch",
  file_searches: "per file search",
  map_searches: "per map search",
  code_sessions: "per code session",
  tool_runs: "per run of another tool",
  seconds: "per second",
  requests: "per request",
};
/** Units in the short form of a price. */
const MAIN_UNITS: readonly Unit[] = ["input", "output", "image_out", "images", "megapixels"];

const isFree = ({ lines }: Price): boolean =>
  UNITS.every((unit) => lines.some((l) => l.unit === unit && /^[0.]+$/.test(l.usd)));

/** Formats a price briefly: "$1.10 in, $4.40 out". Token prices are per million. */
export function formatPriceBrief(price: Price | undefined): string {
  if (!price) return "unpriced";
  if (isFree(price)) return "free";
  const lines = price.lines.filter((l) => MAIN_UNITS.includes(l.unit) && l.variant === undefined);
  return lines.length === 0 ? "variable" : lines.map(formatPriceLine).join(", ");
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
  if (holds.some(Boolean)) rows.push(["valid", holds.filter(Boolean).join(", ")]);
  if (otherwise)
    rows.push(...priceRows(otherwise).map(([k, v]) => [`else ${k}`, v] as [string, string]));
  return rows;
}

const formatRates = (lines: readonly PriceLine[]): string =>
  `${lines.map(formatPriceLine).join(", ")}${lines.some(({ per }) => per !== 1) ? "; token prices are per million" : ""}`;

function formatPriceLine({ unit, usd, variant = {} }: PriceLine): string {
  const particular = [variant.first && "the first", variant.quality, variant.size].filter(Boolean);
  const amount = /\.\d$/.test(usd) ? `${usd}0` : usd;
  return `$${amount} ${UNIT_LABELS[unit] ?? unit}${particular.length > 0 ? ` (${particular.join(" ")})` : ""}`;
}
