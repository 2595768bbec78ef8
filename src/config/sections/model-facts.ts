// Model metadata that an operator sets: converts prices in a form that people type to the
// contract's price lines.
import type { DataPolicy, ModelInfo, Price, PriceLine, Retention } from "../../model/facts.ts";
import { PIECE_UNITS, UNITS, type Unit } from "../../model/usage.ts";
import type { Schema } from "../schema-dialect.ts";
import { closedObject, date, nonEmptyText, names, positiveInteger } from "../schema-builders.ts";
import type { Mapping } from "../source/config-tree.ts";
import type { FactsOverride } from "../gateway-config.ts";

const usdSchema = (description: string): Schema => ({
  type: ["string", "number"],
  pattern: String.raw`^\d+(\.\d{1,12})?$`,
  minimum: 0,
  "x-expects": 'an amount in dollars, such as "0.25"',
  description,
});
const RATE_SCHEMAS = Object.fromEntries(
  UNITS.map((unit) => [
    unit,
    usdSchema(PIECE_UNITS.includes(unit) ? "Dollars each" : "Dollars per million"),
  ]),
);

const PRICE_SCHEMA: Schema = {
  if: { type: "string" },
  then: { const: "free", "x-expects": "free, or dollars by unit" },
  else: {
    "x-expects": "free, or dollars by unit",
    ...closedObject({
      ...RATE_SCHEMAS,
      variants: {
        type: "array",
        description: "Rates for one quality or size",
        items: closedObject(
          {
            unit: { enum: UNITS, description: "What is counted" },
            usd: usdSchema("Dollars"),
            quality: nonEmptyText("Only for this quality"),
            size: nonEmptyText("Only for this size"),
            first: { type: "boolean", description: "Only for the first one of each image" },
          },
          { required: ["unit", "usd"] },
        ),
      },
      over: {
        type: "array",
        description: "Rates of a whole request with more input tokens than `above`",
        items: closedObject(
          { above: positiveInteger("Input tokens"), ...RATE_SCHEMAS },
          { required: ["above"] },
        ),
      },
      tiers: {
        type: "object",
        additionalProperties: closedObject(RATE_SCHEMAS),
        description: "Rates of a service tier, by the name upstream bills",
      },
      from: date("First day, UTC"),
      until: date("Last day, UTC"),
    }),
  },
};

const RETENTION_SCHEMA: Schema = {
  if: { type: "string" },
  then: {
    enum: ["zero", "memory", "until_deleted", "unknown"],
    "x-expects": "zero, memory, until_deleted, unknown or { days }",
  },
  else: {
    "x-expects": "zero, memory, until_deleted, unknown or { days }",
    ...closedObject({ days: positiveInteger("At most so many") }, { required: ["days"] }),
  },
};

export const FACTS_SCHEMA: Schema = closedObject({
  operation: {
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
      "Operation of the model: chat, image, embedding, rerank, moderation, completion, speech, transcript, or one that a package adds",
  },
  name: nonEmptyText("For people"),
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
  rejected_fields: names("Top-level fields that the model rejects with an error"),
  price: { ...PRICE_SCHEMA, description: "free, or dollars by unit; without it the catalog's" },
  priced_as: nonEmptyText("The model whose price holds for it"),
  data_policy: closedObject(
    {
      retention: { ...RETENTION_SCHEMA, description: "How long it keeps what people wrote" },
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
  limits: closedObject(
    {
      context: positiveInteger("Tokens, read and written"),
      input: positiveInteger("Tokens it reads"),
      output: positiveInteger("Tokens it writes"),
      images: positiveInteger("Images in one request"),
    },
    { description: "The most that it takes" },
  ),
  image: closedObject(
    {
      sizes: names('As clients write them: "1024x1024", "auto"'),
      sides: closedObject(
        {
          min: positiveInteger("Least"),
          max: positiveInteger("Most"),
          step: positiveInteger("Both sides are multiples of it"),
        },
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

/** Converts validated metadata. */
export function toFactsOverride(raw: Mapping): FactsOverride {
  const {
    priced_as: pricedAs,
    rejected_fields: rejectedFields,
    price,
    data_policy: dataPolicy,
    ...same
  } = raw;
  return {
    ...(same as Partial<Omit<ModelInfo, "price">>),
    ...(pricedAs === undefined ? {} : { pricedAs: pricedAs as string }),
    ...(rejectedFields === undefined ? {} : { rejectedFields: rejectedFields as string[] }),
    ...(price === undefined ? {} : { price: price === "free" ? price : toPrice(price as Mapping) }),
    ...(dataPolicy === undefined ? {} : { dataPolicy: toDataPolicy(dataPolicy as Mapping) }),
  };
}

function toPrice(raw: Mapping): Price {
  const {
    variants = [],
    over,
    tiers,
    from,
    until,
    ...rates
  } = raw as {
    variants?: Mapping[];
    over?: Mapping[];
    tiers?: Record<string, Mapping>;
    from?: string;
    until?: string;
  };
  const particular = variants.map(({ unit, usd: amount, ...variant }): PriceLine => ({
    ...toPriceLine(unit as Unit, amount),
    ...(Object.keys(variant).length > 0 ? { variant } : {}),
  }));
  return {
    lines: [...toPriceLines(rates), ...particular],
    ...(over
      ? {
          over: over.map(({ above, ...each }) => ({
            input: above as number,
            lines: toPriceLines(each),
          })),
        }
      : {}),
    ...(tiers
      ? { tiers: Object.fromEntries(Object.entries(tiers).map(([k, v]) => [k, toPriceLines(v)])) }
      : {}),
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
  };
}

const toPriceLines = (rates: Mapping): PriceLine[] =>
  Object.entries(rates).map(([unit, amount]) => toPriceLine(unit as Unit, amount));

const toPriceLine = (unit: Unit, amount: unknown): PriceLine => ({
  unit,
  usd: typeof amount === "number" ? formatDecimal(amount) : (amount as string),
  per: PIECE_UNITS.includes(unit) ? 1 : 1_000_000,
});

/**
 * Returns the shortest decimal that equals the number, which is what was typed. Never uses an
 * exponent.
 */
function formatDecimal(amount: number): string {
  const text = String(amount);
  return text.includes("e") ? amount.toFixed(12).replace(/\.?0+$/, "") : text;
}

function toDataPolicy(raw: Mapping): Partial<DataPolicy> {
  const { retention, verified_at: verifiedAt, ...same } = raw;
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
