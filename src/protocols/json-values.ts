// Reads JSON values by type. Clients and providers can send anything, so every codec reads members
// with these functions.
import { parseShallow } from "../lib/json/json-scanner.ts";
import { setOwnProperty } from "../lib/set-own-property.ts";
import type { Json, JsonObject } from "../model/values.ts";

export const isObject = (v: unknown): v is JsonObject =>
  typeof v === "object" && v !== null && !Array.isArray(v);

export const asObject = (v: unknown): JsonObject | undefined => (isObject(v) ? v : undefined);

export const asList = (v: unknown): readonly Json[] => (Array.isArray(v) ? (v as Json[]) : []);

export const asObjects = (v: unknown): readonly JsonObject[] => asList(v).filter(isObject);

export const asText = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);

/**
 * Returns a finite number. JSON can contain numbers that are infinite in JavaScript (`1e999`). They
 * count as missing.
 */
export const asNumber = (v: unknown): number | undefined =>
  typeof v === "number" && Number.isFinite(v) ? v : undefined;

/**
 * Upper limit of a plausible token count. Negative, fractional, and absurdly large counts occur in
 * provider responses and are ignored.
 */
const MAX_COUNT = 1e9;

export const asCount = (v: unknown): number | undefined => {
  const n = asNumber(v);
  return n !== undefined && Number.isInteger(n) && n >= 0 && n <= MAX_COUNT ? n : undefined;
};

/** Returns a number, or the number that a text contains, as in form fields. */
export const parseNumber = (v: unknown): number | undefined =>
  asNumber(typeof v === "string" && /^\s*-?\d{1,15}(?:\.\d{1,15})?\s*$/.test(v) ? Number(v) : v);

export const asBoolean = (v: unknown): boolean | undefined =>
  typeof v === "boolean" ? v : undefined;

/**
 * Whether a value is true by lax rules: form fields contain only text, and some readers accept 1.
 */
export const isTruthyFlag = (v: unknown): boolean =>
  v === true || v === 1 || (typeof v === "string" && /^(?:true|1|on|yes|y|t)$/i.test(v));

/**
 * Returns the object that a JSON text contains. Returns undefined for any other value and for
 * invalid JSON.
 */
export function parseObject(json: string): JsonObject | undefined {
  try {
    return asObject(parseShallow(json));
  } catch {
    return undefined;
  }
}

/**
 * Returns a copy without undefined members. JSON omits `{a: undefined}`, but in memory the key
 * exists.
 */
export function omitUndefined<T extends object>(fields: T): T {
  const kept: Record<string, unknown> = {};
  for (const key in fields) if (fields[key] !== undefined) setOwnProperty(kept, key, fields[key]);
  return kept as T;
}

/** Returns a copy without undefined members, or undefined if no member is left. */
export function omitUndefinedOrNothing(fields: {
  readonly [key: string]: Json | undefined;
}): JsonObject | undefined {
  const kept = omitUndefined(fields) as JsonObject;
  for (const _ in kept) return kept;
  return undefined;
}

/** Whether an object has only these keys, so that a codec understands all of it. */
export function hasOnlyKeys(of: JsonObject, keys: readonly string[]): boolean {
  for (const key in of) if (of[key] !== undefined && !keys.includes(key)) return false;
  return true;
}

/**
 * Returns the table entry for an untrusted key. Inherited keys such as "constructor" and
 * "__proto__" have no entry.
 */
export const ownEntry = <T>(table: { readonly [word: string]: T }, word: unknown): T | undefined =>
  typeof word === "string" && Object.hasOwn(table, word) ? table[word] : undefined;
