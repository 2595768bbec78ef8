// The form that a client asks of an answer, as chat completions and responses both say it.
import type { ChatRequest, Json, JsonObject, Opt } from "../plugin/index.ts";
import { asBoolean, asObject, omitUndefined, asText } from "./json-values.ts";

/** `within`: where a wire says its schema. Undefined: a form that the common vocabulary has no word for. */
export function parseResponseFormat(
  raw: Opt<Json>,
  within: (format: JsonObject) => JsonObject,
): ChatRequest["output"]["format"] {
  const format = asObject(raw);
  switch (format?.["type"]) {
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema": {
      const schemaObject = within(format);
      return omitUndefined({
        type: "schema" as const,
        schema: asObject(schemaObject["schema"]) ?? {},
        name: asText(schemaObject["name"]),
        strict: asBoolean(schemaObject["strict"]),
        description: asText(schemaObject["description"]),
      });
    }
    default:
      return undefined;
  }
}
