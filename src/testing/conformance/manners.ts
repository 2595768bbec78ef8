// L9, manners: what a definition says of itself, before anything of it runs.
import assert from "node:assert/strict";
import { Ajv } from "ajv";
import type { Definition } from "../../plugin/define.ts";
import { check, type Check } from "../check.ts";
import { freeze } from "../freeze.ts";
import type { Subject } from "./subject.ts";

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: { readonly [name: string]: Schema };
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly description?: string;
  readonly default?: unknown;
  readonly $schema?: string;
  readonly "x-secret"?: boolean;
  readonly [keyword: string]: unknown;
}

/** The formats that gateway.yaml knows; strict validation refuses any other. */
const FORMATS = ["uri", "date", "date-time", "email", "hostname", "ipv4", "ipv6", "regex"];

const ajv = (strict = true) =>
  new Ajv({
    strict,
    strictTypes: false,
    strictTuples: false,
    useDefaults: true,
    formats: Object.fromEntries(FORMATS.map((format) => [format, true])),
    keywords: ["x-secret", "x-origin", "x-account", "x-path", "x-expects"],
  });

/**
 * The laws of a definition: name, schema, described options, marked secrets, valid defaults. They call no code of the
 * plugin but `check`.
 */
export function manners({ definition, options, credential }: Subject): Check[] {
  const schemas: [string, Schema | undefined, object][] = [
    ["options", definition.options as Schema | undefined, options],
  ];
  if (definition["~tollgate"] === "provider")
    schemas.push(["credential", definition.credential as Schema | undefined, credential]);
  return [
    check("says what it is", () => identity(definition)),
    ...schemas.flatMap(([what, schema, value]) =>
      schema === undefined
        ? [
            check(`takes no ${what}`, () =>
              assert.deepEqual(value, {}, `${what} are given, none are declared`),
            ),
          ]
        : [
            check(`${what}: the schema is draft-07, and closed`, () => closed(schema, what)),
            check(`${what}: each one is described`, () => described(schema, what)),
            check(`${what}: secrets are marked`, () => marked(schema, what)),
            check(`${what}: defaults are valid`, () => defaults(schema, what)),
            check(`${what}: what is given is valid`, () => valid(schema, value, what)),
          ],
    ),
    check("its own check has no complaint", () => ownCheck(definition, options)),
  ];
}

function identity(definition: Definition): void {
  const { api, name, summary, stability } = definition;
  assert.equal(api, 1, `api is ${String(api)}; the contract's version is 1`);
  assert.match(
    name,
    /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/,
    `the name "${name}" is lower case, with dashes`,
  );
  assert.ok(summary.trim() === summary && summary.length > 0, "the summary is one plain line");
  assert.ok(summary.length <= 120 && !summary.includes("\n"), "the summary is one line");
  if (stability !== undefined)
    assert.ok(["experimental", "beta", "stable", "deprecated"].includes(stability), stability);
  if (definition["~tollgate"] === "middleware")
    assert.ok(
      definition.sends === "nowhere" || typeof definition.sends === "object",
      "sends is said",
    );
}

/** Every schema in a schema, with the path to it. */
function* within(schema: Schema, path: string): Generator<[Schema, string]> {
  yield [schema, path];
  for (const [name, one] of Object.entries(schema.properties ?? {}))
    yield* within(one, `${path}.${name}`);
  if (typeof schema.items === "object") yield* within(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === "object")
    yield* within(schema.additionalProperties, `${path}.*`);
  for (const keyword of ["oneOf", "anyOf", "allOf"])
    for (const [i, one] of ((schema[keyword] as Schema[] | undefined) ?? []).entries())
      yield* within(one, `${path}(${i})`);
}

function closed(schema: Schema, what: string): void {
  assert.ok(schema.$schema === undefined || schema.$schema.includes("draft-07"), "draft-07 only");
  // A keyword of a later draft is unknown here, and unknown keywords throw.
  ajv().compile(structuredClone(schema) as object);
  assert.equal(schema.additionalProperties, false, `${what}: a typo must not pass in silence`);
  for (const [one, path] of within(schema, what))
    if (one.properties)
      assert.notEqual(one.additionalProperties ?? true, true, `${path} is open: close it`);
}

function described(schema: Schema, what: string): void {
  for (const [one, path] of within(schema, what))
    for (const [name, property] of Object.entries(one.properties ?? {}))
      assert.ok(
        typeof property.description === "string" && property.description.trim().length > 2,
        `${path}.${name} has no description: it is what people read in their editor`,
      );
}

/** Names of things that open doors. Not `max_tokens`, not `key_id`: those are counts and labels. */
const SECRET =
  /(^|_)(api_?key|secret|secret_?key|token|password|passphrase|private_?key|access_?key)$/i;

function marked(schema: Schema, what: string): void {
  for (const [one, path] of within(schema, what))
    for (const [name, property] of Object.entries(one.properties ?? {})) {
      const text = [property.type ?? "string"].flat().includes("string") && !property["enum"];
      if (text && SECRET.test(name))
        assert.equal(
          property["x-secret"],
          true,
          `${path}.${name} looks like a secret: say x-secret: true`,
        );
      if (property["x-secret"])
        assert.equal(property.default, undefined, `${path}.${name}: a secret has no default`);
    }
}

function defaults(schema: Schema, what: string): void {
  for (const [one, path] of within(schema, what)) {
    if (one.default === undefined) continue;
    const { default: usual, ...rest } = structuredClone(one);
    const validate = ajv().compile(rest);
    assert.ok(
      validate(usual),
      `${path}: the default ${JSON.stringify(one.default)} is not valid: ${ajv().errorsText(validate.errors)}`,
    );
  }
}

function valid(schema: Schema, value: object, what: string): void {
  const validate = ajv().compile(structuredClone(schema) as object);
  assert.ok(
    validate(structuredClone(value)),
    `${what}: ${ajv().errorsText(validate.errors, { dataVar: what })}`,
  );
}

function ownCheck(definition: Definition, options: object): void {
  const problems = [...(definition.check?.(freeze(options) as never) ?? [])];
  const errors = problems.filter(({ severity }) => severity !== "warning");
  assert.deepEqual(errors, [], "check() complains about options that are meant to be right");
  for (const { path } of problems)
    assert.match(path, /^(\/|$)/, "a problem's path is a JSON pointer");
}

/** Options as setup gets them: defaults filled in. */
export function filled(schema: unknown, value: object): Record<string, unknown> {
  const copy = structuredClone(value) as Record<string, unknown>;
  if (schema) ajv(false).compile(structuredClone(schema) as object)(copy);
  return copy;
}

/** The values of everything that is marked `x-secret`. */
export function secretsIn(schema: unknown, value: unknown): string[] {
  const { properties, items, ...one } = (schema ?? {}) as Schema;
  if (one["x-secret"]) return typeof value === "string" && value !== "" ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((each) => secretsIn(items, each));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) =>
    secretsIn(
      properties?.[name] ??
        (typeof one.additionalProperties === "object" ? one.additionalProperties : undefined),
      each,
    ),
  );
}
