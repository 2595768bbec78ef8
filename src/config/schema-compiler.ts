// Returns the validator of a schema, which the build has precompiled or which is compiled now.
// Loading Ajv and compiling schemas takes too long for a start. Ajv is therefore loaded only for
// the first schema that does not ship with Tollgate, such as the schema of a third-party plugin.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Ajv, KeywordDefinition, Options, ValidateFunction } from "ajv";

type AjvModule = typeof import("ajv");

export interface SchemaRules {
  readonly options: Options;
  readonly keywords?: (ajv: AjvModule) => readonly (KeywordDefinition | string)[];
}

const require = createRequire(import.meta.url);

/**
 * Folder next to the program that .build/validators.ts fills. Does not exist when the program runs
 * from source.
 */
const PRECOMPILED_DIR = new URL("./validators/", import.meta.url);
export type PrecompiledSchema = {
  /** @param schema The schema that it was made from, to which errors refer. */
  readonly create: (formats: Options["formats"], schema: object) => ValidateFunction;
};

/** Returns a hash of the exact schema and its options. A changed schema has another key. */
export const schemaKeyOf = (schema: object, { options }: SchemaRules): string =>
  createHash("sha256")
    .update(JSON.stringify([schema, options]))
    .digest("base64url")
    .slice(0, 22);

/**
 * @param extraOptions Additional options of the build.
 */
export function createAjv({ options, keywords }: SchemaRules, extraOptions: Options = {}): Ajv {
  const library = require("ajv") as AjvModule;
  const all = [...(keywords?.(library) ?? [])] as KeywordDefinition[];
  return new library.Ajv({ ...options, keywords: all, ...extraOptions });
}

/**
 * Creates one compiler for all schemas with the same rules. `compile` throws if a schema is
 * invalid.
 */
export function createCompiler(rules: SchemaRules): {
  readonly ajv: () => Ajv;
  readonly compile: (schema: object) => ValidateFunction;
} {
  let mine: Ajv | undefined;
  const ajv = () => (mine ??= createAjv(rules));
  return {
    ajv,
    compile(schema) {
      const file = fileURLToPath(new URL(`${schemaKeyOf(schema, rules)}.cjs`, PRECOMPILED_DIR));
      if (existsSync(file))
        return (require(file) as PrecompiledSchema).create(rules.options.formats, schema);
      const check = ajv().compile(schema);
      // Ajv would keep the schema in memory forever. The validator is freed together with its
      // owner.
      ajv().removeSchema(schema);
      return check;
    },
  };
}
