// The JSON Schema dialect of the gateway and of plugins: strict draft-07 with `x-secret`,
// `x-origin`, `x-account`, and `x-path`. Compiled validators report every error, and the positions
// of secrets, origins, accounts, and paths in a value.
import { isIP } from "node:net";
import type { ErrorObject, KeywordCxt } from "ajv";
import { createCompiler, type SchemaRules } from "./schema-compiler.ts";

export type { ErrorObject } from "ajv";
export type Schema = Readonly<Record<string, unknown>>;

export const FORMAT_CHECKS = {
  uri: (text: string) => URL.canParse(text),
  date: (text: string) => isDate(text),
  "date-time": (text: string) =>
    isDate(text.slice(0, 10)) &&
    /^[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(text.slice(10)),
  email: (text: string) => /^[^\s@]+@[^\s@]+$/.test(text),
  hostname: (text: string) =>
    /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.|$))+$/i.test(text),
  ipv4: (text: string) => isIP(text) === 4,
  ipv6: (text: string) => isIP(text) === 6,
  regex: (text: string) => {
    try {
      return new RegExp(text, "u") instanceof RegExp;
    } catch {
      return false;
    }
  },
} as const;

function isDate(text: string): boolean {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/**
 * Keywords for schema authors, and the names under which a validator collects the marked places.
 */
const MARK_KEYWORDS = {
  "x-secret": "secrets",
  "x-origin": "origins",
  "x-account": "accounts",
  "x-path": "paths",
} as const;
type SchemaMark = (typeof MARK_KEYWORDS)[keyof typeof MARK_KEYWORDS];
/** Pointers that a validator collects, relative to the value. */
type CollectedMarks = { readonly [mark in SchemaMark]: Set<string> };

export const DIALECT_RULES: SchemaRules = {
  options: {
    strict: true,
    // Permits `enum` without `type`, and `required` before `properties`.
    strictTypes: false,
    strictTuples: false,
    allErrors: true,
    verbose: true,
    useDefaults: true,
    // The code of each schema runs once per start, so optimizing it would take longer than running
    // it.
    code: { optimize: false },
    passContext: true,
    // The gateway's own schemas are tested, and checking them against the meta-schema takes longer
    // than compiling them. Only schemas from plugins are checked.
    validateSchema: false,
    logger: false,
    formats: FORMAT_CHECKS,
  },
  keywords: ({ _, Name, str }) => [
    // Text that errors show instead of the rule, such as "a duration, such as 300s".
    "x-expects",
    // Form of an input member on the command line: see `CliField`.
    "x-cli",
    // How a value is converted: "duration" to milliseconds, "size" to bytes.
    "x-unit",
    // First version that supports the option. Reference pages print it.
    { keyword: "x-since", schemaType: "string" as const },
    ...Object.entries(MARK_KEYWORDS).map(([keyword, mark]) => ({
      keyword,
      schemaType: "boolean" as const,
      code({ gen, schema, it: { errorPath } }: KeywordCxt) {
        const above = new Name("instancePath");
        const at = errorPath.emptyStr() ? above : str`${above}${errorPath}`;
        if (schema === true) gen.code(_`this.${new Name(mark)}.add(${at})`);
      },
    })),
  ],
};

const dialectCompiler = createCompiler(DIALECT_RULES);

export interface Validated extends MarkedPlaces {
  /** The value with defaults filled in. */
  readonly value: unknown;
  readonly errors: readonly ErrorObject[];
}
/** Pointers below a value, by mark of its schema. */
export type MarkedPlaces = { readonly [mark in SchemaMark]: ReadonlySet<string> };
export type Validator = (value: unknown) => Validated;

const validators = new WeakMap<object, Validator>();

/** Returns the validator of a schema. Throws if the schema is invalid. */
export function getValidator(schema: Schema): Validator {
  const known = validators.get(schema);
  if (known) return known;
  const check = dialectCompiler.compile(schema);
  const validate: Validator = (given) => {
    const value = structuredClone(given);
    const collected: CollectedMarks = {
      secrets: new Set(),
      origins: new Set(),
      accounts: new Set(),
      paths: new Set(),
    };
    check.call(collected as never, value);
    return { value, errors: check.errors ?? [], ...collected };
  };
  validators.set(schema, validate);
  return validate;
}

/** Returns why a schema is invalid by draft-07 or the strict rules, or undefined if it is valid. */
export function findSchemaFlaw(schema: Schema): string | undefined {
  const ajv = dialectCompiler.ajv();
  try {
    if (!ajv.validateSchema(schema)) return ajv.errorsText(ajv.errors, { dataVar: "schema" });
    getValidator(schema);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Schema of a plugin without `options` or `credential`. */
export const EMPTY_SCHEMA: Schema = { type: "object", additionalProperties: false, properties: {} };
