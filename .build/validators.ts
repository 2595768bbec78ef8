// Precompiles the validators of all schemas that ship with Tollgate, one file each, into the given
// folder. `npm run build` puts them where src/config/schema-compiler.ts looks for them.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { _ } from "ajv";
import standalone from "ajv/dist/standalone/index.js";
import { parseAst } from "rolldown/parseAst";
import { builtin } from "../plugins/index.ts";
import { createAjv, schemaKeyOf, type SchemaRules } from "../src/config/schema-compiler.ts";
import { DIALECT_RULES, EMPTY_SCHEMA } from "../src/config/schema-dialect.ts";
import { FACTS_SCHEMA } from "../src/config/sections/model-facts.ts";
import { CONFIG_SCHEMA } from "../src/config/schema/config-schema.ts";
import { BODY_SCHEMA_RULES } from "../src/runtime/generation/mount-endpoint.ts";
import type { Definition } from "../src/plugin/define.ts";

/** Folder with the schemas of request bodies. */
const SCHEMAS = new URL("../schemas/", import.meta.url).pathname;

/** Returns every schema with the rules that it is compiled with. */
export async function schemas(): Promise<
  readonly (readonly [schema: object, rules: SchemaRules])[]
> {
  const loaded = Object.values(builtin).flatMap((kind) => Object.values(kind));
  const definitions = await Promise.all(
    loaded.map(async (load) => ((await load()) as { default: Definition }).default),
  );
  const options = definitions.flatMap((each) => [
    each.options,
    "credential" in each ? each.credential : undefined,
  ]);
  const bodies = readdirSync(SCHEMAS)
    .filter((file) => file.endsWith(".request.json"))
    .map((file) => JSON.parse(readFileSync(join(SCHEMAS, file), "utf8")) as object);
  return [
    ...[CONFIG_SCHEMA, FACTS_SCHEMA, EMPTY_SCHEMA, ...options].map(
      (schema) => [schema, DIALECT_RULES] as const,
    ),
    ...bodies.map((schema) => [schema, BODY_SCHEMA_RULES] as const),
  ].filter((each): each is readonly [object, SchemaRules] => typeof each[0] === "object");
}

/**
 * Returns the source of a `PrecompiledSchema`. Functions are in parentheses: V8 then compiles them
 * with the file, so that the compile cache contains them.
 */
export function source(schema: object, rules: SchemaRules): string {
  const ajv = createAjv(rules, { code: { source: true, optimize: true, formats: _`formats` } });
  const body = standalone.default(ajv, ajv.compile(schema));
  const text = ({ start, end }: { start: number; end: number }) => body.slice(start, end);
  const given = JSON.stringify(schema);
  let main = "";
  const statements = parseAst(body).body.map((statement) => {
    if (statement.type === "FunctionDeclaration")
      return `const ${statement.id!.name} = (${text(statement)});`;
    const [, exported] = /^module\.exports(?:\.default)? = (\w+);$/.exec(text(statement)) ?? [];
    if (exported !== undefined) main = exported;
    return exported === undefined
      ? text(statement).replace(` = ${given};`, () => " = schema;")
      : "";
  });
  return `exports.create = ((formats, schema) => {\n${statements.join("")}\nreturn ${main};\n});\n`;
}

if (import.meta.main) {
  const folder = process.argv[2]!;
  mkdirSync(folder);
  for (const [schema, rules] of await schemas())
    writeFileSync(join(folder, `${schemaKeyOf(schema, rules)}.cjs`), source(schema, rules));
}
