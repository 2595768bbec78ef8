// Schema fields that the inputs and outputs of commands share.
import type { JSONSchema } from "json-schema-to-ts";
import { LIMIT_SCHEMA } from "../../plugin/store/limit.ts";
import type { CliField } from "./command-spec.ts";

/** Adds how the command line writes the member. */
export const withCli = <const S extends object, const C extends CliField>(schema: S, field: C) => ({
  ...schema,
  "x-cli": field,
});

export const text = (description: string) =>
  ({ type: "string", minLength: 1, maxLength: 512, description }) as const;
/**
 * Pattern of a name or another displayed text: no control characters (C0, C1), line or paragraph
 * separators, or bidirectional controls. On a terminal, such characters could hide text or display
 * other text.
 */
const PRINTABLE =
  "^[^\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$";
const printable = {
  pattern: PRINTABLE,
  "x-expects": "printable text, without control characters or marks of writing direction",
} as const;
export const printed = (description: string) =>
  ({ ...text(description), maxLength: 200, ...printable }) as const;
export const path = (description: string) =>
  ({ type: "string", minLength: 1, maxLength: 4_096, description }) as const;
export const nonNegativeInteger = (description: string) =>
  ({ type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description }) as const;
export const integerUpTo = (most: number, description: string) =>
  ({ type: "integer", minimum: 0, maximum: most, description }) as const;
export const booleanField = (description: string) => ({ type: "boolean", description }) as const;
/** A name, such as the name of a provider or an account. */
export const nameOf = (description: string) => withCli(text(description), { value: "name" });
/** A list of names or patterns. */
export const textList = (description: string, value: string) =>
  withCli({ type: "array", minItems: 1, items: text("one of them"), description } as const, {
    value,
    form: "names",
  });
/** A point in time that bounds a range. */
export const timeOf = <const F extends string>(description: string, flag: F) =>
  withCli(nonNegativeInteger(`${description}, in Unix milliseconds`), {
    flag,
    value: "when",
    form: "time",
    description: `${description}: 24h, 2026-11-01 (UTC)`,
  });
export const EXPIRES_FIELD = withCli(nonNegativeInteger("Expiry time in Unix milliseconds"), {
  value: "when",
  form: "expiry",
  description: "Expiry, as a duration (30d) or a date (2027-01-31)",
});
export const privacy = {
  enum: ["off", "required", "strict"],
  description: "Privacy level: off, required, or strict",
} as const;
export const NULLABLE_PRIVACY = { ...privacy, enum: [...privacy.enum, null] } as const;

export const NO_INPUT = { type: "object", additionalProperties: false, properties: {} } as const;
/**
 * Schema of a result. A caller can rely on these members. The result may have additional members.
 */
export const outputSchema = <const N extends readonly string[]>(...required: N) =>
  ({
    type: "object",
    required,
    properties: Object.fromEntries(required.map((name) => [name, {}])),
  }) as const satisfies JSONSchema;

export const MODEL_INPUT = {
  type: "object",
  additionalProperties: false,
  required: ["model"],
  properties: { model: text("Model name, as a client sends it") },
} as const;
export const KEY_INPUT = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: { id: text("ID or name of the key, from `tollgate keys list`") },
} as const;
export const LEDGER_FILTER = {
  key: withCli(text("ID or name of the key"), { value: "key" }),
  account: nameOf("Account whose rows are included, with accounts that were nested under it"),
  attempt: withCli(text("ID of the call"), { hidden: true }),
  upstreamId: withCli(text("Upstream ID of the call"), { hidden: true }),
  from: timeOf("Start time, inclusive", "since"),
  to: timeOf("End time, exclusive", "until"),
  state: withCli(
    {
      enum: ["open", "exact", "estimated", "unpriced", "void", "external"],
      description: "Billing state",
    },
    { hidden: true },
  ),
  provider: nameOf("Provider of the calls"),
  model: withCli(text("Model, such as openai/gpt-5, or the provider's own name"), {
    value: "model",
  }),
  label: withCli(text("Label, such as team=web"), { value: "name=value" }),
  credential: nameOf("Credential that paid for the calls"),
  frontend: nameOf("Frontend that received the requests"),
  outcome: withCli(text("Outcome, such as ok or timeout"), { value: "outcome" }),
} as const;

/** Schema of a member in an update, in which null removes the value. */
export const nullable = <const S extends { readonly type: string }>(schema: S) =>
  ({ ...schema, type: [schema.type, "null"] }) as Omit<S, "type"> & {
    readonly type: readonly [S["type"], "null"];
  };
export const VERSION_SCHEMA = withCli(
  nonNegativeInteger(
    "Expected version. The command is rejected with version_conflict if the current " +
      "version differs",
  ),
  { description: "Expected version. The command fails if the current version differs" },
);

export const LABELS_SCHEMA = withCli(
  {
    type: "object",
    propertyNames: printable,
    additionalProperties: { type: "string", ...printable },
    description: "Labels that are stored with every ledger row",
  } as const,
  {
    flag: "label",
    value: "name=value",
    form: "labels",
    description: "Label that is stored with every ledger row",
  },
);

export const LIMITS_SCHEMA = withCli(
  { type: "array", items: LIMIT_SCHEMA, description: "Limits" } as const,
  {
    flag: "limit",
    value: "limit",
    form: "limits",
    description: "Limit: requests=60/minute, tokens=1000000/day, usd=5/month, or concurrent=4",
  },
);
