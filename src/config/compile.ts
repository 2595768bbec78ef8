// A schema's validator: as the build made it, or compiled now. Ajv takes longer to load and to compile than a start may
// take, so it is loaded for the first schema that did not come with us: a third party's plugin's.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Ajv, KeywordDefinition, Options, ValidateFunction } from "ajv";

type Library = typeof import("ajv");

export interface Rules {
  readonly options: Options;
  readonly keywords?: (ajv: Library) => readonly (KeywordDefinition | string)[];
}

const require = createRequire(import.meta.url);

/** Beside the program, made by .build/validators.ts; from source there are none. */
const MADE = new URL("./validators/", import.meta.url);
export type CompiledSchema = { readonly make: (formats: Options["formats"]) => ValidateFunction };

/** Names what was compiled, to the letter, and how: a schema that has changed since has another name. */
export const keyOf = (schema: object, { options }: Rules): string =>
  createHash("sha256")
    .update(JSON.stringify([schema, options]))
    .digest("base64url")
    .slice(0, 22);

/** `more`: what the build asks for besides. */
export function createAjv({ options, keywords }: Rules, more: Options = {}): Ajv {
  const library = require("ajv") as Library;
  const all = [...(keywords?.(library) ?? [])] as KeywordDefinition[];
  return new library.Ajv({ ...options, keywords: all, ...more });
}

/** One compiler for all schemas under the same rules. Throws when a schema is not one. */
export function compiler(rules: Rules): {
  readonly ajv: () => Ajv;
  readonly compile: (schema: object) => ValidateFunction;
} {
  let mine: Ajv | undefined;
  const ajv = () => (mine ??= createAjv(rules));
  return {
    ajv,
    compile(schema) {
      const file = fileURLToPath(new URL(`${keyOf(schema, rules)}.cjs`, MADE));
      if (existsSync(file)) return (require(file) as CompiledSchema).make(rules.options.formats);
      const check = ajv().compile(schema);
      // Ajv would keep it for ever; it lives as long as its owner.
      ajv().removeSchema(schema);
      return check;
    },
  };
}
