// What a JSON value is, if it is that. Clients and upstreams send anything: every codec that reads a member asks here.
import { setOwnProperty } from "../lib/set-own-property.ts";
import { parseShallow } from "../lib/json/json-scanner.ts";
import type { Json, JsonObject } from "../model/values.ts";

export const isObject = (v: unknown): v is JsonObject =>
  typeof v === "object" && v !== null && !Array.isArray(v);
export const asObject = (v: unknown): JsonObject | undefined => (isObject(v) ? v : undefined);
export const asList = (v: unknown): readonly Json[] => (Array.isArray(v) ? (v as Json[]) : []);
export const asObjects = (v: unknown): readonly JsonObject[] => asList(v).filter(isObject);
export const asText = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);
/** JSON can spell numbers that are infinite here (`1e999`): those count for none. */
export const asNumber = (v: unknown): number | undefined =>
  typeof v === "number" && Number.isFinite(v) ? v : undefined;
/** No call has a billion tokens. Negative, fractional and absurd counts have been seen; they are not reports. */
const MAX_COUNT = 1e9;
export const asCount = (v: unknown): number | undefined => {
  const n = asNumber(v);
  return n !== undefined && Number.isInteger(n) && n >= 0 && n <= MAX_COUNT ? n : undefined;
};
/** A number as a form says it, where all is text. */
export const parseNumber = (v: unknown): number | undefined =>
  asNumber(typeof v === "string" && /^\s*-?\d{1,15}(?:\.\d{1,15})?\s*$/.test(v) ? Number(v) : v);
export const asBoolean = (v: unknown): boolean | undefined =>
  typeof v === "boolean" ? v : undefined;

/** As lax readers have it, and as a form says it, where all is text. */
export const isTruthyFlag = (v: unknown): boolean =>
  v === true || v === 1 || (typeof v === "string" && /^(?:true|1|on|yes|y|t)$/i.test(v));

/** The object that a text spells, if it spells one. */
export function parseObject(json: string): JsonObject | undefined {
  try {
    return asObject(parseShallow(json));
  } catch {
    return undefined;
  }
}

/** `{a: undefined}` says nothing on a wire but is a key in memory: what is absent shall not be there. */
export function omitUndefined<T extends object>(fields: T): T {
  const kept: Record<string, unknown> = {};
  for (const key in fields) if (fields[key] !== undefined) setOwnProperty(kept, key, fields[key]);
  return kept as T;
}

/** The same, or nothing when nothing is left. */
export function omitUndefinedOrNothing(fields: {
  readonly [key: string]: Json | undefined;
}): JsonObject | undefined {
  const kept = omitUndefined(fields) as JsonObject;
  for (const _ in kept) return kept;
  return undefined;
}

/** Nothing but these keys: only then does a codec know what the whole says. */
export function hasOnlyKeys(of: JsonObject, keys: readonly string[]): boolean {
  for (const key in of) if (of[key] !== undefined && !keys.includes(key)) return false;
  return true;
}
