import { AttributeWriter } from "./attributes.ts";
import { ATTRIBUTE, VALUE } from "./message-shapes.ts";
import { varintSize, ProtobufWriter } from "./protobuf-writer.ts";

const KEY_FIELD = ATTRIBUTE["key"]!.fieldNumber;
const VALUE_FIELD = ATTRIBUTE["value"]!.fieldNumber;
const STRING_FIELD = VALUE["stringValue"]!.fieldNumber;
const BOOL_FIELD = VALUE["boolValue"]!.fieldNumber;
const INT_FIELD = VALUE["intValue"]!.fieldNumber;
const DOUBLE_FIELD = VALUE["doubleValue"]!.fieldNumber;
const ARRAY_FIELD = VALUE["arrayValue"]!.fieldNumber;
const SINGLE_VALUE_FIELD = 1;

/**
 * Maximum number of characters for which the lengths of the text and of the messages around it fit
 * into one byte.
 */
const MAX_SHORT_TEXT = 100;
/**
 * Maximum number of cached key encodings. Gateway names repeat, but clients choose the names of
 * labels.
 */
const MAX_CACHED_KEYS = 256;

/**
 * Writes attributes as protobuf bytes. While a template is being filled, only doubles are written.
 */
export class ProtobufAttributes extends AttributeWriter {
  /** Number of the attributes field in the current message. */
  field = 0;
  readonly #writer: ProtobufWriter;
  /** Encoded attribute keys. */
  readonly #encodedKeys = new Map<string, Buffer>();

  constructor(wire: ProtobufWriter) {
    super();
    this.#writer = wire;
  }

  protected addText(key: string, text: string): void {
    if (this.#writer.isFillingTemplate) return;
    const from = this.#writer.length;
    if (text.length <= MAX_SHORT_TEXT) {
      this.#beginShort(key, 2 + text.length);
      if (this.#writer.tryAscii(STRING_FIELD, text)) return;
      this.#writer.truncate(from);
    }
    this.#writeAttribute(key, () => this.#writer.text(STRING_FIELD, text));
  }

  protected addTexts(key: string, texts: readonly string[]): void {
    this.#writeAttribute(key, () => {
      const all = this.#writer.beginMessage(ARRAY_FIELD);
      for (const text of texts) {
        const one = this.#writer.beginMessage(SINGLE_VALUE_FIELD);
        this.#writer.text(STRING_FIELD, text);
        this.#writer.endMessage(one);
      }
      this.#writer.endMessage(all);
    });
  }

  protected addInteger(key: string, value: number): void {
    if (this.#writer.isFillingTemplate) return;
    if (value < 0)
      return this.#writeAttribute(key, () => this.#writer.varint64(INT_FIELD, BigInt(value)));
    this.#beginShort(key, 1 + varintSize(value));
    this.#writer.varint(INT_FIELD, value);
  }

  protected addBoolean(key: string, value: boolean): void {
    if (this.#writer.isFillingTemplate) return;
    this.#beginShort(key, 2);
    this.#writer.varint(BOOL_FIELD, Number(value));
  }

  protected addFloat(key: string, value: number): void {
    if (this.#writer.isFillingTemplate) return this.#writer.fillDouble(value);
    this.#beginShort(key, 9);
    this.#writer.double(DOUBLE_FIELD, value);
  }

  /** Begins an attribute whose value has a known size in bytes. */
  #beginShort(key: string, bytes: number): void {
    const head = this.#encodedKey(key);
    this.#writer.head(this.field, head.length + 1 + varintSize(bytes) + bytes);
    this.#writer.writeShort(head);
    this.#writer.head(VALUE_FIELD, bytes);
  }

  /** Writes an attribute whose value has an unknown size. */
  #writeAttribute(key: string, say: () => void): void {
    if (this.#writer.isFillingTemplate) return;
    const attribute = this.#writer.beginMessage(this.field);
    this.#writer.writeShort(this.#encodedKey(key));
    const value = this.#writer.beginMessage(VALUE_FIELD);
    say();
    // The value ends first. If its length needs more bytes, it moves within the attribute.
    this.#writer.endMessage(value);
    this.#writer.endMessage(attribute);
  }

  #encodedKey(key: string): Buffer {
    const known = this.#encodedKeys.get(key);
    if (known) return known;
    const wire = new ProtobufWriter(64);
    wire.text(KEY_FIELD, key);
    const head = wire.copyFrom(0);
    if (this.#encodedKeys.size < MAX_CACHED_KEYS) this.#encodedKeys.set(key, head);
    return head;
  }
}
