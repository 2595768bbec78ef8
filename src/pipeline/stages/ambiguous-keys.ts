import { fail } from "../../model/error.ts";
import { isFilePart, type Body, type Json, type Opt } from "../../model/values.ts";
import { ROUTING_FIELDS } from "../../protocols/references/index.ts";

/**
 * Members whose content has names that the client chooses. Nothing between the client and the model
 * reads these names.
 */
const CLIENT_NAMED_MEMBERS: ReadonlySet<string> = new Set([
  "_meta",
  "arguments",
  "attributes",
  "chat_template_kwargs",
  "client_metadata",
  "env",
  "headers",
  "input_examples",
  "input_schema",
  "logit_bias",
  "metadata",
  "parameters",
  "properties",
  "schema",
  "variables",
]);

interface KnownNames {
  /** Correct spelling of each top-level name, by its case-folded form. */
  readonly top: ReadonlyMap<string, string>;
  readonly all: ReadonlyMap<string, string>;
}

const knownNames = new WeakMap<object, KnownNames>();

/**
 * Throws if a key could be read as a known name by a parser that folds case. Go's parser, for
 * example, reads "Model" as "model" and "File_ID" as "file_id". Known names are checked at the top
 * level, and anywhere inside members that the schema describes.
 */
export function rejectAmbiguousKeys(body: Body, schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  let words = knownNames.get(schema);
  if (!words) knownNames.set(schema, (words = collectKnownNames(schema as Schema)));
  for (const key in body) {
    checkKey(key, words.top, key);
    if (words.top.has(key)) checkNested(body[key] as Opt<Json>, key, words.all, key);
  }
}

function checkNested(value: Opt<Json>, name: string, words: KnownNames["all"], at: string): void {
  if (
    typeof value !== "object" ||
    value === null ||
    CLIENT_NAMED_MEMBERS.has(name) ||
    isFilePart(value)
  )
    return;
  if (Array.isArray(value)) {
    for (const [i, one] of (value as readonly Json[]).entries())
      checkNested(one, "", words, `${at}[${i}]`);
    return;
  }
  // The arguments of a tool call. The `input` of a request is never an object.
  if (name === "input") return;
  for (const [key, one] of Object.entries(value)) {
    const here = `${at}.${key}`;
    checkKey(key, words, here);
    checkNested(one, key, words, here);
  }
}

function checkKey(key: string, words: ReadonlyMap<string, string>, at: string): void {
  if (words.get(key) === key) return;
  const name = words.get(foldCase(key));
  if (name !== undefined && name !== key)
    fail("invalid", `Some parsers could read ${at} as ${name}. Write ${name}.`, {
      param: at,
      code: "ambiguous_key",
    });
}

/** Folds to upper case, because only this maps a long s (U+017F) to an s. */
const foldCase = (key: string): string => key.toUpperCase().toLowerCase();

interface Schema {
  readonly properties?: { readonly [name: string]: unknown };
  readonly definitions?: { readonly named?: Schema };
}

function collectKnownNames(schema: Schema): KnownNames {
  const folded = (names: Iterable<string>) =>
    new Map([...names].map((name) => [foldCase(name), name]));
  const top = [
    ...Object.keys(schema.properties ?? {}),
    ...Object.keys(schema.definitions?.named?.properties ?? {}),
    ...ROUTING_FIELDS,
  ];
  const all = new Set<string>(top);
  collectPropertyNames(schema, all);
  return { top: folded(top), all: folded(all) };
}

function collectPropertyNames(schema: unknown, names: Set<string>): void {
  if (typeof schema !== "object" || schema === null) return;
  for (const [key, value] of Object.entries(schema)) {
    if (key === "properties") for (const name in value as object) names.add(name);
    collectPropertyNames(value, names);
  }
}
