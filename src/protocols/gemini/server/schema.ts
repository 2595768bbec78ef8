// A schema in the words of OpenAPI, as this wire has it, in those of JSON Schema: what other wires read.
import { put } from "../../../lib/member.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject } from "../../json.ts";
import { secondNames } from "../words.ts";

/** Members that hold a schema, lists of schemas, and schemas by name. */
const ONE = new Set([
  "items",
  "additionalProperties",
  "not",
  "contains",
  "propertyNames",
  "if",
  "then",
  "else",
]);
const SEVERAL = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const NAMED = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);

/** Whole numbers, which this wire writes as text too. */
const COUNTS = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);

const FIRST: ReadonlyMap<string, string> = secondNames([
  ...SEVERAL,
  ...COUNTS,
  "additionalProperties",
  "propertyOrdering",
]);

/** What only this wire has: an order of members, and a word for what may be null. */
const OURS = new Set(["propertyOrdering", "nullable"]);

/** The same object where it is JSON Schema already. */
export function schemaOf(schema: JsonObject): JsonObject {
  let changed = false;
  const out: Record<string, Json | undefined> = {};
  for (const key in schema) {
    const value = schema[key];
    const name = FIRST.get(key) ?? key;
    if (OURS.has(name)) {
      changed = true;
      continue;
    }
    const said = value === undefined ? value : wordOf(name, value);
    changed ||= said !== value || name !== key;
    put(out, name, said);
  }
  if (schema["nullable"] === true) withNull(out);
  return changed ? out : schema;
}

function wordOf(name: string, value: Json): Json {
  if (name === "type") return typeOf(value);
  if (ONE.has(name)) return isObject(value) ? schemaOf(value) : value;
  if (SEVERAL.has(name)) return Array.isArray(value) ? each(value as readonly Json[]) : value;
  if (NAMED.has(name)) return isObject(value) ? byName(value) : value;
  if (COUNTS.has(name) && typeof value === "string" && /^\d{1,15}$/.test(value))
    return Number(value);
  // It says that `enum` is there.
  return value;
}

/** STRING is string; a type that was left unspecified is anything. */
function typeOf(value: Json): Json {
  if (typeof value === "string") return value.toLowerCase();
  return Array.isArray(value) ? (value as readonly Json[]).map(typeOf) : value;
}

function each(all: readonly Json[]): Json {
  const said = all.map((one) => (isObject(one) ? schemaOf(one) : one));
  return said.every((one, i) => one === all[i]) ? all : said;
}

function byName(all: JsonObject): Json {
  let changed = false;
  const out: Record<string, Json | undefined> = {};
  for (const name in all) {
    const value = all[name];
    const said = isObject(value) ? schemaOf(value) : value;
    changed ||= said !== value;
    put(out, name, said);
  }
  return changed ? out : all;
}

function withNull(out: Record<string, Json | undefined>): void {
  const { type, enum: values } = out;
  if (typeof type === "string") out["type"] = [type, "null"];
  if (Array.isArray(values) && !values.includes(null))
    out["enum"] = [...(values as readonly Json[]), null];
}
