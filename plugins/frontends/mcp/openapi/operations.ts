// Operations of an OpenAPI document, and the selection of those that become tools.
import { createHash } from "node:crypto";
import { isObject, type Located, type OpenApiDocument } from "./document.ts";
import type { Json } from "tollgate/plugin";

/** Maximum number of operations that are read from a document. */
const MAX_OPERATIONS = 5_000;
const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
/** Maximum length of a tool's name. */
const MAX_NAME_LENGTH = 64;

/** One operation of a document. */
export interface Operation {
  /** Name of the tool: the operation ID, or the method and path. */
  readonly name: string;
  /** `operationId` of the document. Undefined if the operation has none. */
  readonly id: string | undefined;
  /** Method in upper case. */
  readonly method: string;
  /** Path template, such as `/invoices/{id}`. */
  readonly path: string;
  readonly tags: readonly string[];
  /** Parameters, those of the operation before those of its path. */
  readonly parameters: readonly Located[];
  /** The operation object. */
  readonly at: Located;
}

/** Which operations become tools. */
export interface OperationSelection {
  /**
   * Operation IDs, `tag:<name>`, or `<METHOD> <path>`. Each `*` matches any text. Default: all
   * operations.
   */
  readonly operations?: readonly string[] | undefined;
  /** Operations that are left out, in the same form. */
  readonly exclude?: readonly string[] | undefined;
}

/** Returns all operations of a document, in its order. */
export function listOperations(document: OpenApiDocument): readonly Operation[] {
  const found: Operation[] = [];
  const paths = document.member({ value: document.root, path: [] }, "paths");
  if (!paths || !isObject(paths.value)) return found;
  for (const path of Object.keys(paths.value)) {
    if (!path.startsWith("/")) continue;
    const item = document.resolve(document.member(paths, path)!);
    const shared = listParameters(document, item);
    for (const method of METHODS) {
      const at = document.member(item, method);
      if (!at || !isObject(at.value)) continue;
      if (found.length >= MAX_OPERATIONS)
        throw document.error(at.path, `has more than ${MAX_OPERATIONS} operations`);
      found.push(readOperation(document, path, method.toUpperCase(), at, shared));
    }
  }
  return withUniqueNames(found);
}

/**
 * Returns the selected operations, in the order of the document. Throws an error for a selector that
 * matches nothing, with the most similar one.
 * @param nearest Returns the most similar of several words.
 */
export function selectOperations(
  operations: readonly Operation[],
  { operations: wanted, exclude }: OperationSelection,
  nearest: (word: string, words: Iterable<string>) => string | undefined,
): readonly Operation[] {
  const included = wanted && wanted.map((text) => createSelector(text));
  const excluded = (exclude ?? []).map((text) => createSelector(text));
  const wrong = [...(included ?? []), ...excluded]
    .filter(({ matches }) => !operations.some(matches))
    .map(({ text }) => {
      const near = nearest(text, selectorsOf(operations, text));
      return `no operation matches "${text}"${near === undefined ? "" : `; did you mean "${near}"?`}`;
    });
  if (wrong.length > 0) throw new Error(wrong.join("; "));
  return operations.filter(
    (each) =>
      (!included || included.some(({ matches }) => matches(each))) &&
      !excluded.some(({ matches }) => matches(each)),
  );
}

interface Selector {
  readonly text: string;
  matches(operation: Operation): boolean;
}

function createSelector(text: string): Selector {
  if (text.startsWith("tag:")) {
    const isMatch = createPattern(text.slice(4));
    return { text, matches: ({ tags }) => tags.some(isMatch) };
  }
  const isMatch = createPattern(text);
  return text.includes(" ")
    ? { text, matches: ({ method, path }) => isMatch(`${method} ${path}`) }
    : { text, matches: ({ id, name }) => (id !== undefined && isMatch(id)) || isMatch(name) };
}

/** Returns a test for a pattern in which each `*` matches any text. It takes linear time per part. */
export function createPattern(pattern: string): (text: string) => boolean {
  const parts = pattern.split("*");
  const first = parts.shift()!;
  const last = parts.pop();
  if (last === undefined) return (text) => text === first;
  return (text) => {
    if (!text.startsWith(first)) return false;
    let from = first.length;
    for (const part of parts) {
      const at = text.indexOf(part, from);
      if (at < 0) return false;
      from = at + part.length;
    }
    return text.length - last.length >= from && text.endsWith(last);
  };
}

/** Returns the selectors of the same form as `text` that exist. */
const selectorsOf = (operations: readonly Operation[], text: string): Iterable<string> =>
  text.startsWith("tag:")
    ? new Set(operations.flatMap(({ tags }) => tags.map((tag) => `tag:${tag}`)))
    : operations.map(({ id, name, method, path }) =>
        text.includes(" ") ? `${method} ${path}` : (id ?? name),
      );

function readOperation(
  document: OpenApiDocument,
  path: string,
  method: string,
  at: Located,
  shared: readonly Located[],
): Operation {
  const value = at.value as { readonly [name: string]: Json };
  const id = typeof value["operationId"] === "string" ? value["operationId"] : undefined;
  const tags = Array.isArray(value["tags"]) ? value["tags"].map(String) : [];
  const own = listParameters(document, at);
  const identities = new Set(own.map(parameterIdentity));
  const inherited = shared.filter((each) => !identities.has(parameterIdentity(each)));
  const name = toToolName(id ?? `${method.toLowerCase()}_${path}`);
  return { name, id, method, path, tags, parameters: [...own, ...inherited], at };
}

function listParameters(document: OpenApiDocument, of: Located): readonly Located[] {
  const list = document.member(of, "parameters");
  if (!list) return [];
  if (!Array.isArray(list.value)) throw document.error(list.path, "must be a list");
  return list.value.map((value, i) => document.resolve({ value, path: [...list.path, i] }));
}

const parameterIdentity = ({ value }: Located): string =>
  isObject(value) ? JSON.stringify([value["in"], value["name"]]) : "";

/** Returns a name of the letters, digits, `_`, and `-` that every model provider accepts. */
export function toToolName(text: string): string {
  const name = text.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^_+|_+$/g, "") || "operation";
  return name.length <= MAX_NAME_LENGTH ? name : shorten(name, text);
}

const shorten = (name: string, text: string): string => {
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8);
  return `${name.slice(0, MAX_NAME_LENGTH - 9)}_${hash}`;
};

/** Adds a hash of the method and path to names that several operations have. */
function withUniqueNames(operations: readonly Operation[]): readonly Operation[] {
  const counts = new Map<string, number>();
  for (const { name } of operations) counts.set(name, (counts.get(name) ?? 0) + 1);
  return operations.map((each) =>
    counts.get(each.name) === 1
      ? each
      : { ...each, name: shorten(each.name, `${each.method} ${each.path}`) },
  );
}
