// Positions of client text in a body, for any protocol: in its allowlist, in the bodies of tests,
// and under names that have a meaning anywhere. And the worst texts for any parser.
import type { AllowedContent, Json, JsonObject, Protocol, AllowedFields } from "tollgate/plugin";
import {
  mergeAllowlist,
  ACCOUNT_FIELDS,
  CACHE_HINTS,
  CACHE_MARKS,
  ROUTING_FIELDS,
  STATE_RULES,
} from "tollgate/protocols/references";

/** A body with a text, or a name, at one position. */
export interface Place {
  readonly at: string;
  readonly body: (text: string) => JsonObject;
}

/**
 * Characters that some parser handles one by one: escapes, separators, and characters of two and
 * four bytes.
 */
export const ALPHABETS = [
  "x",
  "é",
  "😀",
  "中",
  "%C3",
  "%25",
  "%2f",
  "_a",
  "A",
  "a.",
  "/",
  "~1",
  "-",
  " ",
  "\n",
  "\r",
  "\t",
  '"',
  "\\",
  "[]",
  "{",
  "=",
  "&a=1",
  ",",
  ":",
  ";",
  "@",
  "<",
  "0",
  "1ms",
] as const;

/** Prefixes that give a text a special meaning. */
export const BEGINNINGS = [
  "",
  "https://a.googleapis.com/",
  "https://",
  "data:image/png;base64,",
  "data:",
  "#/",
  "tg1.",
  "{",
] as const;

/** Runs of every alphabet in sequence, with about this many characters in total. */
const runs = (length: number): string =>
  ALPHABETS.map((a) => a.repeat(Math.ceil(length / ALPHABETS.length / a.length))).join("");

/** Each starts with runs of every alphabet. */
export const mixed = (length: number): readonly string[] =>
  BEGINNINGS.map((beginning) => beginning + runs(length));

/** Every string position of these bodies, one for each kind of position. */
export function* stringsIn(bodies: Iterable<JsonObject>): Generator<Place> {
  const seen = new Set<string>();
  for (const body of bodies)
    for (const path of leaves(body)) {
      const at = path.map((step) => (typeof step === "number" ? "[]" : step)).join(".");
      if (seen.has(at)) continue;
      seen.add(at);
      yield { at, body: (text) => replaced(body, path, text) as JsonObject };
    }
}

type Path = readonly (string | number)[];

function* leaves(value: Json, at: Path = []): Generator<Path> {
  if (typeof value === "string" && !FIXED.has(at.at(-1)!)) yield at;
  if (typeof value !== "object" || value === null) return;
  for (const key of Object.keys(value))
    yield* leaves((value as JsonObject)[key]!, [...at, Array.isArray(value) ? Number(key) : key]);
}

/** Other values here make the rest of the body unread. Allowlist tests cover them. */
const FIXED: ReadonlySet<string | number> = new Set(["role"]);

function replaced(value: Json, [first, ...rest]: Path, text: string): Json {
  if (first === undefined) return text;
  const inner = replaced((value as JsonObject)[first]!, rest, text);
  return Array.isArray(value)
    ? (value as Json[]).with(first as number, inner)
    : { ...(value as JsonObject), [first]: inner };
}

/** Every position of a protocol's allowlist, on top of a minimal body. */
export function* reviewed(
  { zdrAllowedFields: review }: Protocol,
  least: JsonObject,
): Generator<Place> {
  if (!review) return;
  const seen = new Set<string>();
  for (const [name, inside] of Object.entries(mergeAllowlist(review)))
    yield* within(inside, name, (value) => ({ ...least, [name]: value }), seen);
}

type Put = (value: Json) => JsonObject;

/** `seen`: a member of one object type is the same wherever such an object is. */
function* within(
  inside: AllowedContent,
  at: string,
  put: Put,
  seen: Set<string>,
): Generator<Place> {
  yield { at, body: (text) => put(text) };
  yield { at: `${at}[]`, body: (text) => put([text]) };
  if (inside === "plain") return;
  if (inside === "free") return yield { at: `${at}.x`, body: (text) => put({ x: text }) };
  const [absent, types] = isPair(inside) ? inside : [null, { "": inside as AllowedFields }];
  if (isPair(inside)) yield { at: `${at}[].type`, body: (text) => put([{ type: text }]) };
  for (const [type, members] of Object.entries(types)) {
    if (members === "free") continue;
    const typed = type === "" || type === absent ? {} : { type: type.replace("_*", "_20250305") };
    const said = "role" in members ? { role: "user" } : {};
    const many = LISTS.test(at);
    for (const [name, inner] of Object.entries(members)) {
      const member = `${type === "" ? at.slice(at.lastIndexOf(".") + 1) : type}.${name}`;
      if (seen.has(member)) continue;
      seen.add(member);
      const one = (value: Json): JsonObject => ({ ...typed, ...said, [name]: value });
      const here = `${at}${many ? "[]" : ""}.${type}.${name}`;
      yield* within(inner, here, (value) => put(many ? [one(value)] : one(value)), seen);
    }
  }
}

/** Allowlists do not mark lists. Their names do. */
const LISTS = /(?:s|\bcontent|\binput|\bsystem|\bsummary|\boutput)$/;

const isPair = (
  inside: AllowedContent,
): inside is readonly [string | null, { readonly [type: string]: AllowedFields | "free" }] =>
  Array.isArray(inside);

/** Names with the same meaning anywhere, at the top and inside an unknown member. */
export function* wordsOf(least: JsonObject): Generator<Place> {
  const words = [
    ...Object.keys(STATE_RULES),
    ...CACHE_MARKS,
    ...CACHE_HINTS,
    ...ACCOUNT_FIELDS,
    ...ROUTING_FIELDS,
  ];
  for (const word of ["model", "models", "preset", "plugins", "tools", "type", ...words])
    for (const [how, put] of [
      ["", (value: Json): JsonObject => ({ ...least, [word]: value })],
      ["x_stranger.", (value: Json): JsonObject => ({ ...least, x_stranger: { [word]: value } })],
    ] as const) {
      yield { at: how + word, body: (text) => put(text) };
      yield { at: `${how}${word}[]`, body: (text) => put([text]) };
      yield { at: `${how}${word}[].id`, body: (text) => put([{ id: text }]) };
    }
}

/** A member's name in every object: many names of maximum length, of one alphabet. */
export function* namesIn(bodies: Iterable<JsonObject>): Generator<Place> {
  const seen = new Set<string>();
  for (const body of bodies)
    for (const path of objects(body)) {
      const at = `${path.map((step) => (typeof step === "number" ? "[]" : step)).join(".")}.(names)`;
      if (seen.has(at)) continue;
      seen.add(at);
      yield { at, body: (text) => widened(body, path, named(text)) as JsonObject };
    }
}

function* objects(value: Json, at: Path = []): Generator<Path> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield at;
  for (const key of Object.keys(value))
    yield* objects((value as JsonObject)[key]!, [...at, Array.isArray(value) ? Number(key) : key]);
}

/** As many members as the text has pieces of the longest name. */
function named(text: string): JsonObject {
  const members: Record<string, Json> = {};
  for (let i = 0; i < text.length; i += LONG) members[`${i}${text.slice(i, i + LONG)}`] = 1;
  return members;
}

/** UTF-8 has up to three times as many bytes. */
const LONG = 80;

function widened(value: Json, [first, ...rest]: Path, more: JsonObject): Json {
  if (first === undefined) return { ...(value as JsonObject), ...more };
  const inner = widened((value as JsonObject)[first]!, rest, more);
  return Array.isArray(value)
    ? (value as Json[]).with(first as number, inner)
    : { ...(value as JsonObject), [first]: inner };
}
