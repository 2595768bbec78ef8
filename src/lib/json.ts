// One look over the bytes of a JSON object that has already parsed: where its top-level members stand (so that edits
// can be spliced in without writing the rest again), and whether another parser could read it differently than we did.

/** Offsets of one top-level member: its key's opening quote, and its value. */
export interface Span {
  key: number;
  from: number;
  to: number;
}

/** Why a body cannot be trusted to mean one thing. */
export interface Flaw {
  code: "duplicate_key" | "escaped_key" | "too_deep" | "not_an_object";
  message: string;
}

/** `odd`: some key has capitals, escapes or letters beyond ASCII, so that a parser that folds case could take it for another. */
export type Scan = { spans: Map<string, Span>; odd: boolean; flaw?: undefined } | { flaw: Flaw };

export const MAX_DEPTH = 64;

/** Above this many bytes without a quote, the native search is cheaper than our loop. */
const LONG = 32;

/**
 * An escape that no serialiser needs: what names are made of, hidden from whoever compares bytes. Some escape the signs
 * that mean something in HTML.
 */
const HIDDEN = /\\u00(?:2[de]|3\d|[46][1-9a-f]|[57][\da]|5f)/i;

const ESCAPED = 1;
const CASED = 2;

/** The keys of one open object: hashes first, so that most objects never make a string. */
interface Keys {
  hashes: number[];
  starts: number[];
  ends: number[];
  /** Only for wide objects, where comparing pairwise would be quadratic. */
  names: Set<string> | undefined;
}

/** Of objects that were closed, for the next ones: small, for a wide object keeps its keys elsewhere. */
const spare: Keys[] = [];

export function scan(b: Buffer): Scan {
  const spans = new Map<string, Span>();
  const open: (Keys | null)[] = [];
  let here: Keys | null = null;
  let depth = 0;
  let odd = false;
  let expectKey = false;
  let member: Span | undefined;
  let i = 0;
  const flaw = (code: Flaw["code"], message: string): Scan => ({ flaw: { code, message } });
  while (i < b.length) {
    const c = b[i]!;
    if (c === 34 && depth > 0) {
      const end = endOfString(b, i);
      if (expectKey) {
        expectKey = false;
        const found = looks(b, i + 1, end);
        const escaped = (found & ESCAPED) !== 0;
        odd ||= found !== 0;
        if (escaped && HIDDEN.test(b.toString("latin1", i + 1, end)))
          return flaw(
            "escaped_key",
            `The key ${b.toString("utf8", i, end + 1)} hides letters behind escapes.`,
          );
        const name = escaped || depth === 1 ? nameOf(b, i, end, escaped) : undefined;
        if (taken(b, here!, i + 1, end, escaped, name))
          return flaw(
            "duplicate_key",
            `The key ${b.toString("utf8", i, end + 1)} stands twice in one object.`,
          );
        if (depth === 1) spans.set(name!, (member = { key: i, from: -1, to: -1 }));
      } else if (depth === 1 && member && member.from < 0) member.from = i;
      i = end + 1;
      continue;
    }
    if (c === 123 || c === 91) {
      if (depth === 1 && member && member.from < 0) member.from = i;
      if (depth === 0 && c === 91) return flaw("not_an_object", "The body must be a JSON object.");
      if (++depth > MAX_DEPTH)
        return flaw("too_deep", `The body is nested deeper than ${MAX_DEPTH} levels.`);
      open.push(here);
      here =
        c === 123 ? (spare.pop() ?? { hashes: [], starts: [], ends: [], names: undefined }) : null;
      expectKey = c === 123;
    } else if (c === 125 || c === 93) {
      if (depth === 1 && member) member.to = trimmed(b, i);
      if (here) {
        here.hashes.length = here.starts.length = here.ends.length = 0;
        here.names = undefined;
        spare.push(here);
      }
      here = open.pop() ?? null;
      depth--;
      expectKey = false;
    } else if (c === 44) {
      if (depth === 1 && member) {
        member.to = trimmed(b, i);
        member = undefined;
      }
      expectKey = here !== null;
    } else if (depth === 0 && c > 32) {
      return flaw("not_an_object", "The body must be a JSON object.");
    } else if (depth === 1 && member && member.from < 0 && c > 32 && c !== 58) {
      member.from = i;
    }
    i++;
  }
  return { spans, odd };
}

/** The closing quote of the string that opens at `i`. */
export function endOfString(b: Buffer, i: number): number {
  let j = i + 1;
  for (const near = j + LONG; j < near; j++) {
    const c = b[j];
    if (c === 34) return j;
    if (c === 92) j++;
  }
  for (let q = b.indexOf(34, j); q >= 0; q = b.indexOf(34, q + 1)) {
    let slashes = 0;
    while (q - 1 - slashes >= j && b[q - 1 - slashes] === 92) slashes++;
    if (slashes % 2 === 0) return q;
  }
  return b.length;
}

function looks(b: Buffer, from: number, to: number): number {
  let found = 0;
  for (let i = from; i < to; i++) {
    const c = b[i]!;
    if (c === 92) found |= ESCAPED;
    else if ((c >= 65 && c <= 90) || c > 127) found |= CASED;
  }
  return found;
}

const nameOf = (b: Buffer, i: number, end: number, escaped: boolean): string =>
  escaped ? (JSON.parse(b.toString("utf8", i, end + 1)) as string) : b.toString("utf8", i + 1, end);

function trimmed(b: Buffer, to: number): number {
  while (b[to - 1]! <= 32) to--;
  return to;
}

/** Notes a key; true when the object has it already, whichever way it was written. */
function taken(
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
