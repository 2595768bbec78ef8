// Under Service-ZDR what was not reviewed does not leave: a member may ask for anything, and what becomes of it is unknown.
// A protocol's review says what was looked at; the operator may allow more for a provider.
import {
  isFilePart,
  type Inside,
  type Json,
  type JsonObject,
  type Review,
  type Reviewed,
} from "../../plugin/index.ts";
import { isObject } from "../json.ts";

/** Members that hold no more than values: a list of names is easier to read as a sentence. */
export const plain = (sentence: string): Reviewed => members(sentence, "plain");
/** Those whose words are the client's own. */
export const free = (sentence: string): Reviewed => members(sentence, "free");

const members = (sentence: string, inside: Inside): Reviewed =>
  Object.fromEntries(sentence.split(" ").map((name) => [name, inside]));

const whole = new WeakMap<Review, Reviewed>();

/** All that a review clears; made once. */
export function all(review: Review): Reviewed {
  let fields = whole.get(review);
  if (!fields)
    whole.set(
      review,
      (fields = Object.assign({}, ...review.map(([, group]) => group)) as Reviewed),
    );
  return fields;
}

/** What may stand there beside what was reviewed, and all that it stands in. */
export interface Allowed {
  readonly paths: ReadonlySet<string>;
  readonly within: ReadonlySet<string>;
}

/** Places as `stranger()` names them: "min_p", "messages[].content[].new". */
export function allowing(paths: Iterable<string>): Allowed {
  const allowed = new Set(paths);
  const within = new Set<string>();
  for (const path of allowed)
    for (let at = path.lastIndexOf("."); at > 0; at = path.lastIndexOf(".", at - 1))
      within.add(path.slice(0, at).replace(/(?:\[\])+$/, ""));
  return { paths: allowed, within };
}

export interface UnreviewedField {
  /** "messages[3].content[0].new", as clients know it. */
  readonly path: string;
  /** "messages[].content[].new": all of its kind. */
  readonly place: string;
}

/** The first member that neither the review nor the operator knows. */
export function stranger(
  body: { readonly [field: string]: unknown },
  reviewed: Reviewed,
  allowed: Allowed,
): UnreviewedField | undefined {
  return new Search(allowed).members(body as JsonObject, reviewed, "", "");
}

const NOTHING: Reviewed = {};

class Search {
  readonly #allowed: Allowed;

  constructor(allowed: Allowed) {
    this.#allowed = allowed;
  }

  /** `typed`: its type was looked at, and is known. */
  members(
    of: JsonObject,
    known: Reviewed,
    path: string,
    place: string,
    typed = false,
  ): UnreviewedField | undefined {
    for (const key in of) {
      const value = of[key];
      // What is null says nothing, to every reader of these protocols.
      if (value === undefined || value === null || (typed && key === "type")) continue;
      const inside = Object.hasOwn(known, key) ? known[key] : undefined;
      if (inside === "free" || (inside === "plain" && typeof value !== "object")) continue;
      const here = place === "" ? key : `${place}.${key}`;
      if (this.#allowed.paths.has(here)) continue;
      const at = path === "" ? key : `${path}.${key}`;
      if (inside === undefined && !(isObject(value) && this.#allowed.within.has(here)))
        return { path: at, place: here };
      const found = this.#value(value, inside ?? NOTHING, at, here);
      if (found) return found;
    }
    return undefined;
  }

  #value(value: Json, inside: Inside, path: string, place: string): UnreviewedField | undefined {
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
    if (inside === "plain") return this.members(value as JsonObject, NOTHING, path, place);
    if (!isPair(inside)) return this.members(value as JsonObject, inside, path, place);
    const known = this.#ofType(value as JsonObject, inside);
    if (known === "free" || (!known && this.#allowed.paths.has(`${place}.type`))) return undefined;
    if (!known) return { path: `${path}.type`, place: `${place}.type` };
    return this.members(value as JsonObject, known, path, place, true);
  }

  #ofType(
    of: JsonObject,
    [absent, types]: readonly [string | null, { readonly [type: string]: Reviewed | "free" }],
  ): Reviewed | "free" | undefined {
    const said = of["type"] ?? absent;
    if (said === null) return NOTHING;
    if (typeof said !== "string") return undefined;
    const name = said.replace(/_(?:\d{8}|\d{4}_\d\d_\d\d)$/, "_*");
    return Object.hasOwn(types, name) ? types[name] : undefined;
  }
}

const isPair = (
  inside: Inside,
): inside is readonly [string | null, { readonly [type: string]: Reviewed | "free" }] =>
  Array.isArray(inside);
