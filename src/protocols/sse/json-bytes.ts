// Looking at JSON inside an event without parsing it.
//
// Why a search cannot be fooled by the same text inside a string: in JSON a quote inside a string is written `\"`, so
// the bytes `"name"` followed by a colon can only be a member's key, unless that key itself ends in an escaped quote
// and `name`; the byte before the match tells. Where the key stands is another matter: `keyAt` finds it at any depth,
// `valueAt` at one exact place.
import { endOfString } from "../../lib/json/json-strings.ts";
import { unpooledConcat, unpooledFromText } from "../../lib/unpooled-buffer.ts";

export { endOfString };

/** [from, to) of a buffer. */
export interface Range {
  from: number;
  to: number;
}

const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;
const COMMA = 44;

/** What `keyAt` looks for: the key as it stands on the wire, quotes included. */
export const encodeKey = (key: string): Buffer => unpooledFromText(JSON.stringify(key));

/** Where the value of a key begins, at whatever depth the key first stands at or after `from`; -1 when there is none. */
export function findKey(b: Buffer, key: Buffer, from = 0): number {
  for (let i = b.indexOf(key, from); i >= 0; i = b.indexOf(key, i + 1)) {
    let j = skipSpace(b, i + key.length);
    if (b[j] !== COLON || b[i - 1] === BACKSLASH) continue;
    j = skipSpace(b, j + 1);
    return j;
  }
  return -1;
}

/** The value at a path of keys inside the object that begins at `from`, and nowhere else: same-named keys at other depths are passed over. */
export function findValue(b: Buffer, path: readonly Buffer[], from: number): Range | undefined {
  let i = from;
  for (const key of path) {
    i = findMember(b, key, i);
    if (i < 0) return undefined;
  }
  const to = endOfValue(b, i);
  return to < 0 ? undefined : { from: i, to };
}

/** Where the value of one member of the object at `i` begins; -1 when it has none. */
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

/** One past the value that begins at `i`; -1 when it does not end. */
export function endOfValue(b: Buffer, i: number): number {
  const c = b[i];
  if (c === QUOTE) {
    const end = endOfString(b, i) + 1;
    return end > b.length ? -1 : end;
  }
  if (c !== 123 && c !== 91) {
    // A number or a word ends where something else begins.
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
 * Where an event's data stands, when it is one line (every model API writes it so); undefined when there is none, or
 * when it has to be put together, which `eventOf` does.
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
  // Mostly nothing but the blank line is left.
  if (event.length - to > 4 && event.indexOf(LF_DATA, to) >= 0) return undefined;
  if (event[to - 1] === 13) to--;
  return { from, to };
}

/** "data:" */
const isData = (b: Buffer): boolean =>
  b[0] === 100 && b[1] === 97 && b[2] === 116 && b[3] === 97 && b[4] === COLON;

/**
 * Replaces the string value at a path, event after event. Streams repeat themselves: id, creation time and model stand
 * first and stay the same, so the place found once is found again by comparing the bytes before it, which no text
 * inside a string can fake. Where they differ, the path is walked.
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

/** Pieces on their way to one write: a socket is asked once a turn, not once a piece. */
export interface WriteBatch {
  add(piece: Buffer): void;
  /** Ranges that follow one another in the same bytes leave as the one range they came as. */
  addRange(b: Buffer, from: number, to: number): void;
  flush(): void;
}

export const createWriteBatch = (write: (b: Buffer) => void): WriteBatch =>
  new BufferedWriteBatch(write);

class BufferedWriteBatch implements WriteBatch {
  readonly #write: (b: Buffer) => void;
  #pieces: Buffer[] = [];
  #size = 0;
  /** A range that may still grow. */
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

/** A whole answer as it came, with the name that the client knows its model by. */
export function replaceModelName(body: Buffer, model: string, write: (b: Buffer) => void): void {
  const name = findValue(body, [MODEL_KEY], body.indexOf(123));
  if (!name || body[name.from] !== QUOTE) return write(body);
  const out = createWriteBatch(write);
  out.add(body.subarray(0, name.from));
  out.add(Buffer.from(JSON.stringify(model)));
  out.add(body.subarray(name.to));
  return out.flush();
}
