// Members of a client's body that its own codec does not know, wherever they stand below the top. They ride in the
// request's `ext` by their path: another wire names each of them as dropped; their own says them again, or names them too.
import { setOwnProperty } from "../lib/set-own-property.ts";
import type { Opt } from "../plugin/index.ts";
import type { Json, JsonObject } from "../model/values.ts";

/** What an object is known to say, and what that holds in turn. A list stands for each of its objects; null: its inside is not read. */
export interface KnownFields {
  readonly [member: string]: FieldShape;
}
/** A function is asked with the object itself, for those that say what they are. */
export type FieldShape = null | KnownFields | ((of: JsonObject) => null | KnownFields);

/** Members that hold no more than a value, or one whose inside belongs to another party. */
export const valueFields = (sentence: string): KnownFields =>
  Object.fromEntries(sentence.split(" ").map((name) => [name, null]));

/** The shape of that name; of a name that is newer than us, nothing is known. */
export function shapeByName(shapes: KnownFields, name: unknown): KnownFields | null {
  const shape = typeof name === "string" && Object.hasOwn(shapes, name) ? shapes[name]! : null;
  return typeof shape === "function" ? null : shape;
}

export interface UnknownFields {
  readonly [path: string]: Json;
}

/** "messages[3].content[0].image_url.new" → its value. What is null says nothing. */
export function findUnknownFields(fields: JsonObject, known: KnownFields): UnknownFields {
  const found: Record<string, Json> = {};
  for (const field in known) collectUnknown(fields[field], known[field]!, field, found);
  return found;
}

function collectUnknown(
  value: Opt<Json>,
  shape: FieldShape,
  at: string,
  found: Record<string, Json>,
): void {
  if (shape === null || typeof value !== "object" || value === null) return;
  if (isList(value))
    return value.forEach((one, i) => collectUnknown(one, shape, `${at}[${i}]`, found));
  const known = typeof shape === "function" ? shape(value) : shape;
  if (known === null) return;
  for (const key in value) {
    const inner = value[key];
    if (inner === undefined || inner === null) continue;
    if (Object.hasOwn(known, key)) collectUnknown(inner, known[key]!, `${at}.${key}`, found);
    else found[`${at}.${key}`] = inner;
  }
}

/** What of a body no codec of its protocol knows. */
export function unknownTopLevelFields(
  body: { readonly [field: string]: unknown },
  known: (field: string) => boolean,
): JsonObject {
  const unknown: Record<string, Json> = {};
  for (const field in body)
    if (body[field] !== undefined && !known(field)) setOwnProperty(unknown, field, body[field]);
  return unknown;
}

const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

/**
 * The body with the strangers that rode along. Most of them never left: what stayed untouched goes back word for word. Those of
 * a field that is one object have one place to be; of the others, a list may have changed around them, and they are named.
 */
export function restoreUnknownFields<B extends { readonly [field: string]: unknown }>(
  body: B,
  rode: Opt<JsonObject>,
  known: KnownFields,
  lose: (field: string, how: "dropped") => void,
): B {
  const away = Object.keys(rode ?? {}).filter((path) => isPath(path, known));
  if (away.length === 0) return body;
  const there = new Map<string, number>();
  for (const [path, value] of Object.entries(
    findUnknownFields(body as unknown as JsonObject, known),
  ))
    there.set(toLossName(path, value), (there.get(toLossName(path, value)) ?? 0) + 1);
  const copies = new Set<object>();
  let out: JsonObject = body as unknown as JsonObject;
  for (const path of away) {
    const value = rode![path]!;
    const left = there.get(toLossName(path, value)) ?? 0;
    if (left > 0) there.set(toLossName(path, value), left - 1);
    else if (path.includes("[")) lose(path, "dropped");
    else if (!withRestored((out = copyOnce(out, copies)), path.split("."), value, copies))
      lose(path, "dropped");
  }
  return out as unknown as B;
}

/** What a codec notes for others under the name of a list, such as "tools.strict", is no path. */
const isPath = (name: string, known: KnownFields): boolean => {
  const [, field, next] = /^([^.[]+)([.[])/.exec(name) ?? [];
  return field !== undefined && Object.hasOwn(known, field) && !(field === "tools" && next === ".");
};

const toLossName = (path: string, value: Json): string =>
  `${path.slice(path.lastIndexOf(".") + 1)}=${JSON.stringify(value)}`;

/** Each object on the way is copied once, however many members it gets back. */
function withRestored(
  of: JsonObject,
  [key, ...more]: readonly string[],
  value: Json,
  copies: Set<object>,
): boolean {
  if (more.length === 0) {
    setOwnProperty(of, key!, value);
    return true;
  }
  const inner = Object.hasOwn(of, key!) ? of[key!]! : null;
  if (typeof inner !== "object" || inner === null || isList(inner)) return false;
  const copy = copyOnce(inner, copies);
  if (copy !== inner) setOwnProperty(of, key!, copy);
  return withRestored(copy, more, value, copies);
}

function copyOnce(of: JsonObject, copies: Set<object>): JsonObject {
  if (copies.has(of)) return of;
  const copy = { ...of };
  copies.add(copy);
  return copy;
}
