// One look over the bytes of a JSON object on its way to the parser: where its top-level members stand (so that edits
// can be spliced in without writing the rest again), whether another parser could read it differently than we did, and
// whether there is more in it than there may be. It is taken before the object is parsed, for a few bytes make a large
// object: what it finds in a text that is no JSON counts for nothing.
import { BOUNDS, boundMessage, type BoundName } from "../bounds.ts";
import { MAX_ESCAPES, StringScanner } from "./json-strings.ts";

/** Offsets of one top-level member: its key's opening quote, and its value. */
export interface Span {
  key: number;
  from: number;
  to: number;
}

/** Why a body cannot be trusted to mean one thing. */
export interface JsonFlaw {
  code: string;
  message: string;
  /** There is more than there may be: not to be parsed. */
  bound?: BoundName;
}

/** `odd`: some key has capitals, escapes or letters beyond ASCII, so that a parser that folds case could take it for another. */
export type Scan =
  | { spans: Map<string, Span>; hasCaseVariants: boolean; flaw?: undefined }
  | { flaw: JsonFlaw };

/** So short a text has no depth to speak of. */
const SHALLOW = 1024;

/**
 * A JSON text's value. Texts that came as a string inside of something else have no scan behind them: one that is nested
 * without end is no JSON to us, because everything that walks a value needs a stack for its levels.
 */
export function parseShallow(text: string, reviver?: (key: string, value: unknown) => unknown) {
  if (text.length > SHALLOW && isDeep(text)) throw new SyntaxError("nested too deeply");
  return JSON.parse(text, reviver) as unknown;
}

function isDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 34) {
      i = text.indexOf('"', i + 1);
      while (i > 0 && isEscaped(text, i)) i = text.indexOf('"', i + 1);
      if (i < 0) return false;
    } else if (c === 123 || c === 91) {
      if (++depth > MAX_DEPTH) return true;
    } else if (c === 125 || c === 93) depth--;
  }
  return false;
}

function isEscaped(text: string, quote: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(quote - 1 - slashes) === 92) slashes++;
  return slashes % 2 === 1;
}

const MAX_DEPTH = BOUNDS.depth.max;
const MAX_ELEMENTS = BOUNDS.elements.max;

/** Numbers of a list take a fraction of what other values take once they are parsed: the ids of a text's tokens are many. */
const NUMBERS_PER_VALUE = 4;

function beginsNumber(b: Buffer, from: number): boolean {
  let i = from;
  while (b[i] === 32 || b[i] === 10 || b[i] === 13 || b[i] === 9) i++;
  const c = b[i];
  return c === 45 || (c !== undefined && c >= 48 && c <= 57);
}

/** As much of a key as an error quotes. */
const MAX_QUOTED_NAME = 100;

/**
 * An escape that no serialiser needs: what names are made of, hidden from a reader that compares bytes. Some escape the signs
 * that mean something in HTML.
 */
const SUSPICIOUS_ESCAPE = /\\u00(?:2[de]|3\d|[46][1-9a-f]|[57][\da]|5f)/i;

const HAS_ESCAPES = 1;
const HAS_CAPITALS = 2;

/** The keys of one open object: hashes first, so that most objects never make a string. */
interface Keys {
  hashes: number[];
  starts: number[];
  ends: number[];
  /** Only for wide objects, where comparing pairwise would be quadratic. */
  names: Set<string> | undefined;
}

/** Of objects that were closed, for the next ones: small, for a wide object keeps its keys elsewhere. */
const keyPool: Keys[] = [];

const acquireKeys = (): Keys =>
  keyPool.pop() ?? { hashes: [], starts: [], ends: [], names: undefined };

function releaseKeys(keys: Keys): void {
  keys.hashes.length = keys.starts.length = keys.ends.length = 0;
  keys.names = undefined;
  keyPool.push(keys);
}

export const scan = (b: Buffer, most?: number): Scan => new Scanner(b, most).scanTo(b.length)!;

/** The same look, in as many steps as a caller likes. */
export class Scanner {
  readonly #b: Buffer;
  readonly #most: number;
  /** Bytes of a name. */
  readonly #longest: number;
  readonly #strings: StringScanner;
  readonly #spans = new Map<string, Span>();
  readonly #open: (Keys | null)[] = [];
  readonly #elements: number[] = [];
  #here: Keys | null = null;
  #depth = 0;
  #odd = false;
  #expectKey = false;
  #member: Span | undefined;
  #values = 1;
  #numbers = 0;
  #i = 0;

  /** `most`: values that there may be. Absent: it is no client's body, and has as many as it has, by names of any length. */
  constructor(b: Buffer, most = Infinity) {
    this.#b = b;
    this.#most = most;
    this.#longest = most === Infinity ? Infinity : BOUNDS.name.max;
    this.#strings = new StringScanner(b);
  }

  /** So many bytes further, and to the end of the string there; undefined: there is more to look at. */
  scanTo(bytes: number): Scan | undefined {
    const b = this.#b;
    const spans = this.#spans;
    const open = this.#open;
    const strings = this.#strings;
    const elements = this.#elements;
    let here = this.#here;
    let depth = this.#depth;
    let odd = this.#odd;
    let expectKey = this.#expectKey;
    let member = this.#member;
    let values = this.#values;
    let numbers = this.#numbers;
    let i = this.#i;
    const till = Math.min(b.length, i + bytes);
    while (i < till) {
      const c = b[i]!;
      if (c === 34 && depth > 0) {
        const end = strings.end(i);
        if (strings.escapes > MAX_ESCAPES) return this.#past("jsonEscapes");
        if (expectKey) {
          expectKey = false;
          if (end - i - 1 > this.#longest) return this.#past("name");
          const found = classifyKey(b, i + 1, end);
          const escaped = (found & HAS_ESCAPES) !== 0;
          odd ||= found !== 0;
          if (escaped && SUSPICIOUS_ESCAPE.test(b.toString("latin1", i + 1, end)))
            return flaw("escaped_key", `The key ${key(b, i, end)} hides letters behind escapes.`);
          const name = escaped || depth === 1 ? nameOf(b, i, end, escaped) : undefined;
          if (addKey(b, here!, i + 1, end, escaped, name))
            return flaw("duplicate_key", `The key ${key(b, i, end)} stands twice in one object.`);
          if (depth === 1) spans.set(name!, (member = { key: i, from: -1, to: -1 }));
        } else if (depth === 1 && member && member.from < 0) member.from = i;
        i = end + 1;
        continue;
      }
      if (c === 123 || c === 91) {
        if (depth === 1 && member && member.from < 0) member.from = i;
        if (depth === 0 && c === 91)
          return flaw("not_an_object", "The body must be a JSON object.");
        if (++depth > MAX_DEPTH) return this.#past("depth");
        if (++values > this.#most) return this.#past("jsonValues");
        open.push(here);
        here = c === 123 ? acquireKeys() : null;
        expectKey = c === 123;
        elements[depth] = 1;
      } else if (c === 125 || c === 93) {
        if (depth === 1 && member) member.to = trimmed(b, i);
        if (here) releaseKeys(here);
        here = open.pop() ?? null;
        depth--;
        expectKey = false;
      } else if (c === 44) {
        if (depth === 1 && member) {
          member.to = trimmed(b, i);
          member = undefined;
        }
        expectKey = here !== null;
        if (here !== null || !beginsNumber(b, i + 1) || ++numbers % NUMBERS_PER_VALUE === 0)
          if (++values > this.#most) return this.#past("jsonValues");
        if (++elements[depth]! > MAX_ELEMENTS) return this.#past("elements");
      } else if (depth === 0 && c > 32) {
        return flaw("not_an_object", "The body must be a JSON object.");
      } else if (depth === 1 && member && member.from < 0 && c > 32 && c !== 58) {
        member.from = i;
      }
      i++;
    }
    if (i >= b.length) return { spans, hasCaseVariants: odd };
    this.#here = here;
    this.#depth = depth;
    this.#odd = odd;
    this.#expectKey = expectKey;
    this.#member = member;
    this.#values = values;
    this.#numbers = numbers;
    this.#i = i;
    return undefined;
  }

  #past(bound: BoundName): Scan {
    const message = boundMessage(bound, bound === "jsonValues" ? this.#most : undefined);
    return { flaw: { code: BOUNDS[bound].error![1], message, bound } };
  }
}

const flaw = (code: JsonFlaw["code"], message: string): Scan => ({ flaw: { code, message } });

const key = (b: Buffer, from: number, end: number): string => {
  const text = b.toString("utf8", from, Math.min(end + 1, from + MAX_QUOTED_NAME));
  return end + 1 - from > MAX_QUOTED_NAME ? `${text}…` : text;
};

function classifyKey(b: Buffer, from: number, to: number): number {
  let found = 0;
  for (let i = from; i < to; i++) {
    const c = b[i]!;
    if (c === 92) found |= HAS_ESCAPES;
    else if ((c >= 65 && c <= 90) || c > 127) found |= HAS_CAPITALS;
  }
  return found;
}

const nameOf = (b: Buffer, i: number, end: number, escaped: boolean): string =>
  escaped ? unescaped(b.toString("utf8", i, end + 1)) : b.toString("utf8", i + 1, end);

/** One that is no JSON is told by the parser. */
function unescaped(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    return text;
  }
}

function trimmed(b: Buffer, to: number): number {
  while (b[to - 1]! <= 32) to--;
  return to;
}

/** Notes a key; true when the object has it already, whichever way it was written. */
function addKey(
  b: Buffer,
  keys: Keys,
  from: number,
  to: number,
  escaped: boolean,
  name: string | undefined,
): boolean {
  // From the first escaped key on, names are compared; those before it have none.
  if (keys.names === undefined && (keys.hashes.length >= 24 || escaped))
    keys.names = new Set(keys.starts.map((start, k) => b.toString("utf8", start, keys.ends[k])));
  if (keys.names) {
    const full = name ?? b.toString("utf8", from, to);
    if (keys.names.has(full)) return true;
    keys.names.add(full);
    return false;
  }
  let hash = to - from;
  for (let i = from; i < to; i++) hash = (Math.imul(hash, 31) + b[i]!) | 0;
  const { hashes, starts, ends } = keys;
  for (let k = 0; k < hashes.length; k++)
    if (hashes[k] === hash && b.compare(b, starts[k]!, ends[k]!, from, to) === 0) return true;
  hashes.push(hash);
  starts.push(from);
  ends.push(to);
  return false;
}
