// Reads JSON values by type. Values of other types are ignored, because an upstream can send any
// value.
import type { Json, JsonObject, Opt } from "tollgate/plugin";
import { parseExactJson } from "tollgate/protocols/codec";

export const isObject = (v: unknown): v is JsonObject =>
  typeof v === "object" && v !== null && !Array.isArray(v);
export const objectOf = (v: unknown): JsonObject | undefined => (isObject(v) ? v : undefined);
export const listOf = (v: unknown): readonly Json[] => (Array.isArray(v) ? (v as Json[]) : []);
export const textOf = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);

/** Largest plausible count. Larger values are treated as missing. */
const MOST = 1e9;
export const countOf = (v: unknown): number | undefined =>
  Number.isSafeInteger(v) && (v as number) >= 0 && (v as number) <= MOST
    ? (v as number)
    : undefined;

/** Omits undefined fields. Returns undefined if no field is left. */
export function some(fields: { readonly [name: string]: Opt<Json> }): JsonObject | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  return kept.length > 0 ? (Object.fromEntries(kept) as JsonObject) : undefined;
}

/** Parses bytes as a JSON object, or returns undefined. Integers of any size keep all digits. */
export function parsed(bytes: Buffer): JsonObject | undefined {
  try {
    return objectOf(parseExactJson(bytes.toString()));
  } catch {
    return undefined;
  }
}
