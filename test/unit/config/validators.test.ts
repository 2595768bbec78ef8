// Compiled validators return exactly the results of ajv.
import { createRequire } from "node:module";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createAjv,
  schemaKeyOf,
  type PrecompiledSchema,
  type SchemaRules,
} from "../../../src/config/schema-compiler.ts";
import { schemas, source } from "../../../.build/validators.ts";
import { trialCount } from "../../kit/law-effort.ts";

const require = createRequire(import.meta.url);
const all = await schemas();

function made(schema: object, rules: SchemaRules) {
  const exports = {} as PrecompiledSchema;
  new Function("exports", "require", source(schema, rules))(exports, require);
  return exports.create(rules.options.formats, schema);
}

/** Every key, value, and example of the schema, at any depth. */
function wordsIn(value: unknown, into = new Set<unknown>()): Set<unknown> {
  if (typeof value !== "object" || value === null) into.add(value);
  else
    for (const [key, each] of Object.entries(value)) {
      into.add(key);
      wordsIn(each, into);
    }
  return into;
}

/** Relevant values for a schema: its own keys and values, in any order. */
function valuesFor(schema: object): fc.Arbitrary<unknown> {
  const words = fc.constantFrom(...wordsIn(schema));
  const keys = fc.constantFrom(...[...wordsIn(schema)].filter((word) => typeof word === "string"));
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: "small" },
      fc.oneof(words, fc.integer(), fc.string(), fc.constantFrom(null, true, "", "5s", "1MiB")),
      fc.array(tie("tree"), { maxLength: 3 }),
      fc.dictionary(keys, tie("tree"), { maxKeys: 4 }),
    ),
  }));
  return fc.oneof(tree, fc.dictionary(keys, tree, { maxKeys: 6 }));
}

test("give the same result, errors, defaults, and secrets for any value", () => {
  const seen = new Map(
    all.map(([schema, rules]) => [schemaKeyOf(schema, rules), { schema, rules }]),
  );
  expect(seen.size).toBeGreaterThan(60);
  for (const { schema, rules } of seen.values()) {
    const ways = [made(schema, rules), createAjv(rules).compile(schema)];
    fc.assert(
      fc.property(valuesFor(schema), (value) => {
        const [one, other] = ways.map((check) => {
          const given = structuredClone(value);
          const found = {
            secrets: new Set<string>(),
            origins: new Set<string>(),
            accounts: new Set<string>(),
            paths: new Set<string>(),
          };
          const valid = check.call(found, given);
          return { valid, errors: structuredClone(check.errors), given, found };
        });
        expect(one).toEqual(other);
      }),
      { numRuns: trialCount(40) },
    );
  }
});

test("have another name for another schema or other rules", () => {
  const [schema, rules] = all[0]!;
  const names = [
    schemaKeyOf(schema, rules),
    schemaKeyOf({ ...schema, title: "other" }, rules),
    schemaKeyOf(schema, { options: { ...rules.options, allErrors: false } }),
  ];
  expect(new Set(names).size).toBe(3);
});
