import type { FromSchema, JSONSchema } from "json-schema-to-ts";

/** A plugin's options: draft-07, closed, written as a literal. An open schema does not compile. */
export type ObjectSchema = JSONSchema & {
  /** Options are an object. */
  readonly type: "object";
  /** Unknown options are rejected. */
  readonly additionalProperties: false;
};

/** The TypeScript type of what a schema accepts, defaults filled in. Of any schema: anything, so that `Definition` takes every definition. */
export type Infer<S> = 0 extends 1 & S ? any : S extends JSONSchema ? FromSchema<S> : never;

/** The schema of a plugin that takes no options. */
export type NoOptions = {
  /** Options are an object. */
  readonly type: "object";
  /** Every option is rejected. */
  readonly additionalProperties: false;
  /** No option is defined. */
  readonly properties: {};
};

/** The usual credential: one key. */
export const apiKeySchema = {
  type: "object",
  additionalProperties: false,
  required: ["api_key"],
  properties: {
    api_key: { type: "string", minLength: 1, "x-secret": true, description: "API key" },
  },
} as const;
