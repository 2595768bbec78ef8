// Finds members of a client's body, below the top level, that its own codec does not handle. They
// are stored by path in the request's `ext`. A codec of another protocol reports each of them as
// dropped. The codec of the same protocol restores them or reports them.
import { setOwnProperty } from "../lib/set-own-property.ts";
import type { CommonRequest } from "../model/common-request.ts";
import type { Json, JsonObject, Body } from "../model/values.ts";
import type { Opt } from "../plugin/index.ts";

/**
 * Known members of an object, each with the shape of its value. For a list, the shape applies to
 * each object in it. null: the content is not inspected.
 */
export interface KnownFields {
  readonly [member: string]: FieldShape;
}
/**
 * Shape of a value. A function receives the object and returns its shape, for objects that state
 * their own type.
 */
export type FieldShape = null | KnownFields | ((of: JsonObject) => null | KnownFields);

/**
 * Returns the shapes of members whose content is not inspected: plain values, or values that belong
 * to another party.
 */
export const valueFields = (sentence: string): KnownFields =>
  Object.fromEntries(sentence.split(" ").map((name) => [name, null]));

/**
 * Returns the shape for a type name, or null for an unknown name, which may be newer than the
 * gateway.
 */
export function shapeByName(shapes: KnownFields, name: unknown): KnownFields | null {
  const shape = typeof name === "string" && Object.hasOwn(shapes, name) ? shapes[name]! : null;
  return typeof shape === "function" ? null : shape;
}

/**
 * Returns the fields of a body that only its own protocol documents, as the request's `ext`. Null
 * means that a field is omitted.
 */
export function ownFields(id: string, body: Body, fields: readonly string[]): CommonRequest["ext"] {
  const own: Record<string, Json> = {};
  for (const field of fields) {
    const value = body[field] as Opt<Json>;
    if (value !== undefined && value !== null) own[field] = value;
  }
  return Object.keys(own).length > 0 ? { [id]: own } : {};
}

export interface UnknownFields {
  readonly [path: string]: Json;
}

/**
 * Returns the unknown members by path, for example "messages[3].content[0].image_url.new". Members
 * that are null are ignored.
 */
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

/** Returns the top-level fields of a body that no codec of its protocol handles. */
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
 * Restores unknown members in an encoded body. Most are still present, because unchanged values are
 * sent verbatim. A member of a single object is put back in its place. A member inside a list is
 * reported as dropped, because the list may have changed around it.
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

/**
 * Whether a name is a path into the body. Names such as "tools.strict" are notes for other codecs
 * under a list's name, not paths.
 */
const isPath = (name: string, known: KnownFields): boolean => {
  const [, field, next] = /^([^.[]+)([.[])/.exec(name) ?? [];
  return field !== undefined && Object.hasOwn(known, field) && !(field === "tools" && next === ".");
};

const toLossName = (path: string, value: Json): string =>
  `${path.slice(path.lastIndexOf(".") + 1)}=${JSON.stringify(value)}`;

/**
 * Sets a value at a path. Each object on the way is copied only once, even if several members are
 * restored in it.
 */
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
