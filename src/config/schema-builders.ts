// Builds the gateway's own schemas: closed maps, lists, durations, names, dates.
import { DURATION_PATTERN, SIZE_PATTERN } from "../lib/time/units.ts";
import type { Schema } from "./schema-dialect.ts";

export const text = (description: string, more: Schema = {}) => ({
  type: "string",
  description,
  ...more,
});
export const flag = (description: string, value: boolean) => ({
  type: "boolean",
  description,
  default: value,
});
export const list = (items: Schema, description: string, more: Schema = {}) => ({
  type: "array",
  items,
  description,
  ...more,
});
export const closedObject = (properties: Schema, more: Schema = {}) => ({
  type: "object",
  additionalProperties: false,
  properties,
  ...more,
});
/** Builds a map that is filled in with its defaults if it is missing. */
export const section = (description: string, properties: Schema) =>
  closedObject(properties, { description, default: {} });

export const duration = (description: string, value?: string) =>
  text(description, {
    pattern: DURATION_PATTERN,
    "x-expects": "a duration with its unit, such as 300s, 5m, or 250ms",
    ...(value === undefined ? {} : { default: value }),
  });

/** Builds a value that is either a duration or the long form. */
export const durationOr = (short: ReturnType<typeof duration>, long: Schema): Schema => ({
  if: { type: "object" },
  then: long,
  else: short,
});

export const size = (description: string, value: string) => ({
  type: ["string", "integer"],
  pattern: SIZE_PATTERN,
  minimum: 1,
  default: value,
  "x-expects": "a size such as 32MiB, or a number of bytes",
  description,
});

const callTimeProperties = (defaults: { [name: string]: string | undefined }) => ({
  first_byte: duration(
    "Timeout until the provider's response begins. Comments in an event stream do not count",
    defaults["first_byte"],
  ),
  idle: duration("Timeout between two chunks of a provider's response", defaults["idle"]),
  total: duration("Timeout for one whole call", defaults["total"]),
});

export const timeouts = (defaults: { [name: string]: string | undefined }, classes?: object) => ({
  connect: duration("Timeout for connecting to a provider", defaults["connect"]),
  ...callTimeProperties(defaults),
  classes: {
    type: "object",
    propertyNames: name("a call class: quick, reasoning, or an operation such as image"),
    additionalProperties: closedObject(callTimeProperties({})),
    description:
      "Timeouts by call class. quick: a streamed chat with a model that is known not " +
      "to reason. reasoning: any other chat. Other classes have the name of the operation, " +
      "such as image",
    ...(classes && { default: classes }),
  },
});

export const name = (what: string) => ({
  type: "string",
  pattern: "^[a-z0-9][a-z0-9._-]*$",
  "x-expects": `${what}: lowercase letters, digits, dashes, dots, and underscores`,
});

export const date = (description: string) =>
  text(description, { format: "date", "x-expects": "a date such as 2027-03-01" });

export const names = (description: string, more: Schema = {}) =>
  list({ type: "string", minLength: 1 }, description, more);

/** Builds an integer of at least 1. */
export const positiveInteger = (description: string) => ({
  type: "integer",
  minimum: 1,
  description,
});

/** Builds a number of attempts. The maximum of 10 prevents a retry storm. */
export const attemptCount = (description: string, value: number) => ({
  type: "integer",
  minimum: 1,
  maximum: 10,
  default: value,
  "x-expects": "a number from 1 to 10",
  description,
});

/** Builds text that must not be empty. */
export const nonEmptyText = (description: string) => text(description, { minLength: 1 });
