// Parameters that chat protocols share: response format, prompt cache, and stop sequences.
import { fail } from "../model/error.ts";
import type { ChatRequest, Json, JsonObject, Opt } from "../plugin/index.ts";
import type { CallContext } from "../plugin/protocol.ts";
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

/** Returns the settings of the prompt cache. */
export function parsePromptCache(fields: JsonObject): ChatRequest["cache"] {
  const key = asText(fields["prompt_cache_key"]);
  const retention = asText(fields["prompt_cache_retention"]);
  return key === undefined && retention === undefined
    ? undefined
    : omitUndefined({ key, retention });
}

// Handles stop sequences that exceed the number that a protocol supports.

/** Leaves these stop sequences to the host. Throws if the host cannot emulate them. */
export function delegateStopSequences(
  texts: readonly string[],
  of: Pick<CallContext, "emulateStopSequences">,
): void {
  if (texts.length === 0) return;
  if (of.emulateStopSequences) of.emulateStopSequences(texts);
  else
    fail("unsupported", "This model's protocol does not support this many stop sequences.", {
      param: "stop",
      code: "unsupported_parameter",
    });
}
