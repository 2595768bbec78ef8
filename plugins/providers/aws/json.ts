// What a JSON value is, if it is that: an upstream sends anything.
import type { Json, JsonObject, Opt } from "tollgate/plugin";
import { parseExactJson } from "tollgate/protocols/codec";

export const isObject = (v: unknown): v is JsonObject =>
  typeof v === "object" && v !== null && !Array.isArray(v);
export const objectOf = (v: unknown): JsonObject | undefined => (isObject(v) ? v : undefined);
export const listOf = (v: unknown): readonly Json[] => (Array.isArray(v) ? (v as Json[]) : []);
export const textOf = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);

/** No call has a billion of anything: what cannot be meant was not said. */
const MOST = 1e9;
export const countOf = (v: unknown): number | undefined =>
  Number.isSafeInteger(v) && (v as number) >= 0 && (v as number) <= MOST
    ? (v as number)
    : undefined;

/** Without what is absent; nothing, where nothing is left. */
export function some(fields: { readonly [name: string]: Opt<Json> }): JsonObject | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  return kept.length > 0 ? (Object.fromEntries(kept) as JsonObject) : undefined;
}

/** The object that the bytes spell, if they spell one. Integers of any size keep their digits. */
export function parsed(bytes: Buffer): JsonObject | undefined {
  try {
    return objectOf(parseExactJson(bytes.toString()));
  } catch {
    return undefined;
  }
}
