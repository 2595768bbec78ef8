// Parses the response format that a client requests. Chat completions and responses share this
// form.
import type { ChatRequest, Json, JsonObject, Opt } from "../plugin/index.ts";
import { asBoolean, asObject, omitUndefined, asText } from "./json-values.ts";

/**
 * Returns the requested format. Returns undefined for a format that the common form cannot
 * represent.
 *
 * @param within Returns the object that contains the schema in the client's protocol.
 */
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
