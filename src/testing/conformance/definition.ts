// Checks a plugin's definition before any of its code runs.
import assert from "node:assert/strict";
import { Ajv } from "ajv";
import type { Definition } from "../../plugin/define.ts";
import { createCheck, type Check } from "../check.ts";
import { deepFreeze } from "../freeze.ts";
import type { ConformanceSubject } from "./subject.ts";

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

/** Formats that gateway.yaml supports. Strict validation rejects all other formats. */
const KNOWN_FORMATS = ["uri", "date", "date-time", "email", "hostname", "ipv4", "ipv6", "regex"];

const createValidator = (strict: boolean) =>
  new Ajv({
    strict,
    strictTypes: false,
    strictTuples: false,
    useDefaults: true,
    formats: Object.fromEntries(KNOWN_FORMATS.map((format) => [format, true])),
    keywords: ["x-secret", "x-origin", "x-account", "x-path", "x-expects"],
  });
const strictValidator = createValidator(true);
const lenientValidator = createValidator(false);

/** Compiles a copy of a schema, and keeps no schema, because two plugins may use one `$id`. */
function compileSchema(schema: unknown, validator = strictValidator) {
  try {
    return validator.compile(structuredClone(schema) as object);
  } finally {
    validator.removeSchema();
  }
}

/**
 * Returns the checks of a definition: name, schema, described options, marked secrets, and valid
 * defaults. The checks run no code of the plugin except `check`.
 */
export function definitionChecks({ definition, options, credential }: ConformanceSubject): Check[] {
  const schemas: [string, Schema | undefined, object][] = [
    ["options", definition.options as Schema | undefined, options],
  ];
  if (definition["~tollgate"] === "provider")
    schemas.push(["credential", definition.credential as Schema | undefined, credential]);
  return [
    createCheck("the definition is well-formed", () => checkIdentity(definition)),
    ...schemas.flatMap(([what, schema, value]) =>
      schema === undefined
        ? [
            createCheck(`accepts no ${what}`, () =>
              assert.deepEqual(value, {}, `${what} are set, but the plugin declares none`),
            ),
          ]
        : [
            createCheck(`${what}: the schema is closed and uses draft-07`, () =>
              checkClosed(schema, what),
            ),
            createCheck(`${what}: each property has a description`, () =>
              checkDescriptions(schema, what),
            ),
            createCheck(`${what}: secrets are marked`, () => checkSecretMarks(schema, what)),
            createCheck(`${what}: defaults are valid`, () => checkDefaults(schema, what)),
            createCheck(`${what}: the given values are valid`, () =>
              checkValid(schema, value, what),
            ),
          ],
    ),
    createCheck("check() accepts the given options", () => checkOwnCheck(definition, options)),
  ];
}

function checkIdentity(definition: Definition): void {
  const { api, name, summary, stability } = definition;
  assert.equal(api, 1, `api is ${String(api)}, but must be 1`);
  assert.match(
    name,
    /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/,
    `name "${name}" must be lowercase, with dashes`,
  );
  assert.ok(
    summary.trim() === summary && summary.length > 0,
    "the summary must be one line without surrounding spaces",
  );
  assert.ok(
    summary.length <= 120 && !summary.includes("\n"),
    "the summary must be one line of at most 120 characters",
  );
  if (stability !== undefined)
    assert.ok(["experimental", "beta", "stable", "deprecated"].includes(stability), stability);
  if (definition["~tollgate"] === "middleware")
    assert.ok(
      definition.sends === "nowhere" || typeof definition.sends === "object",
      "sends must be declared",
    );
}

/** Yields every schema inside of a schema, with its path. */
function* walkSchema(schema: Schema, path: string): Generator<[Schema, string]> {
  yield [schema, path];
  for (const [name, one] of Object.entries(schema.properties ?? {}))
    yield* walkSchema(one, `${path}.${name}`);
  if (typeof schema.items === "object") yield* walkSchema(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === "object")
    yield* walkSchema(schema.additionalProperties, `${path}.*`);
  for (const keyword of ["oneOf", "anyOf", "allOf"])
    for (const [i, one] of ((schema[keyword] as Schema[] | undefined) ?? []).entries())
      yield* walkSchema(one, `${path}(${i})`);
}

function checkClosed(schema: Schema, what: string): void {
  assert.ok(schema.$schema === undefined || schema.$schema.includes("draft-07"), "draft-07 only");
  // Keywords of later drafts are unknown here, and unknown keywords throw.
  compileSchema(schema);
  assert.equal(
    schema.additionalProperties,
    false,
    `${what}: set additionalProperties to false, so that misspelled properties are rejected`,
  );
  for (const [one, path] of walkSchema(schema, what))
    if (one.properties)
      assert.notEqual(
        one.additionalProperties ?? true,
        true,
        `${path} must set additionalProperties to false`,
      );
}

function checkDescriptions(schema: Schema, what: string): void {
  for (const [one, path] of walkSchema(schema, what))
    for (const [name, property] of Object.entries(one.properties ?? {}))
      assert.ok(
        typeof property.description === "string" && property.description.trim().length > 2,
        `${path}.${name} has no description; editors show it to users`,
      );
}

/**
 * Names of options that are probably secrets. `max_tokens` and `key_id` are not, because they are
 * counts and labels.
 */
const SECRET_NAME =
  /(^|_)(api_?key|secret|secret_?key|token|password|passphrase|private_?key|access_?key)$/i;

function checkSecretMarks(schema: Schema, what: string): void {
  for (const [one, path] of walkSchema(schema, what))
    for (const [name, property] of Object.entries(one.properties ?? {})) {
      const text = [property.type ?? "string"].flat().includes("string") && !property["enum"];
      if (text && SECRET_NAME.test(name))
        assert.equal(
          property["x-secret"],
          true,
          `${path}.${name} looks like a secret: add x-secret: true`,
        );
      if (property["x-secret"])
        assert.equal(
          property.default,
          undefined,
          `${path}.${name}: a secret must not have a default`,
        );
    }
}

function checkDefaults(schema: Schema, what: string): void {
  for (const [one, path] of walkSchema(schema, what)) {
    if (one.default === undefined) continue;
    const { default: usual, ...rest } = structuredClone(one);
    const validate = compileSchema(rest);
    assert.ok(
      validate(usual),
      `${path}: default ${JSON.stringify(one.default)} is not valid: ${strictValidator.errorsText(validate.errors)}`,
    );
  }
}

function checkValid(schema: Schema, value: object, what: string): void {
  const validate = compileSchema(schema);
  assert.ok(
    validate(structuredClone(value)),
    `${what}: ${strictValidator.errorsText(validate.errors, { dataVar: what })}`,
  );
}

function checkOwnCheck(definition: Definition, options: object): void {
  const problems = [...(definition.check?.(deepFreeze(options) as never) ?? [])];
  const errors = problems.filter(({ severity }) => severity !== "warning");
  assert.deepEqual(errors, [], "check() reports errors for the given options");
  for (const { path } of problems)
    assert.match(path, /^(\/|$)/, "the path of a problem must be a JSON pointer");
}

/** Returns the options as `setup` receives them, with defaults filled in. */
export function withDefaults(schema: unknown, value: object): Record<string, unknown> {
  const copy = structuredClone(value) as Record<string, unknown>;
  if (schema) compileSchema(schema, lenientValidator)(copy);
  return copy;
}

/** Returns all values that are marked with `x-secret`. */
export function findSecrets(schema: unknown, value: unknown): string[] {
  const { properties, items, ...one } = (schema ?? {}) as Schema;
  if (one["x-secret"]) return typeof value === "string" && value !== "" ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((each) => findSecrets(items, each));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) =>
    findSecrets(
      properties?.[name] ??
        (typeof one.additionalProperties === "object" ? one.additionalProperties : undefined),
      each,
    ),
  );
}
