// Creates the smallest value that a JSON Schema accepts, as far as possible without guessing.
// Patterns are not supported.
import type { Json, JsonObject } from "tollgate/plugin";

const MAX_DEPTH = 12;

const FORMATS: Readonly<Record<string, string>> = {
  "date-time": "2026-01-01T00:00:00Z",
  date: "2026-01-01",
  time: "00:00:00Z",
  duration: "P1D",
  email: "demo@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  "uri-reference": "/",
  url: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

export function schemaExample(schema: Json | undefined): Json {
  return value(schema, isObject(schema) ? schema : {}, 0);
}

function value(of: Json | undefined, root: JsonObject, depth: number): Json {
  if (!isObject(of) || depth > MAX_DEPTH) return {};
  const schema = whole(of, root, 0);
  if (schema["const"] !== undefined) return schema["const"];
  const [first] = list(schema["enum"]);
  if (first !== undefined) return first;
  switch (typeOf(schema)) {
    case "object":
      return object(schema, root, depth);
    case "array":
      return array(schema, root, depth);
    case "string":
      return string(schema);
    case "integer":
    case "number":
      return number(schema);
    case "boolean":
      return false;
    default:
      return null;
  }
}

/**
 * Returns the schema with references resolved, `allOf` merged, and the first alternative chosen.
 */
function whole(schema: JsonObject, root: JsonObject, depth: number): JsonObject {
  if (depth > MAX_DEPTH) return {};
  const { $ref, allOf, anyOf, oneOf, ...own } = schema;
  const parts = [
    ...(typeof $ref === "string" ? [referred($ref, root)] : []),
    ...list(allOf),
    ...list(anyOf).slice(0, 1),
    ...list(oneOf).slice(0, 1),
  ].map((part) => (isObject(part) ? whole(part, root, depth + 1) : {}));
  return parts.reduce<JsonObject>(both, own);
}

function both(a: JsonObject, b: JsonObject): JsonObject {
  const properties = { ...(a["properties"] as JsonObject), ...(b["properties"] as JsonObject) };
  const required = [...new Set([...list(a["required"]), ...list(b["required"])])];
  return {
    ...a,
    ...b,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  };
}

/**
 * Resolves a reference within the schema, such as "#/$defs/name". Other references result in an
 * empty schema.
 */
function referred(ref: string, root: JsonObject): Json {
  if (!ref.startsWith("#")) return {};
  let at: Json = root;
  for (const part of ref.slice(2).split("/").filter(Boolean)) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    at = (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined) ?? {};
  }
  return at;
}

function typeOf(schema: JsonObject): string {
  const { type } = schema;
  if (typeof type === "string") return type;
  const [first] = list(type).filter((t) => t !== "null");
  if (typeof first === "string") return first;
  if (schema["properties"] || schema["required"]) return "object";
  if (schema["items"] || schema["prefixItems"]) return "array";
  if (schema["minLength"] || schema["format"]) return "string";
  if (["minimum", "maximum", "multipleOf"].some((key) => schema[key] !== undefined))
    return "number";
  return type === undefined ? "object" : "null";
}

function object(schema: JsonObject, root: JsonObject, depth: number): JsonObject {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const made: Record<string, Json> = {};
  for (const name of list(schema["required"]))
    if (typeof name === "string")
      // Defines `__proto__` as a normal property instead of setting the prototype.
      Object.defineProperty(made, name, {
        value: value(Object.hasOwn(properties, name) ? properties[name] : {}, root, depth + 1),
        enumerable: true,
        configurable: true,
        writable: true,
      });
  return made;
}

function array(schema: JsonObject, root: JsonObject, depth: number): Json {
  const least = Math.min(Number(schema["minItems"] ?? 0), 100);
  const firsts = list(
    schema["prefixItems"] ?? (Array.isArray(schema["items"]) ? schema["items"] : []),
  );
  return Array.from({ length: least }, (_, i) =>
    value(firsts[i] ?? schema["items"], root, depth + 1),
  );
}

function string(schema: JsonObject): string {
  const format = FORMATS[String(schema["format"])];
  if (format !== undefined) return format;
  const least = Number(schema["minLength"] ?? 0);
  const most = Number(schema["maxLength"] ?? Infinity);
  return "demo".slice(0, Math.max(0, most)).padEnd(Math.min(least, 10_000), "o");
}

function number(schema: JsonObject): number {
  const step = Number(schema["multipleOf"] ?? (schema["type"] === "integer" ? 1 : 0));
  const open = schema["exclusiveMinimum"];
  const above =
    typeof open === "number" ? open : open === true ? Number(schema["minimum"]) : -Infinity;
  const least = Math.max(above, Number(schema["minimum"] ?? -Infinity));
  const top = schema["exclusiveMaximum"];
  const below = typeof top === "number" ? top : top === true ? Number(schema["maximum"]) : Infinity;
  const most = Math.min(below, Number(schema["maximum"] ?? Infinity));
  const fits = (n: number) => n >= least && n > above && n <= most && n < below;
  const up = Math.ceil(Math.max(least, -1e15) / step) * step;
  const down = Math.floor(Math.min(most, 1e15) / step) * step;
  const middle = (Math.max(least, most - 1) + most) / 2;
  const options =
    step > 0
      ? [0, up, up + step, down, down - step]
      : [0, least, most, least + 1, most - 1, middle];
  return options.find((n) => Number.isFinite(n) && fits(n)) ?? 0;
}

const isObject = (v: unknown): v is JsonObject =>
  typeof v === "object" && v !== null && !Array.isArray(v);
const list = (v: unknown): readonly Json[] => (Array.isArray(v) ? (v as Json[]) : []);
