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
  description: "How private: off, required or strict",
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
  properties: { model: text("The model, as a client writes it") },
} as const;
export const KEY_INPUT = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: { id: text("The key: its id, as `tollgate keys list` shows it, or its name") },
} as const;
export const LEDGER_FILTER = {
  key: text("Of one key: its id or its name"),
  account: text("Of one account and of all that stood below it"),
  attempt: text("Of one call"),
  upstreamId: text("Of the call that upstream knows by this id"),
  from: nonNegativeInteger("From this moment on, in Unix milliseconds"),
  to: nonNegativeInteger("Up to this moment, in Unix milliseconds"),
  state: {
    enum: ["open", "exact", "estimated", "unpriced", "void"],
    description: "In this state",
  },
  provider: text("Of one provider"),
  model: text("Of one model, as in openai/gpt-5, or as its provider calls it"),
  label: text("With one label, as in team=web"),
  credential: text("Paid by one credential"),
  frontend: text("That were asked at one frontend"),
  outcome: text("That ended so, as in ok or timeout"),
} as const;

/** Schema of a member in an update, in which null removes the value. */
export const nullable = <const S extends { readonly type: string }>(schema: S) =>
  ({ ...schema, type: [schema.type, "null"] }) as Omit<S, "type"> & {
    readonly type: readonly [S["type"], "null"];
  };
export const VERSION_SCHEMA = nonNegativeInteger(
  "Only while it is at this version, as its answers say it; else it is refused as version_conflict",
);

export const LABELS_SCHEMA = {
  type: "object",
  propertyNames: printable,
  additionalProperties: { type: "string", ...printable },
  description: "Kept with every ledger row of it",
} as const;

export const LIMITS_SCHEMA = {
  type: "array",
  items: LIMIT_SCHEMA,
  description: "What it may use up",
} as const;
