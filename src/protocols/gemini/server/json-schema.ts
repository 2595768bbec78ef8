// Converts a schema in this protocol's OpenAPI form to JSON Schema, which other protocols use.
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject } from "../../json-values.ts";
import { snakeCaseNames } from "../constants.ts";

/** Members that contain a schema, a list of schemas, or schemas by name. */
const SCHEMA_MEMBERS = new Set([
  "items",
  "additionalProperties",
  "not",
  "contains",
  "propertyNames",
  "if",
  "then",
  "else",
]);
const SCHEMA_LIST_MEMBERS = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const SCHEMA_MAP_MEMBERS = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);

/** Members with integers, which this protocol may also write as text. */
const INTEGER_MEMBERS = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);

const FIRST: ReadonlyMap<string, string> = snakeCaseNames([
  ...SCHEMA_LIST_MEMBERS,
  ...INTEGER_MEMBERS,
  "additionalProperties",
  "propertyOrdering",
]);

/**
 * Members that only this protocol has: the order of properties, and whether a value can be null.
 */
const OPENAPI_ONLY_MEMBERS = new Set(["propertyOrdering", "nullable"]);

const UNSPECIFIED = "TYPE_UNSPECIFIED";
const isUnspecified = (type: Json | undefined): boolean =>
  type === UNSPECIFIED ||
  (Array.isArray(type) && type.length > 0 && type.every((one) => one === UNSPECIFIED));

/** Returns the schema as JSON Schema. Returns the same object if it needs no change. */
export function schemaOf(schema: JsonObject): JsonObject {
  let changed = false;
  const out: Record<string, Json | undefined> = {};
  for (const key in schema) {
    const value = schema[key];
    const name = FIRST.get(key) ?? key;
    if (OPENAPI_ONLY_MEMBERS.has(name) || (name === "type" && isUnspecified(value))) {
      changed = true;
      continue;
    }
    const converted = value === undefined ? value : wordOf(name, value);
    changed ||= converted !== value || name !== key;
    setOwnProperty(out, name, converted);
  }
  if (schema["nullable"] === true) withNull(out);
  return changed ? out : schema;
}

function wordOf(name: string, value: Json): Json {
  if (name === "type") return typeOf(value);
  if (SCHEMA_MEMBERS.has(name)) return isObject(value) ? schemaOf(value) : value;
  if (SCHEMA_LIST_MEMBERS.has(name))
    return Array.isArray(value) ? each(value as readonly Json[]) : value;
  if (SCHEMA_MAP_MEMBERS.has(name)) return isObject(value) ? byName(value) : value;
  if (INTEGER_MEMBERS.has(name) && typeof value === "string" && /^\d{1,15}$/.test(value))
    return Number(value);
  // Other members are unchanged. The OpenAPI format `enum` only states that the member `enum` is
  // present.
  return value;
}

/**
 * Converts a type: `STRING` becomes `string`. The default of the API's enum means that no type is
 * set, and JSON Schema has no name for it.
 */
function typeOf(value: Json): Json {
  if (typeof value === "string") return value.toLowerCase();
  return Array.isArray(value)
    ? (value as readonly Json[]).filter((one) => one !== UNSPECIFIED).map(typeOf)
    : value;
}

function each(all: readonly Json[]): Json {
  const converted = all.map((one) => (isObject(one) ? schemaOf(one) : one));
  return converted.every((one, i) => one === all[i]) ? all : converted;
}

function byName(all: JsonObject): Json {
  let changed = false;
  const out: Record<string, Json | undefined> = {};
  for (const name in all) {
    const value = all[name];
    const converted = isObject(value) ? schemaOf(value) : value;
    changed ||= converted !== value;
    setOwnProperty(out, name, converted);
  }
  return changed ? out : all;
}

function withNull(out: Record<string, Json | undefined>): void {
  const { type, enum: values } = out;
  if (typeof type === "string") out["type"] = [type, "null"];
  if (Array.isArray(values) && !values.includes(null))
    out["enum"] = [...(values as readonly Json[]), null];
}
