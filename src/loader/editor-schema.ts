// Builds the JSON Schema for editors: the config structure, and for every known plugin the content
// of its `with:`. The schema is written to `schemas/gateway.schema.json`. The gateway itself
// validates in two phases, which gives better messages. The schema uses draft-07, because
// yaml-language-server reads it.
import { EMPTY_SCHEMA, type Schema } from "../config/schema-dialect.ts";
import { EDITOR_CONFIG_SCHEMA } from "../config/schema/config-schema.ts";
import { isMapping, type Mapping } from "../config/source/config-tree.ts";
import type { Definition, PluginKind } from "../plugin/define.ts";

export interface DefinedPlugin {
  readonly kind: PluginKind;
  /** Name as written in `use:`. */
  readonly use: string;
  readonly definition: Definition;
}

export function editorSchema(plugins: readonly DefinedPlugin[]): Mapping {
  const schema = toEditorSchema(EDITOR_CONFIG_SCHEMA, "#") as any;
  const definitions: Mapping = {
    reference: {
      type: "string",
      pattern: String.raw`\$\{(env|file):`,
      description: "From a variable or a file",
    },
  };
  const sorted = [...plugins].sort((a, b) => (definitionKeyOf(a) < definitionKeyOf(b) ? -1 : 1));
  const rules: Record<PluginKind, Mapping[]> = {
    provider: [],
    frontend: [],
    middleware: [],
    observer: [],
    store: [],
  };
  const byKey: Mapping = {};
  for (const known of sorted) {
    const { kind, use, definition } = known;
    const at = `#/definitions/${definitionKeyOf(known)}`;
    const part = (what: "options" | "credential") => {
      const partSchema = (definition as { [part in typeof what]?: Schema })[what] ?? EMPTY_SCHEMA;
      const its = toEditorSchema(partSchema, `${at}.${what}`) as Mapping;
      definitions[`${definitionKeyOf(known)}.${what}`] = its;
      return its;
    };
    const options = part("options");
    definitions[definitionKeyOf(known)] =
      kind === "provider"
        ? providerRule(options, part("credential"), at)
        : ruleForWith(options, at);
    const about = { description: definition.summary };
    rules[kind].push({
      if: { type: "object", required: ["use"], properties: { use: { const: use } } },
      then: { properties: { use: about }, allOf: [{ $ref: at }] },
    });
    if (kind !== "provider") continue;
    // If `use` is missing, the key is the plugin's name.
    const alone = { if: { type: "object", not: { required: ["use"] } }, then: { $ref: at } };
    byKey[use] = { ...about, allOf: [{ $ref: "#/definitions/provider" }, alone] };
  }
  const { store, frontends, middleware, observers, providers } = schema.properties;
  definitions["provider"] = providers.additionalProperties;
  providers.additionalProperties = { $ref: "#/definitions/provider" };
  providers.properties = byKey;
  addRules(store, rules.store);
  addRules(frontends.items, rules.frontend);
  addRules(middleware.items, rules.middleware);
  addRules(observers.items, rules.observer);
  addRules(definitions["provider"] as Mapping, rules.provider);
  return { ...schema, definitions };
}

const definitionKeyOf = ({ kind, use }: DefinedPlugin) => `${kind}.${use}`;

/** Returns the file's text. The text is deterministic, so an outdated file is visible in a diff. */
export const editorSchemaText = (plugins: readonly DefinedPlugin[]): string =>
  `${JSON.stringify(editorSchema(plugins), null, 2)}\n`;

function addRules(entry: Mapping, rules: readonly Mapping[]): void {
  if (rules.length > 0) entry["allOf"] = rules;
}

const requiredOf = (schema: Mapping) => (schema["required"] ?? []) as readonly string[];

const ruleForWith = (options: Mapping, at: string, part = "options"): Mapping => ({
  properties: { with: { $ref: `${at}.${part}` } },
  ...(requiredOf(options).length > 0 ? { required: ["with"] } : {}),
});

/** Keywords that describe and do not restrict. */
const ANNOTATION_KEYWORDS = ["$schema", "title", "description", "definitions"];

/**
 * Builds the rule for a provider: one `with:` for options and credential, unless there is a list of
 * credentials.
 */
function providerRule(options: Mapping, credential: Mapping, at: string): Mapping {
  const rest = [options, credential].flatMap((schema) => {
    const { type: _t, additionalProperties: _a, properties: _p, required: _r, ...more } = schema;
    const rules = Object.keys(more).filter((key) => !ANNOTATION_KEYWORDS.includes(key));
    return rules.length > 0 ? [more] : [];
  });
  const required = [...requiredOf(options), ...requiredOf(credential)];
  const both = {
    type: ["object", "null"],
    additionalProperties: false,
    properties: { ...(options["properties"] as Mapping), ...(credential["properties"] as Mapping) },
    ...(required.length > 0 ? { required } : {}),
    ...(rest.length > 0 ? { allOf: rest } : {}),
  };
  const list = ruleForWith(options, at);
  return {
    if: { required: ["credentials"] },
    then: {
      ...list,
      properties: {
        ...(list["properties"] as Mapping),
        credentials: { items: ruleForWith(credential, at, "credential") },
      },
    },
    else: {
      if: { required: ["credential"] },
      // The client sends the credential.
      then: list,
      else: { properties: { with: both }, ...(required.length > 0 ? { required: ["with"] } : {}) },
    },
  };
}

/** Keywords that restrict a value. They do not apply to an unresolved reference such as `${env:NAME}`. */
const VALUE_KEYWORDS = ["enum", "const", "pattern", "format", "maxLength"];
const SCHEMA_MAP_KEYWORDS = ["properties", "patternProperties", "definitions"];
const SCHEMA_LIST_KEYWORDS = ["allOf", "anyOf", "oneOf"];
const SCHEMA_KEYWORDS = [
  "items",
  "additionalProperties",
  "additionalItems",
  "contains",
  "if",
  "then",
  "else",
  "not",
  "propertyNames",
];
/** Keywords for the gateway, which editors do not support. */
const OWN_KEYWORDS = ["x-expects", "x-unit", "x-path", "x-cli"];
/** Keywords whose schemas do not describe a value in the file. */
const CONDITION_KEYWORDS = ["if", "not", "propertyNames"];

/**
 * Converts a plugin's schema for editors. Unsupported keywords are removed, and references are
 * redirected to the schema's new position. Scalars may also be `${env:NAME}`.
 */
function toEditorSchema(schema: unknown, root: string, condition = false): unknown {
  if (!isMapping(schema)) return schema;
  const copy: Mapping = {};
  for (const [key, value] of Object.entries(schema)) {
    if (OWN_KEYWORDS.includes(key)) continue;
    const down = (each: unknown) =>
      toEditorSchema(each, root, condition || CONDITION_KEYWORDS.includes(key));
    if (key === "$ref" && typeof value === "string") copy[key] = value.replace(/^#/, root);
    else if (SCHEMA_MAP_KEYWORDS.includes(key) && isMapping(value))
      copy[key] = Object.fromEntries(Object.entries(value).map(([k, v]) => [k, down(v)]));
    else if (SCHEMA_LIST_KEYWORDS.includes(key) && Array.isArray(value))
      copy[key] = value.map(down);
    else if (key === "items" && Array.isArray(value)) copy[key] = value.map(down);
    else copy[key] = SCHEMA_KEYWORDS.includes(key) ? down(value) : value;
  }
  return condition ? copy : allowReference(copy);
}

function allowReference(schema: Mapping): Mapping {
  const types = [schema["type"] ?? []].flat() as string[];
  const scalar = types.some((t) => ["number", "integer", "boolean"].includes(t));
  const strict =
    VALUE_KEYWORDS.some((rule) => rule in schema) &&
    !types.includes("object") &&
    !types.includes("array");
  if (!scalar && !strict) return schema;
  const { description, default: otherwise, title, ...rule } = schema;
  return {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(otherwise === undefined ? {} : { default: otherwise }),
    anyOf: [rule, { $ref: "#/definitions/reference" }],
  };
}
