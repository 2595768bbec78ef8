// Attributes as the bytes that protobuf has for them, made while they are said: thousands of spans a second say mostly the same.
import { Attributes } from "./attributes.ts";
import { ATTRIBUTE, ATTRIBUTES_AT, VALUE } from "./shapes.ts";
import { Wire } from "./wire.ts";

/** A field of a message that is bytes already, its tags with them. */
export class Encoded {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}

const KEY = ATTRIBUTE["key"]!.n;
const VALUE_OF = ATTRIBUTE["value"]!.n;
const TEXT = VALUE["stringValue"]!.n;
const FLAG = VALUE["boolValue"]!.n;
const WHOLE = VALUE["intValue"]!.n;
const FLOAT = VALUE["doubleValue"]!.n;
const TEXTS = VALUE["arrayValue"]!.n;
const ONE = 1;

/** So many bytes are mostly said of one span. */
const SIZE = 1_024;

export class EncodedAttributes extends Attributes {
  readonly #field: number;
  readonly #wire = new Wire(SIZE);
  #attribute = 0;
  #value = 0;

  constructor(of: keyof typeof ATTRIBUTES_AT) {
    super();
    this.#field = ATTRIBUTES_AT[of];
  }

  get written(): Encoded {
    return new Encoded(this.#wire.bytes());
  }

  protected word(key: string, text: string): void {
    if (text.length > LONGEST_WORD) this.text(key, text);
    else this.#wire.message(this.#field, bytesOf(key, text));
  }

  protected text(key: string, text: string): void {
    this.#begin(key);
    this.#wire.text(TEXT, text);
    this.#close();
  }

  protected texts(key: string, texts: readonly string[]): void {
    this.#begin(key);
    const all = this.#wire.begin(TEXTS);
    for (const text of texts) {
      const one = this.#wire.begin(ONE);
      this.#wire.text(TEXT, text);
      this.#wire.close(one);
    }
    this.#wire.close(all);
    this.#close();
  }

  protected whole(key: string, value: number): void {
    this.#begin(key);
    if (value >= 0) this.#wire.varint(WHOLE, value);
    else this.#wire.varint64(WHOLE, BigInt(value));
    this.#close();
  }

  protected flag(key: string, value: boolean): void {
    this.#begin(key);
    this.#wire.varint(FLAG, Number(value));
    this.#close();
  }

  protected float(key: string, value: number): void {
    this.#begin(key);
    this.#wire.double(FLOAT, value);
    this.#close();
  }

  #begin(key: string): void {
    this.#attribute = this.#wire.begin(this.#field);
    this.#wire.text(KEY, key);
    this.#value = this.#wire.begin(VALUE_OF);
  }

  /** The value first: what moves up by its length is within the attribute. */
  #close(): void {
    this.#wire.close(this.#value);
    this.#wire.close(this.#attribute);
  }
}

/** Pairs of a name and a word whose bytes are kept. Clients choose some words: with more than this it begins anew. */
const MOST_PAIRS = 4_096;
/** What is longer is hardly said again. */
const LONGEST_WORD = 64;

const pairs = new Map<string, Map<string, Buffer>>();
let kept = 0;

/** Of an attribute without its own tag. */
function bytesOf(key: string, text: string): Buffer {
  const found = pairs.get(key)?.get(text);
  if (found) return found;
  const wire = new Wire(SIZE);
  wire.text(KEY, key);
  const value = wire.begin(VALUE_OF);
  wire.text(TEXT, text);
  wire.close(value);
  // Of its own: a slice of Node's pool would keep 64 KB.
  const bytes = Buffer.allocUnsafeSlow(wire.bytes().length);
  wire.bytes().copy(bytes);
  if (++kept > MOST_PAIRS) {
    pairs.clear();
    kept = 1;
  }
  let words = pairs.get(key);
  if (!words) pairs.set(key, (words = new Map()));
  words.set(text, bytes);
  return bytes;
}

/** How many pairs there are now. */
export const pairsKept = (): number => kept;
