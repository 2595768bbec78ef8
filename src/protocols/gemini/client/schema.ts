// JSON Schema for models that read only a part of it: the OpenAPI subset of `parameters` and `responseSchema`, where any
// other word is an error. What means the same in other words is rewritten; what must be given up is declared; what
// cannot be said at all, a schema that contains itself, is refused.
import { put } from "../../../lib/member.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { Purse } from "./encoding.ts";
import { SchemaSpelling } from "./references.ts";
import { list, object, present, text } from "../../json.ts";

/** Words that mean here what they mean there. */
const SAME = [
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

/** Words that say nothing about what is valid, and words that are read below. */
const READ: ReadonlySet<string> = new Set([
  ...SAME,
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

/** `lose`: something had to be given up. `of`: where the schema stands, by name. */
export function subset(root: JsonObject, of: string, purse: Purse, lose: () => void): JsonObject {
  return convert(root, 0, new SchemaSpelling(root, of, purse, lose));
}

const convert = (raw: Json, depth: number, s: SchemaSpelling): JsonObject =>
  s.once(raw, depth, () => converted(raw, depth, s));

function converted(raw: Json, depth: number, s: SchemaSpelling): JsonObject {
  if (raw === false) s.lose();
  s.part(depth);
  const node = s.flat(raw, depth);
  for (const word in node) {
    s.pay(1 + word.length);
    if (!READ.has(word)) s.lose();
  }
  const out: Record<string, Json | undefined> = {};
  for (const word of SAME) {
    const value = node[word];
    if (value === undefined) continue;
    s.pay(typeof value === "object" ? JSON.stringify(value).length : String(value).length);
    out[word] = value;
  }
  Object.assign(out, typed(node, s), limits(node, s), listed(node, s), choice(node, depth, s));
  if (out["type"] === "array") out["items"] = convert(node["items"] ?? {}, depth + 1, s);
  Object.assign(out, members(node, depth, s));
  if (FORMATS.has(node["format"])) out["format"] = node["format"];
  else if (node["format"] !== undefined) s.lose();
  return present(out);
}

/** One type; null becomes a mark, and several types a choice. */
function typed(node: JsonObject, s: SchemaSpelling): { [word: string]: Json } {
  const said = node["type"];
  s.pay(2 * list(said).length);
  if (!Array.isArray(said))
    return {
      ...(text(said) !== undefined && said !== "null" && { type: said as string }),
      ...((node["nullable"] === true || said === "null") && { nullable: true }),
    };
  const types = (said as readonly Json[]).filter((t) => t !== "null");
  return {
    ...(types.length === 1 && { type: types[0]! }),
    ...(types.length > 1 && { anyOf: types.map((type) => ({ type })) }),
    ...(types.length < said.length && { nullable: true }),
  };
}

function limits(node: JsonObject, s: SchemaSpelling): { [word: string]: Json } {
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

/** Only texts can be listed here. */
function listed(node: JsonObject, s: SchemaSpelling): { [word: string]: Json } {
  const said = "const" in node ? [node["const"]!] : node["enum"];
  if (said === undefined) return {};
  const values = list(said);
  for (const value of values) s.pay(typeof value === "string" ? 1 + value.length : 1);
  const words = values.filter((v) => v !== null);
  if (words.every((v) => typeof v === "string"))
    return {
      ...(words.length > 0 && { type: "string", enum: words }),
      ...(words.length < values.length && { nullable: true }),
    };
  s.lose();
  return {};
}

function choice(node: JsonObject, depth: number, s: SchemaSpelling): { [word: string]: Json } {
  const said = node["anyOf"] ?? node["oneOf"];
  if (said === undefined) return {};
  // One of them and no other: that can only be hoped for.
  if (node["anyOf"] === undefined || node["oneOf"] !== undefined) s.lose();
  const all = list(said);
  s.pay(all.length);
  const some = all.filter((one) => object(one)?.["type"] !== "null");
  const nullable = some.length < all.length ? { nullable: true } : {};
  if (some.length === 1)
    return { ...convert(some[0]!, depth + 1, s), ...nullable } as { [word: string]: Json };
  return { anyOf: some.map((one) => convert(one, depth + 1, s)), ...nullable };
}

function members(node: JsonObject, depth: number, s: SchemaSpelling): { [word: string]: Json } {
  const said = object(node["properties"]);
  if (!said) return {};
  const properties: Record<string, Json> = {};
  for (const name in said) {
    s.pay(name.length);
    put(properties, name, convert(said[name]!, depth + 1, s));
  }
  s.pay(list(node["required"]).length);
  const required = list(node["required"]).filter((name) => Object.hasOwn(properties, String(name)));
  return {
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  };
}
