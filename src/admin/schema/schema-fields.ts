// Schema fields that the inputs and outputs of commands share.
import type { JSONSchema } from "json-schema-to-ts";
import { LIMIT_SCHEMA } from "../../plugin/store/limit.ts";

export const text = (description: string) =>
  ({ type: "string", minLength: 1, maxLength: 512, description }) as const;
/**
 * Pattern of a name or another displayed text: no control characters (C0, C1), line or paragraph
 * separators, or bidirectional controls. On a terminal they could hide text or display text that
 * does not exist.
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
export const textList = (description: string) =>
  ({ type: "array", minItems: 1, items: text("one of them"), description }) as const;
export const privacy = {
  enum: ["off", "required", "strict"],
  description: "Privacy level: off, required, or strict",
} as const;

export const NO_INPUT = { type: "object", additionalProperties: false, properties: {} } as const;
/** Schema of an answer. A caller can rely on these members, and the answer may have more. */
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
  key: text("ID or name of the key"),
  account: text("Account whose rows are included, with accounts that were nested under it"),
  attempt: text("ID of the call"),
  upstreamId: text("Upstream ID of the call"),
  from: nonNegativeInteger("Start time, inclusive, in Unix milliseconds"),
  to: nonNegativeInteger("End time, exclusive, in Unix milliseconds"),
  state: {
    enum: ["open", "exact", "estimated", "unpriced", "void"],
    description: "Billing state",
  },
  provider: text("Provider of the calls"),
  model: text("Model, as in openai/gpt-5, or as the provider names it"),
  label: text("Label, as in team=web"),
  credential: text("Credential that paid for the calls"),
  frontend: text("Frontend that received the requests"),
  outcome: text("Outcome, as in ok or timeout"),
} as const;

/** Schema of a member in an update, in which null removes the value. */
export const nullable = <const S extends { readonly type: string }>(schema: S) =>
  ({ ...schema, type: [schema.type, "null"] }) as Omit<S, "type"> & {
    readonly type: readonly [S["type"], "null"];
  };
export const VERSION_SCHEMA = nonNegativeInteger(
  "Expected version. The command is rejected with version_conflict if the current " +
    "version differs",
);

export const LABELS_SCHEMA = {
  type: "object",
  propertyNames: printable,
  additionalProperties: { type: "string", ...printable },
  description: "Labels that are stored with every ledger row",
} as const;

export const LIMITS_SCHEMA = {
  type: "array",
  items: LIMIT_SCHEMA,
  description: "Limits",
} as const;
