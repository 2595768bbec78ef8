// Parses tool call arguments for protocols in which they are an object. Elsewhere they are a string
// that the model wrote.
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
 * Parses JSON so that integers beyond 2^53 keep their digits when they are serialized again. IDs of
 * that size are common tool arguments. If the gateway rounded one, the tool would act on a
 * different object.
 */
export function parseExactJson(text: string): Json {
  if (!LONG_INTEGER.test(text)) return parseShallow(text) as Json;
  return parseShallow(text, ((_key: string, value: unknown, context: Source) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context.source)
      ? JSON.rawJSON(context.source)
      : value) as (key: string, value: unknown) => unknown) as Json;
}

/**
 * Parses tool call arguments into an object. Empty text becomes `{}`. Doubly encoded arguments are
 * decoded twice. Returns undefined if the result is not an object.
 */
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
