import type { FromSchema, JSONSchema } from "json-schema-to-ts";

/**
 * JSON schema (draft-07) of a plugin's options, written as a literal. A schema that allows unknown
 * options does not compile.
 */
export type ObjectSchema = JSONSchema & {
  /** Options are an object. */
  readonly type: "object";
  /** Unknown options are rejected. */
  readonly additionalProperties: false;
};

/**
 * TypeScript type of the values that a schema accepts, with defaults filled in. For the type `any`,
 * the result is `any`, so that `Definition` accepts every definition.
 */
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

/** Schema of the usual credential: one API key. */
export const apiKeySchema = {
  type: "object",
  additionalProperties: false,
  required: ["api_key"],
  properties: {
    api_key: { type: "string", minLength: 1, "x-secret": true, description: "API key" },
  },
} as const;
