// What an operator may say about a provider's models: prices a person can type, as the contract's lines.
import type { DataPolicy, ModelInfo, Price, PriceLine, Retention } from "../model/facts.ts";
import { PIECE_UNITS, UNITS, type Unit } from "../model/usage.ts";
import type { Schema } from "./dialect.ts";
import { closed, date, named, names, whole } from "./shapes.ts";
import type { Mapping } from "./tree.ts";
import type { FactsOverride } from "./types.ts";

const usd = (description: string): Schema => ({
  type: ["string", "number"],
  pattern: String.raw`^\d+(\.\d{1,12})?$`,
  minimum: 0,
  "x-expects": 'an amount in dollars, such as "0.25"',
  description,
});
const RATES = Object.fromEntries(
  UNITS.map((unit) => [
    unit,
    usd(PIECE_UNITS.includes(unit) ? "Dollars each" : "Dollars per million"),
  ]),
);

const PRICE: Schema = {
  if: { type: "string" },
  then: { const: "free", "x-expects": "free, or dollars by unit" },
  else: {
    "x-expects": "free, or dollars by unit",
    ...closed({
      ...RATES,
      variants: {
        type: "array",
        description: "Rates for one quality or size",
        items: closed(
          {
            unit: { enum: UNITS, description: "What is counted" },
            usd: usd("Dollars"),
            quality: named("Only for this quality"),
            size: named("Only for this size"),
            first: { type: "boolean", description: "Only for the first one of each image" },
          },
          { required: ["unit", "usd"] },
        ),
      },
      over: {
        type: "array",
        description: "Rates of a whole request with more input tokens than `above`",
        items: closed({ above: whole("Input tokens"), ...RATES }, { required: ["above"] }),
      },
      tiers: {
        type: "object",
        additionalProperties: closed(RATES),
        description: "Rates of a service tier, by the name upstream bills",
      },
      from: date("First day, UTC"),
      until: date("Last day, UTC"),
    }),
  },
};

const RETENTION: Schema = {
  if: { type: "string" },
  then: {
    enum: ["zero", "memory", "until_deleted", "unknown"],
    "x-expects": "zero, memory, until_deleted, unknown or { days }",
  },
  else: {
    "x-expects": "zero, memory, until_deleted, unknown or { days }",
    ...closed({ days: whole("At most so many") }, { required: ["days"] }),
  },
};

export const FACTS: Schema = closed({
  kind: {
    type: "string",
    pattern: "^[a-z][a-z0-9_-]{0,31}$",
    examples: [
      "chat",
      "image",
      "embedding",
      "rerank",
      "moderation",
      "completion",
      "speech",
      "transcript",
    ],
    description:
      "What it makes: chat, image, embedding, rerank, moderation, completion, speech, transcript, or a kind that a package adds",
  },
  name: named("For people"),
  protocols: names("Which of the provider's protocols serve it"),
  can: {
    type: "object",
    additionalProperties: { type: "boolean" },
    description: "What it can and cannot: stream, tools, vision, reasoning…",
    propertyNames: {
      pattern:
        "^(stream|tools|parallel_tools|vision|documents|audio|json|json_schema|reasoning|system|logprobs|n|(state|hosted|cache)\\..+)$",
      "x-expects":
        "stream, tools, parallel_tools, vision, documents, audio, json, json_schema, reasoning, system, logprobs, n, or state.…, hosted.…, cache.…",
    },
  },
  refuses: names("Top-level fields that it answers with an error"),
  price: { ...PRICE, description: "free, or dollars by unit; without it the catalogue's" },
  priced_as: named("The model whose price holds for it"),
  data: closed(
    {
      retention: { ...RETENTION, description: "How long it keeps what people wrote" },
      trains: {
        enum: ["no", "yes", "opt_out", "unknown"],
        description: "Whether it learns from it",
      },
      region: names("Where it is processed"),
      evidence: names("Where that is written; without it nothing counts as zero"),
      verified_at: date("When it was last read there"),
      expires: date("Until when it may be believed"),
    },
    { description: "What becomes of what people wrote" },
  ),
  limits: closed(
    {
      context: whole("Tokens, read and written"),
      input: whole("Tokens it reads"),
      output: whole("Tokens it writes"),
      images: whole("Images in one request"),
    },
    { description: "The most that it takes" },
  ),
  image: closed(
    {
      sizes: names('As clients write them: "1024x1024", "auto"'),
      sides: closed(
        { min: whole("Least"), max: whole("Most"), step: whole("Both sides are multiples of it") },
        { required: ["min", "max"], description: "Bounds of a free size, in pixels of one side" },
      ),
      qualities: names("Quality tiers"),
      formats: names("File formats"),
    },
    { description: "What an image model takes; what is not listed here is unknown and forwarded" },
  ),
  released: date("Since when it exists"),
  retires: date("Until when"),
});

/** What the schema has let through. */
export function factsOf(said: Mapping): FactsOverride {
  const { priced_as: pricedAs, price, data, ...same } = said;
  return {
    ...(same as Partial<Omit<ModelInfo, "price">>),
    ...(pricedAs === undefined ? {} : { pricedAs: pricedAs as string }),
    ...(price === undefined ? {} : { price: price === "free" ? price : priceOf(price as Mapping) }),
    ...(data === undefined ? {} : { data: dataOf(data as Mapping) }),
  };
}

function priceOf(said: Mapping): Price {
  const {
    variants = [],
    over,
    tiers,
    from,
    until,
    ...rates
  } = said as {
    variants?: Mapping[];
    over?: Mapping[];
    tiers?: Record<string, Mapping>;
    from?: string;
    until?: string;
  };
  const particular = variants.map(({ unit, usd: amount, ...variant }): PriceLine => ({
    ...line(unit as Unit, amount),
    ...(Object.keys(variant).length > 0 ? { variant } : {}),
  }));
  return {
    lines: [...lines(rates), ...particular],
    ...(over
      ? { over: over.map(({ above, ...each }) => ({ input: above as number, lines: lines(each) })) }
      : {}),
    ...(tiers
      ? { tiers: Object.fromEntries(Object.entries(tiers).map(([k, v]) => [k, lines(v)])) }
      : {}),
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
  };
}

const lines = (rates: Mapping): PriceLine[] =>
  Object.entries(rates).map(([unit, amount]) => line(unit as Unit, amount));

const line = (unit: Unit, amount: unknown): PriceLine => ({
  unit,
  usd: typeof amount === "number" ? plainDecimal(amount) : (amount as string),
  per: PIECE_UNITS.includes(unit) ? 1 : 1_000_000,
});

/** The shortest decimal that is this number: what was typed. Never with an exponent. */
function plainDecimal(amount: number): string {
  const text = String(amount);
  return text.includes("e") ? amount.toFixed(12).replace(/\.?0+$/, "") : text;
}

function dataOf(said: Mapping): Partial<DataPolicy> {
  const { retention, verified_at: verifiedAt, ...same } = said;
  return {
    ...(same as Partial<DataPolicy>),
    ...(retention === undefined
      ? {}
      : {
          retention: (typeof retention === "string"
            ? { kind: retention }
            : { kind: "days", ...(retention as object) }) as Retention,
        }),
    ...(verifiedAt === undefined ? {} : { verifiedAt: verifiedAt as string }),
  };
}
