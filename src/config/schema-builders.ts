// Builds the gateway's own schemas: closed maps, lists, durations, names, and dates.
import { DURATION_PATTERN, SIZE_PATTERN } from "../lib/time/units.ts";
import type { Schema } from "./schema-dialect.ts";

export const text = <const M extends Schema>(description: string, more: M = {} as M) => ({
  type: "string" as const,
  description,
  ...more,
});
export const flag = (description: string, value: boolean) => ({
  type: "boolean" as const,
  description,
  default: value,
});
export const list = <const I extends Schema, const M extends Schema>(
  items: I,
  description: string,
  more: M = {} as M,
) => ({
  type: "array" as const,
  items,
  description,
  ...more,
});
export const closedObject = <const P extends Schema, const M extends Schema>(
  properties: P,
  more: M = {} as M,
) => ({
  type: "object" as const,
  additionalProperties: false as const,
  properties,
  ...more,
});
/** Builds a map that is filled in with its defaults if it is missing. */
export const section = <const P extends Schema>(description: string, properties: P) =>
  closedObject(properties, { description, default: {} });

/** Builds a file path. It is resolved relative to the file that contains the value. */
export const path = <const M extends Schema>(description: string, more: M = {} as M) =>
  text(description, { minLength: 1, "x-path": true, ...more });

const durationText = (description: string) =>
  text(description, {
    "x-unit": "duration",
    pattern: DURATION_PATTERN,
    "x-expects": "a duration with its unit, such as 300s, 5m, or 250ms",
  });
/** Builds a duration that is optional or inherited. */
export const optionalDuration = (description: string, value?: string) => ({
  ...durationText(description),
  ...(value !== undefined && { default: value }),
});
/** Builds a duration with a default. */
export const duration = (description: string, value: string) => ({
  ...durationText(description),
  default: value,
});

/** Builds a value that is either a duration or the long form. */
export const durationOr = (short: Schema, long: Schema): Schema => ({
  if: { type: "object" },
  then: long,
  else: short,
});

export const size = (description: string, value: string) => ({
  type: ["string", "integer"],
  "x-unit": "size" as const,
  pattern: SIZE_PATTERN,
  minimum: 1,
  default: value,
  "x-expects": "a size such as 32MiB, or a number of bytes",
  description,
});

const callTimeProperties = (defaults: { [name: string]: string | undefined }) => ({
  first_byte: optionalDuration(
    "Timeout until the provider's response begins. Comments in an event stream do not count",
    defaults["first_byte"],
  ),
  idle: optionalDuration("Timeout between two chunks of a provider's response", defaults["idle"]),
  total: optionalDuration("Timeout for one whole call", defaults["total"]),
});

export const timeouts = (defaults: { [name: string]: string | undefined }, classes?: object) => ({
  connect: optionalDuration("Timeout for connecting to a provider", defaults["connect"]),
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

export const names = <const M extends Schema>(description: string, more: M = {} as M) =>
  list({ type: "string", minLength: 1 }, description, more);

/** Builds an integer of at least 1. */
export const positiveInteger = (description: string) => ({
  type: "integer" as const,
  minimum: 1,
  description,
});

/** Builds a number of attempts. The maximum of 10 prevents a retry storm. */
export const attemptCount = (description: string, value: number) => ({
  type: "integer" as const,
  minimum: 1,
  maximum: 10,
  default: value,
  "x-expects": "a number from 1 to 10",
  description,
});

/** Builds text that must not be empty. */
export const nonEmptyText = (description: string) => text(description, { minLength: 1 });
