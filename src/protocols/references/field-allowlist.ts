// Under Service-ZDR what was not reviewed does not leave: a member may ask for anything, and what becomes of it is unknown.
// A protocol's review says what was looked at; the operator may allow more for a provider.
import {
  isFilePart,
  type AllowedContent,
  type Json,
  type JsonObject,
  type FieldAllowlist,
  type AllowedFields,
} from "../../plugin/index.ts";
import { isObject } from "../json-values.ts";

/** Members that hold no more than values: a list of names is easier to read as a sentence. */
export const valueFields = (sentence: string): AllowedFields => toAllowedFields(sentence, "plain");
/** Those whose words are the client's own. */
export const freeTextFields = (sentence: string): AllowedFields =>
  toAllowedFields(sentence, "free");

const toAllowedFields = (sentence: string, inside: AllowedContent): AllowedFields =>
  Object.fromEntries(sentence.split(" ").map((name) => [name, inside]));

const mergedAllowlists = new WeakMap<FieldAllowlist, AllowedFields>();

/** All that a review clears; made once. */
export function mergeAllowlist(review: FieldAllowlist): AllowedFields {
  let fields = mergedAllowlists.get(review);
  if (!fields)
    mergedAllowlists.set(
      review,
      (fields = Object.assign({}, ...review.map(([, group]) => group)) as AllowedFields),
    );
  return fields;
}

/** What may stand there beside what was reviewed, and all that it stands in. */
export interface OperatorAllowances {
  readonly paths: ReadonlySet<string>;
  readonly parents: ReadonlySet<string>;
}

/** Places as `stranger()` names them: "min_p", "messages[].content[].new". */
export function parseAllowances(paths: Iterable<string>): OperatorAllowances {
  const allowed = new Set(paths);
  const within = new Set<string>();
  for (const path of allowed)
    for (let at = path.lastIndexOf("."); at > 0; at = path.lastIndexOf(".", at - 1))
      within.add(path.slice(0, at).replace(/(?:\[\])+$/, ""));
  return { paths: allowed, parents: within };
}

export interface DisallowedField {
  /** "messages[3].content[0].new", as clients know it. */
  readonly path: string;
  /** "messages[].content[].new": all of its kind. */
  readonly pattern: string;
}

/** The first member that neither the review nor the operator knows. */
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

  /** `typed`: its type was looked at, and is known. */
  members(
    of: JsonObject,
    known: AllowedFields,
    path: string,
    place: string,
    typed = false,
  ): DisallowedField | undefined {
    for (const key in of) {
      const value = of[key];
      // What is null says nothing, to every reader of these protocols.
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
    // A file of a form is a value: what it is called and what it holds is the client's content.
    if (inside === "free" || isFilePart(value)) return undefined;
    // An object where a value was expected.
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
