// Arguments and names of tool calls, in all chat protocols.
import { createHash } from "node:crypto";
import { parseShallow } from "../lib/json/json-scanner.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { isObject } from "./json-values.ts";

/**
 * Parses tool call arguments for protocols in which they are an object. Elsewhere they are a string
 * that the model wrote.
 */
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

/**
 * Converts names and IDs that a protocol does not allow. Clients replay their history, so a name
 * must be converted the same way in every later request. These functions therefore depend only on
 * the name, never on a counter or a table.
 */
const ILLEGAL = /[^a-zA-Z0-9_-]/g;

const LEGAL = /^[a-zA-Z0-9_-]*$/;

const hash8 = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 8);

/**
 * Returns the name if the protocol allows it, else a legal name that ends in a hash of the
 * original, so that two names never collide.
 */
export function fitName(name: string, max: number): string {
  if (name !== "" && name.length <= max && LEGAL.test(name)) return name;
  return `${name.slice(0, max - 9).replace(ILLEGAL, "_")}_${hash8(name)}`;
}

/**
 * Maximum length of a name to convert. Longer than any name that a vendor documents. Replacing
 * letters in client text is slow, so longer names are returned unchanged.
 */
const MAX_NAME = 40;

/** Converts `googleSearch` to `google_search`. */
export const toSnakeCase = (name: string): string =>
  name.length > MAX_NAME ? name : name.replace(/[A-Z]/g, "_$&").toLowerCase();

/**
 * Returns a function that maps a name produced by `fitName`, for any length limit, back to the
 * declared name. Other names are returned unchanged. The declared names are read only once.
 */
export function createNameRestorer(declared: () => Iterable<string>): (fitted: string) => string {
  let all: Set<string> | undefined;
  let byHash: Map<string, string> | undefined;
  return (fitted) => {
    const hash = /_([0-9a-f]{8})$/.exec(fitted)?.[1];
    if (hash === undefined) return fitted;
    all ??= new Set(declared());
    if (all.has(fitted)) return fitted;
    byHash ??= new Map(Array.from(all, (name) => [hash8(name), name]));
    return byHash.get(hash) ?? fitted;
  };
}

/** Returns tools by name. If two tools have the same name, the first is used. */
export function indexByName<T extends { readonly name: string }>(
  tools: readonly T[],
): Map<string, T> {
  const found = new Map<string, T>();
  for (const tool of tools) if (!found.has(tool.name)) found.set(tool.name, tool);
  return found;
}
