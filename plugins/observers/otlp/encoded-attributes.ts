import { Attributes } from "./attributes.ts";
import { ATTRIBUTE, VALUE } from "./shapes.ts";
import { sizeOf, Wire } from "./wire.ts";

const KEY = ATTRIBUTE["key"]!.n;
const VALUE_OF = ATTRIBUTE["value"]!.n;
const TEXT = VALUE["stringValue"]!.n;
const FLAG = VALUE["boolValue"]!.n;
const WHOLE = VALUE["intValue"]!.n;
const FLOAT = VALUE["doubleValue"]!.n;
const TEXTS = VALUE["arrayValue"]!.n;
const ONE = 1;

/** A text of so many characters has its length in one byte, and so has what stands around it. */
const MOST_PLAIN = 100;
/** Of names that are said again and again; those of labels are chosen by clients. */
const MOST_HEADS = 256;

/** Attributes as the bytes that protobuf has for them. Where a template is filled, doubles alone differ. */
export class EncodedAttributes extends Attributes {
  /** Where the message that is being said has them. */
  field = 0;
  readonly #wire: Wire;
  /** An attribute's key as it is written. */
  readonly #heads = new Map<string, Buffer>();

  constructor(wire: Wire) {
    super();
    this.#wire = wire;
  }

  protected text(key: string, text: string): void {
    if (this.#wire.fills) return;
    const from = this.#wire.length;
    if (text.length <= MOST_PLAIN) {
      this.#begin(key, 2 + text.length);
      if (this.#wire.plain(TEXT, text)) return;
      this.#wire.cut(from);
    }
    this.#attribute(key, () => this.#wire.text(TEXT, text));
  }

  protected texts(key: string, texts: readonly string[]): void {
    this.#attribute(key, () => {
      const all = this.#wire.begin(TEXTS);
      for (const text of texts) {
        const one = this.#wire.begin(ONE);
        this.#wire.text(TEXT, text);
        this.#wire.close(one);
      }
      this.#wire.close(all);
    });
  }

  protected whole(key: string, value: number): void {
    if (this.#wire.fills) return;
    if (value < 0) return this.#attribute(key, () => this.#wire.varint64(WHOLE, BigInt(value)));
    this.#begin(key, 1 + sizeOf(value));
    this.#wire.varint(WHOLE, value);
  }

  protected flag(key: string, value: boolean): void {
    if (this.#wire.fills) return;
    this.#begin(key, 2);
    this.#wire.varint(FLAG, Number(value));
  }

  protected float(key: string, value: number): void {
    if (this.#wire.fills) return this.#wire.fillDouble(value);
    this.#begin(key, 9);
    this.#wire.double(FLOAT, value);
  }

  /** One whose value has so many bytes. */
  #begin(key: string, bytes: number): void {
    const head = this.#headOf(key);
    this.#wire.head(this.field, head.length + 1 + sizeOf(bytes) + bytes);
    this.#wire.short(head);
    this.#wire.head(VALUE_OF, bytes);
  }

  /** One whose value is as long as it turns out. */
  #attribute(key: string, say: () => void): void {
    if (this.#wire.fills) return;
    const attribute = this.#wire.begin(this.field);
    this.#wire.short(this.#headOf(key));
    const value = this.#wire.begin(VALUE_OF);
    say();
    // The value first: what moves up by its length is within the attribute.
    this.#wire.close(value);
    this.#wire.close(attribute);
  }

  #headOf(key: string): Buffer {
    const known = this.#heads.get(key);
    if (known) return known;
    const wire = new Wire(64);
    wire.text(KEY, key);
    const head = wire.copied(0);
    if (this.#heads.size < MOST_HEADS) this.#heads.set(key, head);
    return head;
  }
}
