// What a call is made with: a string in the model's own words everywhere else, an object on this wire.
import { parseShallow } from "../lib/json/json-scanner.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { isObject } from "./json-values.ts";

interface Source {
  source: string;
}
declare global {
  interface JSON {
    rawJSON(text: string): unknown;
  }
}

const LONG_INTEGER = /\d{16}/;

/**
 * JSON whose integers beyond 2^53 keep their digits when it is written again: ids of that size are everyday tool
 * arguments, and a gateway that rounds one has called the tool on another object.
 */
export function parseExactJson(text: string): Json {
  if (!LONG_INTEGER.test(text)) return parseShallow(text) as Json;
  return parseShallow(text, ((_key: string, value: unknown, context: Source) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context.source)
      ? JSON.rawJSON(context.source)
      : value) as (key: string, value: unknown) => unknown) as Json;
}

/** Arguments as an object: none are an empty one, and those that were encoded twice are opened twice. */
export function parseToolArguments(args: string): JsonObject | undefined {
  if (args.trim() === "") return {};
  try {
    let input = parseExactJson(args);
    if (typeof input === "string") input = parseExactJson(input);
    return isObject(input) ? input : undefined;
  } catch {
    return undefined;
  }
}
