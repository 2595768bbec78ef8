// Model metadata that an operator sets: converts prices in a form that people type to the
// contract's price lines.
import { BUILT_IN_OPERATIONS } from "../../model/operations/built-in-operations.ts";
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
  "x-expects": 'an amount in US dollars, such as "0.25"',
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
  then: { const: "free", "x-expects": "free, or US dollars by unit" },
  else: {
    "x-expects": "free, or US dollars by unit",
    ...closedObject({
      ...RATE_SCHEMAS,
      variants: {
        type: "array",
        description: "Rates for one quality or size",
        items: closedObject(
          {
            unit: { enum: UNITS, description: "Unit that is counted" },
            usd: usdSchema("US dollars per unit"),
            quality: nonEmptyText("Image quality that the rate applies to"),
            size: nonEmptyText("Image size that the rate applies to"),
            first: {
              type: "boolean",
              description: "Whether the rate applies only to the first unit of each image",
            },
          },
          { required: ["unit", "usd"] },
        ),
      },
      over: {
        type: "array",
        description: "Rates for a whole request with more input tokens than `above`",
        items: closedObject(
          {
            above: positiveInteger("Input tokens"),
            ...RATE_SCHEMAS,
            tiers: {
              type: "object",
              additionalProperties: closedObject(RATE_SCHEMAS),
              description:
                "Rates by service tier. Default: the tier's rates, increased in the same proportion " +
                "as the other rates",
            },
          },
          { required: ["above"] },
        ),
      },
      tiers: {
        type: "object",
        additionalProperties: closedObject(RATE_SCHEMAS),
        description: "Rates by service tier, under the name that the provider bills",
      },
      from: date("First day on which the price is valid, in UTC"),
      until: date("Last day on which the price is valid, in UTC"),
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
    ...closedObject({ days: positiveInteger("Maximum retention in days") }, { required: ["days"] }),
  },
};

export const FACTS_SCHEMA: Schema = closedObject({
  operation: {
    type: "string",
    pattern: "^[a-z][a-z0-9_-]{0,31}$",
    examples: [...BUILT_IN_OPERATIONS.keys()],
    description: `Operation of the model: ${[...BUILT_IN_OPERATIONS.keys()].join(", ")}, or one that a package adds`,
  },
  name: nonEmptyText("Display name of the model"),
  description: {
    type: "string",
    minLength: 1,
    maxLength: 200,
    description:
      "Description of the model in model lists, such as the picker of Claude Code. Default: the " +
      "provider's text, or the context window and the price",
  },
  protocols: names("Protocols of the provider that serve the model"),
  can: {
    type: "object",
    additionalProperties: { type: "boolean" },
    description:
      "Capabilities that the model has or lacks: stream, tools, vision, reasoning, and others",
    propertyNames: {
      pattern:
        "^(stream|tools|parallel_tools|vision|documents|audio|json|json_schema|reasoning|system|logprobs|n|(state|hosted|cache)\\..+)$",
      "x-expects":
        "stream, tools, parallel_tools, vision, documents, audio, json, json_schema, " +
        "reasoning, system, logprobs, n, state.…, hosted.…, or cache.…",
    },
  },
  rejected_fields: names("Top-level fields that the model rejects with an error"),
  price: {
    ...PRICE_SCHEMA,
    description: "Price: free, or US dollars by unit. Default: the catalog's price",
  },
  priced_as: nonEmptyText("Model whose price applies to this model"),
  data_policy: closedObject(
    {
      retention: { ...RETENTION_SCHEMA, description: "How long the provider retains user data" },
      trains: {
        enum: ["no", "yes", "opt_out", "unknown"],
        description: "Whether the provider trains on user data",
      },
      region: names("Regions where data is processed"),
      evidence: names(
        "Documents that state the policy. If unset, retention is never treated as zero",
      ),
      verified_at: date("Date on which the documents were last reviewed"),
      expires: date("Date until which the policy is considered valid"),
    },
    { description: "Data policy of the provider" },
  ),
  limits: closedObject(
    {
      context: positiveInteger("Maximum number of input and output tokens"),
      input: positiveInteger("Maximum number of input tokens"),
      output: positiveInteger("Maximum number of output tokens"),
      images: positiveInteger("Maximum number of images per request"),
    },
    { description: "Limits of the model" },
  ),
  image: closedObject(
    {
      sizes: names('Values that clients can request: "1024x1024", "auto"'),
      sides: closedObject(
        {
          min: positiveInteger("Minimum side length, in pixels"),
          max: positiveInteger("Maximum side length, in pixels"),
          step: positiveInteger("Number that both sides must be a multiple of, in pixels"),
        },
        {
          required: ["min", "max"],
          description: "Limits of the side lengths for free sizes, in pixels",
        },
      ),
      qualities: names("Quality tiers"),
      formats: names("File formats"),
    },
    {
      description:
        "Parameters that an image model accepts. Values that are not listed are unknown " +
        "and are forwarded",
    },
  ),
  released: date("Release date"),
  retires: date("Date on which the provider retires the model"),
});

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
          over: over.map(({ above, tiers: ofBracket, ...each }) => ({
            input: above as number,
            lines: toPriceLines(each),
            ...(ofBracket ? { tiers: toTiers(ofBracket as Record<string, Mapping>) } : {}),
          })),
        }
      : {}),
    ...(tiers ? { tiers: toTiers(tiers) } : {}),
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
  };
}

const toTiers = (tiers: Record<string, Mapping>): Record<string, PriceLine[]> =>
  Object.fromEntries(Object.entries(tiers).map(([name, rates]) => [name, toPriceLines(rates)]));

const toPriceLines = (rates: Mapping): PriceLine[] =>
  Object.entries(rates).map(([unit, amount]) => toPriceLine(unit as Unit, amount));

const toPriceLine = (unit: Unit, amount: unknown): PriceLine => ({
  unit,
  usd: typeof amount === "number" ? formatDecimal(amount) : (amount as string),
  per: PIECE_UNITS.includes(unit) ? 1 : 1_000_000,
});

/**
 * Returns the shortest decimal that equals the number, which is the text in the file. The result
 * never contains an exponent.
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
