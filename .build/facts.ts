// Generates plugins/providers/facts/<provider>.json from the lists in test/fixtures/facts: models.json, tools.json with the
// prices of tools that providers run, and batches.json with the discounts of batch APIs.
//
//     npx node --conditions=tollgate-source .build/facts.ts
//
// Prices are copied digit by digit from the list's text and never converted to floats. Values that the list does not contain
// are omitted: a missing price is unknown, and so is a missing capability.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type {
  FeatureSupport,
  Facts,
  ImageFacts,
  ModelInfo,
  Price,
  PriceLine,
  Unit,
} from "tollgate/plugin";

const root = new URL("..", import.meta.url).pathname;
const SOURCE = join(root, "test/fixtures/facts/models.json");
const TOOLS = join(root, "test/fixtures/facts/tools.json");
const BATCHES = join(root, "test/fixtures/facts/batches.json");
export const TARGET = join(root, "plugins/providers/facts");

/**
 * Providers whose metadata is written by hand, next to their code, because the list does not record
 * which prices the vendor itself publishes.
 */
const BY_HAND = new Set(["bfl"]);

/** A number as its original text. */
type Digits = { digits: string };
type Amounts = { [name: string]: Digits | undefined };

/** One entry of the list, with the fields that are used. */
export interface Listed {
  provider: string;
  model: string;
  name?: string;
  aliases?: string[];
  kind: "chat" | "image";
  context?: Digits;
  max_output?: Digits;
  max_n?: Digits;
  in?: string[];
  caps?: { tools?: boolean; json_schema?: boolean; temperature?: boolean };
  reasoning?: object;
  price?: Rates & {
    tiers?: (Rates & { above_input_tokens: Digits })[];
    service_tiers?: Record<string, Rates>;
    multipliers?: { region?: Amounts; inference_geo_us?: Digits; speed_fast?: Digits };
  };
  price_until?: string;
  price_next?: Rates & { from: string };
  price_image?: {
    per_image?: Digits;
    per_megapixel?: { first: Digits; each_additional?: Digits };
    per_million_tokens?: Amounts;
  };
  sizes?: string[];
  quality?: string[];
  formats?: string[];
  released?: string;
  retires?: string;
  as_of: string;
}

interface Rates {
  input?: Digits;
  output?: Digits;
  reasoning?: Digits;
  cache_read?: Digits;
  cache_write?: Amounts;
  input_audio?: Digits;
  output_audio?: Digits;
}

export function readList(text: string = readFileSync(SOURCE, "utf8")): Listed[] {
  return (digitsOf(text) as { models: Listed[] }).models;
}

/** Prices of tools that a provider runs for some of its models. */
export interface ListedTools {
  provider: string;
  models: string;
  prices: Amounts;
  once?: string[];
  sizes?: Amounts;
  as_of: string;
}

const keep = (_key: string, value: unknown, context: { source: string }): unknown =>
  typeof value === "number" ? { digits: context.source } : value;
const digitsOf = (text: string): unknown =>
  JSON.parse(text, keep as (key: string, value: unknown) => unknown);

export const readTools = (text: string = readFileSync(TOOLS, "utf8")): ListedTools[] =>
  (digitsOf(text) as { tools: ListedTools[] }).tools;

/** Discount of a provider's batch API. */
export interface ListedBatches {
  provider: string;
  models: string;
  by: Digits;
  units: Unit[];
  as_of: string;
}

export const readBatches = (text: string = readFileSync(BATCHES, "utf8")): ListedBatches[] =>
  (digitsOf(text) as { batches: ListedBatches[] }).batches;

const each = (unit: Unit, { digits }: Digits, variant?: PriceLine["variant"]): PriceLine => ({
  unit,
  usd: digits,
  per: 1,
  ...(variant && { variant }),
});

/** Returns the price lines of tools that this model's provider runs. */
function toolLines(m: Listed, tools: readonly ListedTools[]): PriceLine[] {
  const of = tools.find((t) => t.provider === m.provider && new RegExp(t.models).test(m.model));
  if (!of || m.kind !== "chat") return [];
  const sizes = Object.entries(of.sizes ?? {}) as [string, Digits][];
  return [
    ...(Object.entries(of.prices) as [Unit, Digits][]).flatMap(([unit, price]) =>
      of.once?.includes(unit)
        ? [each(unit, price, { first: true }), each(unit, { digits: "0" })]
        : [each(unit, price)],
    ),
    ...sizes.map(([quality, price]) => each("requests", price, { quality })),
    // An unknown size is charged as the last size, which is the most expensive.
    ...sizes.slice(-1).map(([, price]) => each("requests", price)),
  ];
}

const per1M = (unit: Unit, amount: Digits | undefined): PriceLine[] =>
  amount ? [{ unit, usd: amount.digits, per: 1_000_000 }] : [];

const lines = (rates: Rates): PriceLine[] => [
  ...per1M("input", rates.input),
  ...per1M("cache_read", rates.cache_read),
  // A cache write without a stated lifetime has the shortest lifetime. Longer lifetimes without a
  // price use the price of the nearest lifetime.
  ...per1M("cache_write_5m", rates.cache_write?.["5m"] ?? rates.cache_write?.["default"]),
  ...per1M("cache_write_30m", rates.cache_write?.["30m"]),
  ...per1M("cache_write_1h", rates.cache_write?.["1h"]),
  ...per1M("cache_write_12h", rates.cache_write?.["12h"]),
  ...per1M("output", rates.output),
  ...per1M("reasoning", rates.reasoning),
  ...per1M("audio_in", rates.input_audio),
  ...per1M("audio_out", rates.output_audio),
];

export function priceOf(m: Listed): Price | undefined {
  if (m.price) return tokens(m, m.price);
  const { per_image, per_megapixel, per_million_tokens: t } = m.price_image ?? {};
  if (per_image) return { lines: [{ unit: "images", usd: per_image.digits, per: 1 }] };
  if (per_megapixel) {
    const { first, each_additional: more } = per_megapixel;
    return {
      lines: [
        { unit: "megapixels", usd: first.digits, per: 1, variant: { first: true } },
        ...(more ? [{ unit: "megapixels", usd: more.digits, per: 1 } as const] : []),
      ],
    };
  }
  // Without a price for image output, the price of an image is unknown.
  if (!t?.["image_output"]) return undefined;
  return {
    lines: [
      ...per1M("input", t["text_input"]),
      ...per1M("image_in", t["image_input"]),
      // Cache reads have one unit, and no vendor separates text from images in it, so the higher
      // price of the two is used.
      ...per1M("cache_read", t["image_cache_read"] ?? t["text_cache_read"]),
      ...per1M("output", t["text_output"]),
      ...per1M("image_out", t["image_output"]),
    ],
  };
}

function tokens(m: Listed, price: NonNullable<Listed["price"]>): Price {
  const { region, inference_geo_us, speed_fast } = price.multipliers ?? {};
  const multipliers = [
    ...Object.entries(region ?? {}).map(([region, by]) => ({ when: { region }, by: by!.digits })),
    ...(inference_geo_us ? [{ when: { inference_geo: "us" }, by: inference_geo_us.digits }] : []),
    ...(speed_fast ? [{ when: { speed: "fast" }, by: speed_fast.digits }] : []),
  ];
  return {
    lines: lines(price),
    ...(price.tiers && {
      over: price.tiers.map((tier) => ({
        input: Number(tier.above_input_tokens.digits),
        lines: lines(tier),
      })),
    }),
    ...(price.service_tiers && {
      tiers: Object.fromEntries(
        Object.entries(price.service_tiers).map(([tier, rates]) => [tier, lines(rates)]),
      ),
    }),
    ...(multipliers.length > 0 && { multipliers }),
    ...(m.price_until && { until: m.price_until }),
    ...(m.price_next && { otherwise: { lines: lines(m.price_next), from: m.price_next.from } }),
  };
}

/**
 * Includes only stated capabilities. The source of the list may not track an input type that it
 * does not name.
 */
function canOf(m: Listed): FeatureSupport | undefined {
  const can: { -readonly [F in keyof FeatureSupport]: boolean } = {
    ...(m.caps?.tools !== undefined && { tools: m.caps.tools }),
    ...(m.caps?.json_schema !== undefined && { json_schema: m.caps.json_schema }),
    ...(m.reasoning && { reasoning: true }),
    ...(m.kind === "chat" && m.in?.includes("image") && { vision: true }),
    ...(m.in?.includes("pdf") && { documents: true }),
    ...(m.in?.includes("audio") && { audio: true }),
  };
  return Object.keys(can).length > 0 ? can : undefined;
}

function imageOf(m: Listed): ImageFacts | undefined {
  const listed = m.sizes?.every((size) => size === "auto" || /^\d+x\d+$/.test(size));
  const image: ImageFacts = {
    ...(listed && { sizes: m.sizes }),
    ...(m.quality && { qualities: m.quality }),
    ...(m.formats && { formats: m.formats }),
  };
  return m.kind === "image" && Object.keys(image).length > 0 ? image : undefined;
}

/** Tool prices are the same in every period of a price. */
const withLines = (price: Price, more: readonly PriceLine[]): Price => ({
  ...price,
  lines: [...price.lines, ...more],
  ...(price.otherwise && { otherwise: withLines(price.otherwise, more) }),
});

/** Multiplies two decimals digit by digit. */
function multiply(a: string, b: string): string {
  const [wholeA = "", fractionA = ""] = a.split(".");
  const [wholeB = "", fractionB = ""] = b.split(".");
  const places = fractionA.length + fractionB.length;
  const product = BigInt(wholeA + fractionA) * BigInt(wholeB + fractionB);
  const digits = product.toString().padStart(places + 1, "0");
  const fraction = digits.slice(digits.length - places).replace(/0+$/, "");
  return digits.slice(0, digits.length - places) + (fraction === "" ? "" : `.${fraction}`);
}

/** Adds the tier `batch`, unless the list contains its rates. */
function withBatchTier(m: Listed, price: Price, batches: readonly ListedBatches[]): Price {
  const of = batches.find((b) => b.provider === m.provider && new RegExp(b.models).test(m.model));
  if (!of || m.kind !== "chat") return price;
  const lines = price.lines
    .filter(({ unit }) => of.units.includes(unit))
    .map((line) => ({ ...line, usd: multiply(line.usd, of.by.digits) }));
  return {
    ...price,
    tiers: { batch: lines, ...price.tiers },
    ...(price.otherwise && { otherwise: withBatchTier(m, price.otherwise, batches) }),
  };
}

function infos(
  m: Listed,
  tools: readonly ListedTools[],
  batches: readonly ListedBatches[],
): ModelInfo[] {
  const own = priceOf(m);
  const price = own && withLines(withBatchTier(m, own, batches), toolLines(m, tools));
  const limits = {
    ...(m.context && { context: Number(m.context.digits) }),
    ...(m.max_output && { output: Number(m.max_output.digits) }),
    ...(m.max_n && { images: Number(m.max_n.digits) }),
  };
  const can = canOf(m);
  const image = imageOf(m);
  const info: ModelInfo = {
    model: m.model,
    operation: m.kind,
    ...(m.name !== undefined && { name: m.name }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(can && { can }),
    ...(image && { image }),
    ...(m.caps?.temperature === false && { rejectedFields: ["temperature"] }),
    ...(m.released && { released: m.released }),
    ...(m.retires && { retires: m.retires }),
    ...(price && { price }),
  };
  const { price: _, ...alike } = info;
  return [info, ...(m.aliases ?? []).map((model) => ({ ...alike, model, pricedAs: m.model }))];
}

/** Returns the text of each provider's file, with one model per line. */
export function files(
  list: readonly Listed[],
  tools: readonly ListedTools[] = readTools(),
  batches: readonly ListedBatches[] = readBatches(),
): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [provider, models] of Map.groupBy(list, (m) => m.provider)) {
    if (BY_HAND.has(provider)) continue;
    // Date of the oldest entry, so that no entry appears newer than it is.
    const asOf = models.map((m) => m.as_of).sort()[0]!;
    const facts: Facts = { asOf, models: models.flatMap((m) => infos(m, tools, batches)) };
    const rows = facts.models.map((info) => `    ${JSON.stringify(info)}`);
    texts.set(provider, `{\n  "asOf": "${asOf}",\n  "models": [\n${rows.join(",\n")}\n  ]\n}\n`);
  }
  return texts;
}

if (import.meta.main) {
  mkdirSync(TARGET, { recursive: true });
  for (const old of readdirSync(TARGET)) if (old.endsWith(".json")) rmSync(join(TARGET, old));
  const made = files(readList());
  for (const [provider, text] of made) writeFileSync(join(TARGET, `${provider}.json`), text);
  console.log(`${made.size} files in plugins/providers/facts`);
}
