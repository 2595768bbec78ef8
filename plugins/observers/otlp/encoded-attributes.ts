import { Attributes } from "./attributes.ts";
import { ATTRIBUTE, VALUE } from "./shapes.ts";
import type { Wire } from "./wire.ts";

const KEY = ATTRIBUTE["key"]!.n;
const VALUE_OF = ATTRIBUTE["value"]!.n;
const TEXT = VALUE["stringValue"]!.n;
const FLAG = VALUE["boolValue"]!.n;
const WHOLE = VALUE["intValue"]!.n;
const FLOAT = VALUE["doubleValue"]!.n;
const TEXTS = VALUE["arrayValue"]!.n;
const ONE = 1;

/** Attributes as the bytes that protobuf has for them. */
export class EncodedAttributes extends Attributes {
  /** Where the message that is being said has them. */
  field = 0;
  readonly #wire: Wire;
  #attribute = 0;
  #value = 0;

  constructor(wire: Wire) {
    super();
    this.#wire = wire;
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
    this.#attribute = this.#wire.begin(this.field);
    this.#wire.text(KEY, key);
    this.#value = this.#wire.begin(VALUE_OF);
  }

  /** The value first: what moves up by its length is within the attribute. */
  #close(): void {
    this.#wire.close(this.#value);
    this.#wire.close(this.#attribute);
  }
}
