// Converts JSON Schema for models that support only the OpenAPI subset of `parameters` and
// `responseSchema`. These models reject any other keyword with an error. Keywords with an
// equivalent are converted. Constraints that must be dropped are reported. A schema that contains
// itself cannot be represented and is rejected.
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ExpansionBudget } from "./encoding-context.ts";
import { SchemaExpander } from "./schema-references.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";

/** Keywords with the same meaning in both. */
const SHARED_KEYWORDS = [
  "title",
  "description",
  "default",
  "example",
  "pattern",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "propertyOrdering",
] as const;

/** Keywords that do not constrain values, and keywords that are converted below. */
const HANDLED_KEYWORDS: ReadonlySet<string> = new Set([
  ...SHARED_KEYWORDS,
  ..."$schema $id $anchor $comment $defs definitions $ref examples deprecated readOnly writeOnly".split(
    " ",
  ),
  ..."type nullable format enum const properties required items anyOf oneOf allOf".split(" "),
  ..."exclusiveMinimum exclusiveMaximum".split(" "),
]);

const FORMATS: ReadonlySet<unknown> = new Set([
  "int32",
  "int64",
  "float",
  "double",
  "date-time",
  "enum",
]);

/**
 * Returns the converted schema.
 *
 * @param of Name of the place of the schema, for error messages.
 * @param lose Called when a constraint was dropped.
 */
export function toOpenApiSubset(
  root: JsonObject,
  of: string,
  purse: ExpansionBudget,
  lose: () => void,
): JsonObject {
  return convert(root, 0, new SchemaExpander(root, of, purse, lose));
}

const convert = (raw: Json, depth: number, s: SchemaExpander): JsonObject =>
  s.once(raw, depth, () => convertNode(raw, depth, s));

function convertNode(raw: Json, depth: number, s: SchemaExpander): JsonObject {
  if (raw === false) s.lose();
  s.part(depth);
  const node = s.expand(raw, depth);
  for (const word in node) {
    s.charge(1 + word.length);
    if (!HANDLED_KEYWORDS.has(word)) s.lose();
  }
  const out: Record<string, Json | undefined> = {};
  for (const word of SHARED_KEYWORDS) {
    const value = node[word];
    if (value === undefined) continue;
    s.charge(typeof value === "object" ? JSON.stringify(value).length : String(value).length);
    out[word] = value;
  }
  Object.assign(
    out,
    convertType(node, s),
    convertBounds(node, s),
    convertEnum(node, s),
    convertChoice(node, depth, s),
  );
  if (out["type"] === "array") out["items"] = convert(node["items"] ?? {}, depth + 1, s);
  Object.assign(out, convertMembers(node, depth, s));
  if (FORMATS.has(node["format"])) out["format"] = node["format"];
  else if (node["format"] !== undefined) s.lose();
  return omitUndefined(out);
}

/** Converts the type. Null becomes `nullable`, and several types become `anyOf`. */
function convertType(node: JsonObject, s: SchemaExpander): { [word: string]: Json } {
  const typeValue = node["type"];
  s.charge(2 * asList(typeValue).length);
  if (!Array.isArray(typeValue))
    return {
      ...(asText(typeValue) !== undefined && typeValue !== "null" && { type: typeValue as string }),
      ...((node["nullable"] === true || typeValue === "null") && { nullable: true }),
    };
  const types = (typeValue as readonly Json[]).filter((t) => t !== "null");
  return {
    ...(types.length === 1 && { type: types[0]! }),
    ...(types.length > 1 && { anyOf: types.map((type) => ({ type })) }),
    ...(types.length < typeValue.length && { nullable: true }),
  };
}

function convertBounds(node: JsonObject, s: SchemaExpander): { [word: string]: Json } {
  const out: Record<string, Json> = {};
  for (const [word, to, step] of [
    ["exclusiveMinimum", "minimum", 1],
    ["exclusiveMaximum", "maximum", -1],
  ] as const) {
    const bound = node[word];
    if (typeof bound !== "number") continue;
    if (node["type"] !== "integer") s.lose();
    out[to] = node["type"] === "integer" ? bound + step : bound;
  }
  return out;
}

/** Converts `enum` and `const`. Only strings can be enumerated in this subset. */
function convertEnum(node: JsonObject, s: SchemaExpander): { [word: string]: Json } {
  const enumValue = "const" in node ? [node["const"]!] : node["enum"];
  if (enumValue === undefined) return {};
  const values = asList(enumValue);
  for (const value of values) s.charge(typeof value === "string" ? 1 + value.length : 1);
  const words = values.filter((v) => v !== null);
  if (words.every((v) => typeof v === "string"))
    return {
      ...(words.length > 0 && { type: "string", enum: words }),
      ...(words.length < values.length && { nullable: true }),
    };
  s.lose();
  return {};
}

function convertChoice(
  node: JsonObject,
  depth: number,
  s: SchemaExpander,
): { [word: string]: Json } {
  const alternatives = node["anyOf"] ?? node["oneOf"];
  if (alternatives === undefined) return {};
  // `oneOf` requires that exactly one alternative matches, which `anyOf` cannot enforce.
  if (node["anyOf"] === undefined || node["oneOf"] !== undefined) s.lose();
  const all = asList(alternatives);
  s.charge(all.length);
  const some = all.filter((one) => asObject(one)?.["type"] !== "null");
  const nullable = some.length < all.length ? { nullable: true } : {};
  if (some.length === 1)
    return { ...convert(some[0]!, depth + 1, s), ...nullable } as { [word: string]: Json };
  return { anyOf: some.map((one) => convert(one, depth + 1, s)), ...nullable };
}

function convertMembers(
  node: JsonObject,
  depth: number,
  s: SchemaExpander,
): { [word: string]: Json } {
  const propertySchemas = asObject(node["properties"]);
  if (!propertySchemas) return {};
  const properties: Record<string, Json> = {};
  for (const name in propertySchemas) {
    s.charge(name.length);
    setOwnProperty(properties, name, convert(propertySchemas[name]!, depth + 1, s));
  }
  s.charge(asList(node["required"]).length);
  const required = asList(node["required"]).filter((name) =>
    Object.hasOwn(properties, String(name)),
  );
  return {
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  };
}
