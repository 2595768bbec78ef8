// The schema for editors: the skeleton, and for every known plugin what may stand in its `with:`. Written to
// schemas/gateway.schema.json; the gateway itself validates in two phases, for better sentences.
// Draft-07, which is what yaml-language-server reads.
import { EMPTY_SCHEMA, type Schema } from "../config/schema-dialect.ts";
import { EDITOR_CONFIG_SCHEMA } from "../config/schema/config-schema.ts";
import { isMapping, type Mapping } from "../config/source/config-tree.ts";
import type { Definition, PluginKind } from "../plugin/define.ts";

export interface DefinedPlugin {
  readonly kind: PluginKind;
  /** As `use:` has it. */
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
    // Without `use`, the key says which plugin it is.
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

/** As the file has it: stable, so that a stale one shows in a diff. */
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

/** Says something, rules nothing. */
const ANNOTATION_KEYWORDS = ["$schema", "title", "description", "definitions"];

/** One `with:` for options and credential, unless there is a list of credentials. */
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
    else: { properties: { with: both }, ...(required.length > 0 ? { required: ["with"] } : {}) },
  };
}

/** Rules that text from a variable cannot keep until it is there. */
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
/** No place for a value of the file's. */
const CONDITION_KEYWORDS = ["if", "not", "propertyNames"];

/**
 * The same schema where it stands now, without what editors do not know: references inside a plugin's own schema lead
 * to where that schema went, and a value may be `${env:NAME}` wherever it need not be a map or a list.
 */
function toEditorSchema(schema: unknown, root: string, condition = false): unknown {
  if (!isMapping(schema)) return schema;
  const copy: Mapping = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "x-expects") continue;
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
