// Checks the entries of a server's lists. Entries that are not valid are left out, so that one of
// them does not hide the others.
import { hash } from "node:crypto";
import type { JsonObject } from "tollgate/plugin";
import { canonicalJson, isObject, isTooDeep } from "./json-rpc.ts";
import type { ListKind, ServerItem } from "./tool-server.ts";

/** Largest size of one entry, in characters of JSON. */
const MAX_ENTRY_LENGTH = 128 * 1024;
/** Largest nesting depth of one entry. */
const MAX_ENTRY_DEPTH = 40;
/** Largest number of entries of one list. */
export const MAX_ENTRIES = 5_000;
const MAX_NAME_LENGTH = 128;
const MAX_URI_LENGTH = 2_048;

/** Member of the result, by list. */
export const LIST_MEMBERS: Readonly<Record<ListKind, string>> = {
  tools: "tools",
  prompts: "prompts",
  resources: "resources",
  resourceTemplates: "resourceTemplates",
};

/** Method, by list. */
export const LIST_METHODS: Readonly<Record<ListKind, string>> = {
  tools: "tools/list",
  prompts: "prompts/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
};

const KEYS: Readonly<Record<ListKind, "name" | "uri" | "uriTemplate">> = {
  tools: "name",
  prompts: "name",
  resources: "uri",
  resourceTemplates: "uriTemplate",
};

/** Returns the name or URI that identifies an entry within its list. */
export const keyOf = (kind: ListKind, item: ServerItem): string => String(item[KEYS[kind]]);

/** Returns why an entry is not valid, or undefined. */
export function findEntryFlaw(kind: ListKind, item: unknown): string | undefined {
  if (!isObject(item)) return "is not an object";
  const key = item[KEYS[kind]];
  if (typeof key !== "string" || key === "") return `has no ${KEYS[kind]}`;
  const max = KEYS[kind] === "name" ? MAX_NAME_LENGTH : MAX_URI_LENGTH;
  if (key.length > max) return `has a ${KEYS[kind]} with more than ${max} characters`;
  const text = JSON.stringify(item);
  if (text.length > MAX_ENTRY_LENGTH) return `is larger than ${MAX_ENTRY_LENGTH} characters`;
  if (isTooDeep(text, MAX_ENTRY_DEPTH)) return `is nested deeper than ${MAX_ENTRY_DEPTH} levels`;
  if (kind !== "tools") return undefined;
  if (!isObject(item["inputSchema"])) return "has no inputSchema";
  return readHeaderArguments(item["inputSchema"]) ? undefined : "has an invalid x-mcp-header";
}

/** An argument that is mirrored in a header. */
export interface HeaderArgument {
  /** Name of the header, in lower case. */
  readonly header: string;
  /** Names of properties that lead to the argument. */
  readonly path: readonly string[];
}

const TOKEN = /^[\w!#$%&'*+.^`|~-]{1,128}$/;
const HEADER_TYPES = new Set(["string", "integer", "boolean"]);

/** Returns the arguments that are mirrored in headers, or undefined if an annotation is not valid. */
export function readHeaderArguments(schema: JsonObject): readonly HeaderArgument[] | undefined {
  const found: HeaderArgument[] = [];
  const visit = (node: unknown, path: readonly string[], isReachable: boolean): boolean => {
    if (Array.isArray(node)) return node.every((one) => visit(one, path, false));
    if (!isObject(node)) return true;
    const header = node["x-mcp-header"];
    if (header !== undefined) {
      const isValid =
        typeof header === "string" &&
        TOKEN.test(header) &&
        isReachable &&
        path.length > 0 &&
        HEADER_TYPES.has(String(node["type"]));
      const name = `mcp-param-${String(header).toLowerCase()}`;
      if (!isValid || found.some((one) => one.header === name)) return false;
      found.push({ header: name, path });
    }
    for (const [member, inner] of Object.entries(node)) {
      // The members of `properties` are names of arguments.
      const isNested =
        member === "properties" && isObject(inner)
          ? Object.entries(inner).every(([name, one]) => visit(one, [...path, name], isReachable))
          : visit(inner, path, false);
      if (!isNested) return false;
    }
    return true;
  };
  return visit(schema, [], true) ? found : undefined;
}

/** Returns the value of an argument, or undefined if there is none. */
export function argumentAt(values: JsonObject, path: readonly string[]): unknown {
  let at: unknown = values;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at ?? undefined;
}

/**
 * Returns the SHA-256 of the parts of a tool that a model reads: name, title, description, schemas,
 * and annotations. `binding` contains further parts that decide what a call does.
 */
export function hashTool(tool: ServerItem, binding?: JsonObject): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  return hash(
    "sha256",
    canonicalJson({ name, title, description, inputSchema, outputSchema, annotations, binding }),
  );
}
