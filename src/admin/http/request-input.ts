// Reads the input of an admin API request: the JSON body, or the query parameters, which are
// converted according to the command's schema.
import type { IncomingMessage } from "node:http";
import type { Schema } from "../../config/schema-dialect.ts";
import { toSentence } from "../../config/schema/schema-errors.ts";
import { fail } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import { checkInput } from "../dispatch/command-input.ts";

const MAX_BODY_BYTES = 1 << 20;
/** Maximum number of query parameters. */
const MAX_QUERY_PARAMS = 200;

export async function readJsonBody(req: IncomingMessage): Promise<JsonObject> {
  const [type = ""] = (req.headers["content-type"] ?? "").split(";", 1);
  if (type.trim().toLowerCase() !== "application/json")
    fail("invalid", "Send the input as JSON, with content-type: application/json.", {
      code: "media_type",
    });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES)
      fail("too_large", "The input must be at most 1 MiB.", { code: "body_too_large" });
    chunks.push(chunk as Buffer);
  }
  const input = parseJson(Buffer.concat(chunks).toString());
  if (typeof input === "object" && input !== null && !Array.isArray(input))
    return input as JsonObject;
  return fail("invalid", "The input must be a JSON object.", { code: "bad_input" });
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text || "{}") as Json;
  } catch {
    return fail("invalid", "The input is not valid JSON.", { code: "bad_input" });
  }
}

/**
 * Parses query parameters. A list can be repeated parameters or comma-separated values. Other types
 * than text and lists are JSON.
 */
export function parseQueryInput(schema: Schema, query: string): JsonObject {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>;
  const params = [...new URLSearchParams(query)];
  if (params.length > MAX_QUERY_PARAMS)
    fail("invalid", `The URL can have at most ${MAX_QUERY_PARAMS} query parameters.`, {
      code: "bad_input",
    });
  const input: Record<string, Json> = {};
  for (const [name, text] of params) {
    const type = Object.hasOwn(properties, name) ? properties[name]!["type"] : undefined;
    if (type === "array") input[name] = [...((input[name] ?? []) as Json[]), ...text.split(",")];
    else if (name in input)
      fail("invalid", `/${name}: duplicate parameter.`, { code: "bad_input", param: `/${name}` });
    else input[name] = type === "object" ? parseJson(text) : text;
  }
  const { value, errors } = checkInput(schema, input, () => true);
  const [first] = errors;
  return first
    ? fail("invalid", errors.map(toSentence).join("; "), {
        code: "bad_input",
        param: first.pointer,
      })
    : (value as JsonObject);
}
