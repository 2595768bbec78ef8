// Checks a request body against an allowlist of fields. Under `Service-ZDR`, a field that is not on
// the list is not sent, because its effect on data retention is unknown. A protocol lists the
// reviewed fields. The operator can allow more fields for a provider.
import {
  isFilePart,
  type AllowedContent,
  type Json,
  type JsonObject,
  type FieldAllowlist,
  type AllowedFields,
} from "../../plugin/index.ts";
import { isObject } from "../json-values.ts";

/**
 * Returns an entry for each name in a space-separated list. These fields may hold plain values
 * only.
 */
export const valueFields = (sentence: string): AllowedFields => toAllowedFields(sentence, "plain");
/**
 * Returns an entry for each name in a space-separated list. These fields may hold any content,
 * because the client's own data is inside.
 */
export const freeTextFields = (sentence: string): AllowedFields =>
  toAllowedFields(sentence, "free");

const toAllowedFields = (sentence: string, inside: AllowedContent): AllowedFields =>
  Object.fromEntries(sentence.split(" ").map((name) => [name, inside]));

const mergedAllowlists = new WeakMap<FieldAllowlist, AllowedFields>();

/** Returns all fields of an allowlist as one object. The result is cached per allowlist. */
export function mergeAllowlist(review: FieldAllowlist): AllowedFields {
  let fields = mergedAllowlists.get(review);
  if (!fields)
    mergedAllowlists.set(
      review,
      (fields = Object.assign({}, ...review.map(([, group]) => group)) as AllowedFields),
    );
  return fields;
}

/**
 * Fields that the operator allows in addition to the allowlist. `paths` holds the allowed fields
 * and `parents` holds the objects that contain them.
 */
export interface OperatorAllowances {
  readonly paths: ReadonlySet<string>;
  readonly parents: ReadonlySet<string>;
}

/**
 * Parses field patterns such as `min_p` and `messages[].content[].new`. `DisallowedField.pattern`
 * has the same form.
 */
export function parseAllowances(paths: Iterable<string>): OperatorAllowances {
  const allowed = new Set(paths);
  const within = new Set<string>();
  for (const path of allowed)
    for (let at = path.lastIndexOf("."); at > 0; at = path.lastIndexOf(".", at - 1))
      within.add(path.slice(0, at).replace(/(?:\[\])+$/, ""));
  return { paths: allowed, parents: within };
}

export interface DisallowedField {
  /**
   * Path of the field in this request, for error messages. Example: `messages[3].content[0].new`.
   */
  readonly path: string;
  /** Pattern that matches this field in every list element. Example: `messages[].content[].new`. */
  readonly pattern: string;
}

/** Returns the first field that neither the allowlist nor the operator allows. */
export function findDisallowedField(
  body: { readonly [field: string]: unknown },
  reviewed: AllowedFields,
  allowed: OperatorAllowances,
): DisallowedField | undefined {
  return new AllowlistWalk(allowed).members(body as JsonObject, reviewed, "", "");
}

const NO_FIELDS: AllowedFields = {};

class AllowlistWalk {
  readonly #allowed: OperatorAllowances;

  constructor(allowed: OperatorAllowances) {
    this.#allowed = allowed;
  }

  /**
   * Returns the first disallowed member. `typed` means that the `type` member has already been
   * checked.
   */
  members(
    of: JsonObject,
    known: AllowedFields,
    path: string,
    place: string,
    typed = false,
  ): DisallowedField | undefined {
    for (const key in of) {
      const value = of[key];
      // All readers of these protocols treat null as unset.
      if (value === undefined || value === null || (typed && key === "type")) continue;
      const inside = Object.hasOwn(known, key) ? known[key] : undefined;
      if (inside === "free" || (inside === "plain" && typeof value !== "object")) continue;
      const here = place === "" ? key : `${place}.${key}`;
      if (this.#allowed.paths.has(here)) continue;
      const at = path === "" ? key : `${path}.${key}`;
      if (inside === undefined && !(isObject(value) && this.#allowed.parents.has(here)))
        return { path: at, pattern: here };
      const found = this.#value(value, inside ?? NO_FIELDS, at, here);
      if (found) return found;
    }
    return undefined;
  }

  #value(
    value: Json,
    inside: AllowedContent,
    path: string,
    place: string,
  ): DisallowedField | undefined {
    if (typeof value !== "object" || value === null) return undefined;
    if (Array.isArray(value)) {
      const list = value as readonly Json[];
      for (let i = 0; i < list.length; i++) {
        if (typeof list[i] !== "object") continue;
        const found = this.#value(list[i]!, inside, `${path}[${i}]`, `${place}[]`);
        if (found) return found;
      }
      return undefined;
    }
    // An uploaded file counts as a value: its name and bytes are the client's content.
    if (inside === "free" || isFilePart(value)) return undefined;
    // The allowlist permits a plain value here, but the request holds an object.
    if (inside === "plain") return this.members(value as JsonObject, NO_FIELDS, path, place);
    if (!isPair(inside)) return this.members(value as JsonObject, inside, path, place);
    const known = this.#ofType(value as JsonObject, inside);
    if (known === "free" || (!known && this.#allowed.paths.has(`${place}.type`))) return undefined;
    if (!known) return { path: `${path}.type`, pattern: `${place}.type` };
    return this.members(value as JsonObject, known, path, place, true);
  }

  #ofType(
    of: JsonObject,
    [absent, types]: readonly [string | null, { readonly [type: string]: AllowedFields | "free" }],
  ): AllowedFields | "free" | undefined {
    const typeValue = of["type"] ?? absent;
    if (typeValue === null) return NO_FIELDS;
    if (typeof typeValue !== "string") return undefined;
    const name = typeValue.replace(/_(?:\d{8}|\d{4}_\d\d_\d\d)$/, "_*");
    return Object.hasOwn(types, name) ? types[name] : undefined;
  }
}

const isPair = (
  inside: AllowedContent,
): inside is readonly [string | null, { readonly [type: string]: AllowedFields | "free" }] =>
  Array.isArray(inside);
