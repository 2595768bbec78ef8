// Inspects JSON inside an event without parsing it.
//
// The same text inside a string cannot mislead the search. Inside a JSON string a quote is written
// `\"`, so the bytes `"name"` followed by a colon can only be a member's key. The one exception is
// a key that ends in an escaped quote and `name`, and the byte before the match reveals it. The
// search does not prove the depth of a key: `findKey` matches at any depth, and `findValue` matches
// at one exact path.
import { endOfString } from "../../lib/json/json-scanner.ts";
import { unpooledConcat, unpooledFromText } from "../../lib/unpooled-buffer.ts";

export { endOfString };

/** The range `[from, to)` of a buffer. */
export interface Range {
  from: number;
  to: number;
}

const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;
const COMMA = 44;

/** Returns a key as `findKey` searches for it: the JSON string, including its quotes. */
export const encodeKey = (key: string): Buffer => unpooledFromText(JSON.stringify(key));

/**
 * Returns the offset of the value of the first matching key at or after `from`, at any depth.
 * Returns -1 if there is none.
 */
export function findKey(b: Buffer, key: Buffer, from = 0): number {
  for (let i = b.indexOf(key, from); i >= 0; i = b.indexOf(key, i + 1)) {
    let j = skipSpace(b, i + key.length);
    if (b[j] !== COLON || b[i - 1] === BACKSLASH) continue;
    j = skipSpace(b, j + 1);
    return j;
  }
  return -1;
}

/**
 * Returns the range of the value at a path of keys in the object at `from`. Keys with the same name
 * at other depths are ignored.
 */
export function findValue(b: Buffer, path: readonly Buffer[], from: number): Range | undefined {
  let i = from;
  for (const key of path) {
    i = findMember(b, key, i);
    if (i < 0) return undefined;
  }
  const to = endOfValue(b, i);
  return to < 0 ? undefined : { from: i, to };
}

/** Returns the offset of the value of one member of the object at `i`, or -1 if there is none. */
function findMember(b: Buffer, key: Buffer, i: number): number {
  if (b[i] !== 123) return -1;
  i = skipSpace(b, i + 1);
  while (b[i] === QUOTE) {
    const end = endOfString(b, i) + 1;
    if (end > b.length) return -1;
    const mine = end - i === key.length && b.compare(key, 0, key.length, i, end) === 0;
    i = skipSpace(b, end);
    if (b[i] !== COLON) return -1;
    i = skipSpace(b, i + 1);
    if (mine) return i;
    i = endOfValue(b, i);
    if (i < 0) return -1;
    i = skipSpace(b, i);
    if (b[i] !== COMMA) return -1;
    i = skipSpace(b, i + 1);
  }
  return -1;
}

/** Returns the offset after the value that begins at `i`, or -1 if the value does not end. */
export function endOfValue(b: Buffer, i: number): number {
  const c = b[i];
  if (c === QUOTE) {
    const end = endOfString(b, i) + 1;
    return end > b.length ? -1 : end;
  }
  if (c !== 123 && c !== 91) {
    // A number or literal ends at whitespace, a comma, or a closing bracket.
    let j = i;
    while (j < b.length && b[j]! > 32 && b[j] !== COMMA && b[j] !== 125 && b[j] !== 93) j++;
    return j > i ? j : -1;
  }
  let depth = 0;
  for (let j = i; j < b.length; j++) {
    const d = b[j];
    if (d === QUOTE) j = endOfString(b, j);
    else if (d === 123 || d === 91) depth++;
    else if ((d === 125 || d === 93) && --depth === 0) return j + 1;
  }
  return -1;
}

function skipSpace(b: Buffer, i: number): number {
  while (b[i]! <= 32) i++;
  return i;
}

const LF_DATA = Buffer.from("\ndata:");

/**
 * Returns the range of an event's data if the data is one line, as all model APIs write it. Returns
 * undefined if there is no data or if its lines have to be joined, which `parseEventText` does.
 */
export function findEventData(event: Buffer): Range | undefined {
  const cr = event.indexOf(13);
  if (cr >= 0 && event[cr + 1] !== 10) return undefined;
  let from = 5;
  if (!isData(event)) {
    from = event.indexOf(LF_DATA) + LF_DATA.length;
    if (from < LF_DATA.length) return undefined;
  }
  if (event[from] === 32) from++;
  let to = event.indexOf(10, from);
  if (to < 0) to = event.length;
  // Usually only the blank line is left.
  if (event.length - to > 4 && event.indexOf(LF_DATA, to) >= 0) return undefined;
  if (event[to - 1] === 13) to--;
  return { from, to };
}

/** Whether the buffer begins with `data:`. */
const isData = (b: Buffer): boolean =>
  b[0] === 100 && b[1] === 97 && b[2] === 116 && b[3] === 97 && b[4] === COLON;

/**
 * Returns a function that replaces the string value at a path in each event. In most streams the
 * ID, creation time, and model come first and do not change. The position is therefore found once.
 * It is then confirmed by comparing the preceding bytes, which text inside a string cannot imitate.
 * If the bytes differ, the path is searched again.
 */
export function createStringReplacer(
  path: readonly string[],
  value: string,
): (event: Buffer, json: number, out: WriteBatch) => void {
  const keys = path.map(encodeKey);
  const quoted = unpooledFromText(JSON.stringify(value));
  let head: Buffer | undefined;
  let from = 0;
  return (event, json, out) => {
    if (
      head === undefined ||
      event.length < head.length ||
      event.compare(head, 0, head.length, 0, head.length) !== 0
    ) {
      const at = findValue(event, keys, json);
      if (at === undefined || event[at.from] !== QUOTE) {
        out.add(event);
        return;
      }
      head = unpooledConcat([event.subarray(0, at.to)]);
      from = at.from;
    }
    out.add(event.subarray(0, from));
    out.add(quoted);
    out.add(event.subarray(head.length));
  };
}

/**
 * Collects buffers for one write, so that the socket is written once per chunk and not once per
 * buffer.
 */
export interface WriteBatch {
  add(piece: Buffer): void;
  /** Adds a range. Adjacent ranges of the same buffer are written as one range. */
  addRange(b: Buffer, from: number, to: number): void;
  flush(): void;
}

export const createWriteBatch = (write: (b: Buffer) => void): WriteBatch =>
  new BufferedWriteBatch(write);

class BufferedWriteBatch implements WriteBatch {
  readonly #write: (b: Buffer) => void;
  #pieces: Buffer[] = [];
  #size = 0;
  /** The buffer of a range that can still grow. */
  #openRange: Buffer | undefined;
  #from = 0;
  #to = 0;

  constructor(write: (b: Buffer) => void) {
    this.#write = write;
  }

  add(piece: Buffer): void {
    if (this.#openRange) this.#closeRange(this.#openRange);
    if (piece.length > 0) this.#push(piece);
  }

  addRange(b: Buffer, from: number, to: number): void {
    if (this.#openRange === b && this.#to === from) {
      this.#to = to;
      return;
    }
    if (this.#openRange) this.#closeRange(this.#openRange);
    this.#openRange = b;
    this.#from = from;
    this.#to = to;
  }

  #closeRange(run: Buffer): void {
    const from = this.#from;
    const to = this.#to;
    this.#openRange = undefined;
    if (to > from) this.#push(from === 0 && to === run.length ? run : run.subarray(from, to));
  }

  #push(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#size += piece.length;
  }

  flush(): void {
    if (this.#openRange) this.#closeRange(this.#openRange);
    if (this.#size === 0) return;
    const pieces = this.#pieces;
    const all = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, this.#size);
    this.#pieces = [];
    this.#size = 0;
    this.#write(all);
  }
}

const MODEL_KEY = encodeKey("model");

/** Writes a whole response unchanged except for the model name, which becomes the client's name. */
export function replaceModelName(
  body: Buffer,
  model: string,
  write: (b: Buffer) => void,
  key: Buffer = MODEL_KEY,
): void {
  const name = findValue(body, [key], body.indexOf(123));
  if (!name || body[name.from] !== QUOTE) return write(body);
  const out = createWriteBatch(write);
  out.add(body.subarray(0, name.from));
  out.add(Buffer.from(JSON.stringify(model)));
  out.add(body.subarray(name.to));
  return out.flush();
}
