// A schema's validator: as the build made it, or compiled now. Ajv takes longer to load and to compile than a start may
// take, so it is loaded for the first schema that did not come with us: a third party's plugin's.
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

/** Beside the program, made by .build/validators.ts; from source there are none. */
const PRECOMPILED_DIR = new URL("./validators/", import.meta.url);
export type PrecompiledSchema = {
  readonly create: (formats: Options["formats"]) => ValidateFunction;
};

/** Names what was compiled, to the letter, and how: a schema that has changed since has another name. */
export const schemaKeyOf = (schema: object, { options }: SchemaRules): string =>
  createHash("sha256")
    .update(JSON.stringify([schema, options]))
    .digest("base64url")
    .slice(0, 22);

/** `more`: what the build asks for besides. */
export function createAjv({ options, keywords }: SchemaRules, extraOptions: Options = {}): Ajv {
  const library = require("ajv") as AjvModule;
  const all = [...(keywords?.(library) ?? [])] as KeywordDefinition[];
  return new library.Ajv({ ...options, keywords: all, ...extraOptions });
}

/** One compiler for all schemas under the same rules. Throws when a schema is not one. */
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
        return (require(file) as PrecompiledSchema).create(rules.options.formats);
      const check = ajv().compile(schema);
      // Ajv would keep it for ever; it lives as long as its owner.
      ajv().removeSchema(schema);
      return check;
    },
  };
}
