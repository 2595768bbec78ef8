// JSON Schema for models that read only a part of it: the OpenAPI subset of `parameters` and `responseSchema`, where any
// other word is an error. What means the same in other words is rewritten; what must be given up is declared; what
// cannot be said at all, a schema that contains itself, is refused.
import type { Json, JsonObject } from "../../model/values.ts";
import { unsayable } from "./encoding.ts";
import { list, object, present, text } from "./words.ts";

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

/** `lose`: something had to be given up. */
export function subset(root: JsonObject, lose: () => void): JsonObject {
  const at: Place = { root, lose, left: { nodes: MOST_NODES } };
  finite(root, at, new Map());
  return convert(root, at);
}

/** References multiply: a few lines can spell more nodes than there is memory. */
const MOST_NODES = 10_000;

interface Place {
  root: JsonObject;
  lose: () => void;
  left: { nodes: number };
}

/** Throws where following references would never end. `seen`: whether one has been followed to its end. */
function finite(value: Json, at: Place, seen: Map<string, boolean>): void {
  if (Array.isArray(value)) for (const one of value as readonly Json[]) finite(one, at, seen);
  const node = object(value);
  if (!node) return;
  const ref = text(node["$ref"]);
  if (ref !== undefined && seen.get(ref) !== true) {
    if (seen.has(ref)) unsayable("A schema that contains itself", "tools", "unsupported_schema");
    seen.set(ref, false);
    finite(followed(ref, at), at, seen);
    seen.set(ref, true);
  }
  for (const word in node)
    if (word !== "$defs" && word !== "definitions") finite(node[word]!, at, seen);
}

function followed(ref: string, { root }: Place): Json {
  let found: Json | undefined = root;
  for (const step of ref.replace(/^#\/?/, "").split("/"))
    if (step !== "")
      found = object(found)?.[decodeURIComponent(step).replace(/~1/g, "/").replace(/~0/g, "~")];
  return ref.startsWith("#") && found !== undefined
    ? found
    : unsayable(`A schema with the reference ${ref}`, "tools", "unsupported_schema");
}

function convert(raw: Json, at: Place): JsonObject {
  if (raw === false) at.lose();
  if (at.left.nodes-- === 0) unsayable("A schema of so many parts", "tools", "unsupported_schema");
  const node = flat(raw, at);
  for (const word in node) if (!READ.has(word)) at.lose();
  const out: Record<string, Json | undefined> = {};
  for (const word of SAME) out[word] = node[word];
  Object.assign(out, typed(node), limits(node, at), listed(node, at), choice(node, at));
  if (out["type"] === "array") out["items"] = convert(node["items"] ?? {}, at);
  Object.assign(out, members(node, at));
  if (FORMATS.has(node["format"])) out["format"] = node["format"];
  else if (node["format"] !== undefined) at.lose();
  return present(out);
}

/** Without references and without `allOf`: what they lead to stands in their place. */
function flat(raw: Json, at: Place): JsonObject {
  const node = object(raw) ?? {};
  const ref = text(node["$ref"]);
  if (ref !== undefined) {
    const { $ref: _ref, ...beside } = node;
    return flat(merged([flat(followed(ref, at), at), beside]), at);
  }
  if (node["allOf"] === undefined) return node;
  const { allOf, ...beside } = node;
  return merged([...list(allOf).map((one) => flat(one, at)), beside]);
}

/** All of them at once: members and requirements add up, of single words the last one stands. */
function merged(all: readonly Json[]): JsonObject {
  const out: Record<string, Json> = {};
  for (const raw of all)
    for (const [word, value] of Object.entries(object(raw) ?? {})) {
      if (value === undefined) continue;
      const before = out[word];
      if (word === "properties") out[word] = { ...object(before), ...object(value) };
      else if (word === "required") out[word] = [...new Set([...list(before), ...list(value)])];
      else out[word] = value;
    }
  return out;
}

/** One type; null becomes a mark, and several types a choice. */
function typed(node: JsonObject): { [word: string]: Json } {
  const said = node["type"];
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

function limits(node: JsonObject, at: Place): { [word: string]: Json } {
  const out: Record<string, Json> = {};
  for (const [word, to, step] of [
    ["exclusiveMinimum", "minimum", 1],
    ["exclusiveMaximum", "maximum", -1],
  ] as const) {
    const bound = node[word];
    if (typeof bound !== "number") continue;
    if (node["type"] !== "integer") at.lose();
    out[to] = node["type"] === "integer" ? bound + step : bound;
  }
  return out;
}

/** Only texts can be listed here. */
function listed(node: JsonObject, at: Place): { [word: string]: Json } {
  const said = "const" in node ? [node["const"]!] : node["enum"];
  if (said === undefined) return {};
  const values = list(said);
  const words = values.filter((v) => v !== null);
  if (words.every((v) => typeof v === "string"))
    return {
      ...(words.length > 0 && { type: "string", enum: words }),
      ...(words.length < values.length && { nullable: true }),
    };
  at.lose();
  return {};
}

function choice(node: JsonObject, at: Place): { [word: string]: Json } {
  const said = node["anyOf"] ?? node["oneOf"];
  if (said === undefined) return {};
  // One of them and no other: that can only be hoped for.
  if (node["anyOf"] === undefined || node["oneOf"] !== undefined) at.lose();
  const all = list(said);
  const some = all.filter((one) => object(one)?.["type"] !== "null");
  const nullable = some.length < all.length ? { nullable: true } : {};
  if (some.length === 1)
    return { ...convert(some[0]!, at), ...nullable } as { [word: string]: Json };
  return { anyOf: some.map((one) => convert(one, at)), ...nullable };
}

function members(node: JsonObject, at: Place): { [word: string]: Json } {
  const said = object(node["properties"]);
  if (!said) return {};
  const properties: Record<string, Json> = {};
  for (const name in said) properties[name] = convert(said[name]!, at);
  const required = list(node["required"]).filter((name) => Object.hasOwn(properties, String(name)));
  return {
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  };
}
