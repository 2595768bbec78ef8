// The form that a client asks of an answer, as chat completions and responses both say it.
import type { ChatRequest, Json, JsonObject, Opt } from "../plugin/index.ts";
import { flag, object, present, text } from "./json.ts";

/** `within`: where a wire says its schema. Undefined: a form that the common vocabulary has no word for. */
export function answerFormat(
  raw: Opt<Json>,
  within: (format: JsonObject) => JsonObject,
): ChatRequest["output"]["format"] {
  const format = object(raw);
  switch (format?.["type"]) {
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema": {
      const said = within(format);
      return present({
        type: "schema" as const,
        schema: object(said["schema"]) ?? {},
        name: text(said["name"]),
        strict: flag(said["strict"]),
        description: text(said["description"]),
      });
    }
    default:
      return undefined;
  }
}
