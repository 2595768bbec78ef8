// Scans the bytes of a JSON object once before it is parsed. It finds the top-level members, so
// that edits can be spliced in without rewriting the rest. It also detects keys that another parser
// could read differently, and checks the bounds. It runs before parsing, because a few bytes can
// describe a large object. If the text is not valid JSON, its findings are ignored.
import { BOUNDS, boundMessage, type BoundName } from "../bounds.ts";

/** Offsets of one top-level member: the opening quote of its key, and its value. */
export interface Span {
  key: number;
  from: number;
  to: number;
}

/** Reason for rejecting the body, for example because parsers could disagree on its meaning. */
export interface JsonFlaw {
  code: string;
  message: string;
  /** Bound that the body exceeds. The body must then not be parsed. */
  bound?: BoundName;
}

/**
 * `hasCaseVariants`: whether a key has capitals, escapes, or non-ASCII letters, so that a parser
 * that folds case could confuse it with another key.
 */
export type Scan =
  | { spans: Map<string, Span>; hasCaseVariants: boolean; flaw?: undefined }
  | { flaw: JsonFlaw };

/** Length in characters up to which a text is not checked for depth. */
const SHALLOW = 1024;

/**
 * Parses JSON that was a string inside another value and has therefore not been scanned. Throws a
 * SyntaxError if it is nested too deeply, because traversing a value needs stack space for each
 * level.
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

/**
 * Number of numbers in a list that count as one value. Parsed numbers take a fraction of the memory
 * of other values, and lists of token ids are long.
 */
const NUMBERS_PER_VALUE = 4;

function beginsNumber(b: Buffer, from: number): boolean {
  let i = from;
  while (b[i] === 32 || b[i] === 10 || b[i] === 13 || b[i] === 9) i++;
  const c = b[i];
  return c === 45 || (c !== undefined && c >= 48 && c <= 57);
}

/** Number of characters of a key that an error quotes. */
const MAX_QUOTED_NAME = 100;

/**
 * Escapes of characters that occur in names. No serializer needs them, and they hide a name from
 * code that compares bytes. Escapes of HTML's special characters are not included, because some
 * serializers write them.
 */
const SUSPICIOUS_ESCAPE = /\\u00(?:2[de]|3\d|[46][1-9a-f]|[57][\da]|5f)/i;

const HAS_ESCAPES = 1;
const HAS_CAPITALS = 2;

/** Keys of one open object. Hashes are compared first, so most objects never create a string. */
interface Keys {
  hashes: number[];
  starts: number[];
  ends: number[];
  /**
   * Set only for objects with many keys or with escaped keys. Comparing many keys in pairs would
   * take quadratic time.
   */
  names: Set<string> | undefined;
}

/**
 * Key lists of closed objects, for reuse. The lists stay short, because an object with many keys
 * keeps them in `names`.
 */
const keyPool: Keys[] = [];

const acquireKeys = (): Keys =>
  keyPool.pop() ?? { hashes: [], starts: [], ends: [], names: undefined };

function releaseKeys(keys: Keys): void {
  keys.hashes.length = keys.starts.length = keys.ends.length = 0;
  keys.names = undefined;
  keyPool.push(keys);
}

export const scan = (b: Buffer, most?: number): Scan => new Scanner(b, most).scanTo(b.length)!;

/** Scans in as many steps as the caller chooses. */
export class Scanner {
  readonly #b: Buffer;
  readonly #most: number;
  /** Longest allowed name, in bytes. */
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

  /**
   * `most`: maximum number of values. If unset, the body is not from a client, and the number of
   * values and the length of names are not limited.
   */
  constructor(b: Buffer, most = Infinity) {
    this.#b = b;
    this.#most = most;
    this.#longest = most === Infinity ? Infinity : BOUNDS.name.max;
    this.#strings = new StringScanner(b);
  }

  /**
   * Scans `bytes` more bytes, and continues to the end of a string if it is inside one. Returns
   * undefined if more bytes remain.
   */
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
            return flaw(
              "escaped_key",
              `The key ${key(b, i, end)} contains escaped letters. Write it without escapes.`,
            );
          const name = escaped || depth === 1 ? nameOf(b, i, end, escaped) : undefined;
          if (addKey(b, here!, i + 1, end, escaped, name))
            return flaw("duplicate_key", `The key ${key(b, i, end)} occurs twice in one object.`);
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

/** Text that is not valid JSON is returned unchanged. The parser reports it later. */
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

/** Adds a key. Returns whether the object already has the key in any spelling. */
function addKey(
  b: Buffer,
  keys: Keys,
  from: number,
  to: number,
  escaped: boolean,
  name: string | undefined,
): boolean {
  // From the first escaped key or the 24th key on, names are compared instead of hashes. Keys
  // before the first escaped key have no escapes, so their bytes are their names.
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

// Finds the ends of strings in the bytes of a JSON text, in time that is linear in its length for
// any input.

const MAX_ESCAPES = BOUNDS.jsonEscapes.max;

/** Bytes that the loop scans first. In longer strings, the native search is faster. */
const LONG = 32;

/**
 * Bytes that the loop scans after an escape before it uses the native search again. Escapes tend to
 * occur in groups.
 */
const AMONG_ESCAPES = 256;

/**
 * Finds the ends of strings and counts their escapes. The positions that native searches return are
 * kept until they are passed. A text with many escapes is therefore searched once in total, and not
 * once per escape.
 */
class StringScanner {
  escapes = 0;
  readonly #b: Buffer;
  #quote = -1;
  #slash = -1;

  constructor(b: Buffer) {
    this.#b = b;
  }

  /**
   * Returns the offset of the closing quote of the string that opens at `i`, or the length of the
   * text if it does not close.
   */
  end(i: number): number {
    const b = this.#b;
    let j = i + 1;
    let run = LONG;
    while (j < b.length && this.escapes <= MAX_ESCAPES) {
      for (const near = Math.min(j + run, b.length); j < near; j++) {
        const c = b[j];
        if (c === 34) return j;
        if (c === 92) {
          this.escapes++;
          j++;
        }
      }
      run = AMONG_ESCAPES;
      if (this.#quote < j) this.#quote = orNever(b.indexOf(34, j));
      if (this.#slash < j) this.#slash = orNever(b.indexOf(92, j));
      if (this.#quote < this.#slash) return this.#quote;
      j = this.#slash;
    }
    return b.length;
  }
}

const orNever = (at: number): number => (at < 0 ? Infinity : at);

/**
 * Returns the offset of the closing quote of the string that opens at `i`, or the length of the
 * text if it does not close.
 */
export function endOfString(b: Buffer, i: number): number {
  let j = i + 1;
  while (j < b.length) {
    for (const near = Math.min(j + LONG, b.length); j < near; j++) {
      const c = b[j];
      if (c === 34) return j;
      if (c === 92) j++;
    }
    const q = b.indexOf(34, j);
    if (q < 0) break;
    let slashes = 0;
    while (q - 1 - slashes >= j && b[q - 1 - slashes] === 92) slashes++;
    if (slashes % 2 === 0) return q;
    j = q + 1;
  }
  return b.length;
}
