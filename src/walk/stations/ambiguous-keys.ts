import { fail } from "../../model/error.ts";
import { isFilePart, type Body, type Json, type Opt } from "../../model/values.ts";
import { ROUTING } from "../../protocols/look/index.ts";

/** Members whose names are the client's own: nothing between the client and the model reads them. */
const FREE: ReadonlySet<string> = new Set([
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

interface Words {
  /** By what a key comes to when its case is folded: how it is written right. */
  readonly top: ReadonlyMap<string, string>;
  readonly all: ReadonlyMap<string, string>;
}

const known = new WeakMap<object, Words>();

/**
 * Parsers that fold case (Go's, for one) would read "Model" as "model" and "File_ID" as "file_id". A name that
 * decides something may be written one way only: at the top, and inside of what the schema describes wherever it stands.
 */
export function oneReading(body: Body, schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  let words = known.get(schema);
  if (!words) known.set(schema, (words = wordsOf(schema as Schema)));
  for (const key in body) {
    right(key, words.top, key);
    if (words.top.has(key)) inside(body[key] as Opt<Json>, key, words.all, key);
  }
}

function inside(value: Opt<Json>, name: string, words: Words["all"], at: string): void {
  if (typeof value !== "object" || value === null || FREE.has(name) || isFilePart(value)) return;
  if (Array.isArray(value)) {
    for (const [i, one] of (value as readonly Json[]).entries())
      inside(one, "", words, `${at}[${i}]`);
    return;
  }
  // A call's arguments; the input of a request is never an object.
  if (name === "input") return;
  for (const [key, one] of Object.entries(value)) {
    const here = `${at}.${key}`;
    right(key, words, here);
    inside(one, key, words, here);
  }
}

function right(key: string, words: ReadonlyMap<string, string>, at: string): void {
  if (words.get(key) === key) return;
  const name = words.get(fold(key));
  if (name !== undefined && name !== key)
    fail("invalid", `${at} could be read as ${name} by some parsers. Write ${name}.`, {
      param: at,
      code: "ambiguous_key",
    });
}

/** To upper case first, because a long s becomes an s only that way. */
const fold = (key: string): string => key.toUpperCase().toLowerCase();

interface Schema {
  readonly properties?: { readonly [name: string]: unknown };
  readonly definitions?: { readonly named?: Schema };
}

function wordsOf(schema: Schema): Words {
  const folded = (names: Iterable<string>) => new Map([...names].map((name) => [fold(name), name]));
  const top = [
    ...Object.keys(schema.properties ?? {}),
    ...Object.keys(schema.definitions?.named?.properties ?? {}),
    ...ROUTING,
  ];
  const all = new Set<string>(top);
  collect(schema, all);
  return { top: folded(top), all: folded(all) };
}

function collect(schema: unknown, names: Set<string>): void {
  if (typeof schema !== "object" || schema === null) return;
  for (const [key, value] of Object.entries(schema)) {
    if (key === "properties") for (const name in value as object) names.add(name);
    collect(value, names);
  }
}
