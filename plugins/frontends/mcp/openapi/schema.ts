// Converts a schema of an OpenAPI document into a JSON Schema without references, for a tool's input.
import type { Json, JsonObject } from "tollgate/plugin";
import { isObject, type Located, type OpenApiDocument } from "./document.ts";

/** Maximum nesting of a tool's schema. */
const MAX_DEPTH = 32;
/** Maximum number of schemas in a tool's schema. */
const MAX_SCHEMAS = 2_000;
/** Maximum length of a tool's schema in characters of JSON. */
const MAX_SCHEMA_LENGTH = 131_072;

/** Keywords that are copied. Other keywords, such as examples, are of no use to a model. */
const PLAIN_KEYWORDS = [
  "title",
  "description",
  "type",
  "format",
  "enum",
  "const",
  "default",
  "pattern",
  "multipleOf",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "minContains",
  "maxContains",
  "dependentRequired",
];
const SCHEMA_KEYWORDS = ["items", "additionalProperties", "not", "contains", "propertyNames"];
const LIST_KEYWORDS = ["allOf", "anyOf", "oneOf", "prefixItems"];

/** Converts the schemas of one tool, within common bounds. */
export class SchemaConverter {
  readonly #document: OpenApiDocument;
  #count = 0;

  constructor(document: OpenApiDocument) {
    this.#document = document;
  }

  /**
   * Returns the schema without references. A schema that contains itself is replaced by one that
   * accepts any value. Throws a `DocumentError` if the result is too large.
   */
  convert(at: Located): JsonObject {
    const converted = this.#convert(at, []);
    if (JSON.stringify(converted).length > MAX_SCHEMA_LENGTH)
      throw this.#document.error(at.path, `is larger than ${MAX_SCHEMA_LENGTH} characters`);
    return isObject(converted) ? converted : {};
  }

  /** @param open Positions of the schemas that contain this one. */
  #convert(from: Located, open: readonly string[]): Json {
    if (typeof from.value === "boolean") return from.value;
    const at = this.#document.resolve(from);
    if (!isObject(at.value)) throw this.#document.error(at.path, "must be a schema");
    const position = JSON.stringify(at.path);
    const siblings = from.value as JsonObject;
    if (open.includes(position))
      return { description: `Nested ${String(at.path.at(-1))}, of the same form` };
    if (open.length >= MAX_DEPTH)
      throw this.#document.error(at.path, `is nested more than ${MAX_DEPTH} levels deep`);
    if (++this.#count > MAX_SCHEMAS)
      throw this.#document.error(
        at.path,
        `the operation has more than ${MAX_SCHEMAS} schemas; leave it out with \`exclude\``,
      );
    const converted = this.#convertObject(at, [...open, position]);
    const described = siblings["description"];
    return typeof described === "string" ? { ...converted, description: described } : converted;
  }

  #convertObject(at: Located, open: readonly string[]): JsonObject {
    const schema = at.value as JsonObject;
    const result: Record<string, Json> = {};
    for (const name of PLAIN_KEYWORDS)
      if (Object.hasOwn(schema, name)) result[name] = schema[name]!;
    for (const name of SCHEMA_KEYWORDS) {
      const member = this.#document.member(at, name);
      if (member) result[name] = this.#convert(member, open);
    }
    for (const name of LIST_KEYWORDS) {
      const list = this.#document.member(at, name);
      if (list && Array.isArray(list.value))
        result[name] = list.value.map((value, i) =>
          this.#convert({ value, path: [...list.path, i] }, open),
        );
    }
    this.#convertProperties(at, open, result);
    if (this.#document.version === "3.0") toNewerKeywords(schema, result);
    return result;
  }

  /** Converts the properties that a client may send: those that are not read-only. */
  #convertProperties(at: Located, open: readonly string[], result: Record<string, Json>): void {
    const properties = this.#document.member(at, "properties");
    const readOnly = new Set<string>();
    if (properties && isObject(properties.value)) {
      const converted: [string, Json][] = [];
      for (const name of Object.keys(properties.value)) {
        const property = this.#document.member(properties, name)!;
        const { value } = this.#document.resolve(property);
        if (isObject(value) && value["readOnly"] === true) readOnly.add(name);
        else converted.push([name, this.#convert(property, open)]);
      }
      result["properties"] = Object.fromEntries(converted);
    }
    const required = (at.value as JsonObject)["required"];
    if (Array.isArray(required)) {
      const left = required.filter((name) => typeof name === "string" && !readOnly.has(name));
      if (left.length > 0) result["required"] = left;
    }
  }
}

/** Replaces keywords of OpenAPI 3.0 by those of JSON Schema. */
function toNewerKeywords(schema: JsonObject, result: Record<string, Json>): void {
  for (const [exclusive, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (typeof result[exclusive] !== "boolean") continue;
    const limit = result[bound];
    if (result[exclusive] === true && limit !== undefined) {
      result[exclusive] = limit;
      delete result[bound];
    } else delete result[exclusive];
  }
  if (schema["nullable"] !== true) return;
  if (typeof result["type"] === "string") result["type"] = [result["type"], "null"];
  if (Array.isArray(result["enum"]) && !result["enum"].includes(null))
    result["enum"] = [...result["enum"], null];
}
