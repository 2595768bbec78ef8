import { ProtobufAttributes } from "./protobuf-attributes.ts";
import type { BatchItems, TemplateSet, TemplateName, TemplateWriter } from "./batch-items.ts";
import { writeField } from "./protobuf.ts";
import type { ProtobufMessage } from "./message-shapes.ts";
import type { FieldShape, MessageShape } from "./message-shapes.ts";
import { ProtobufWriter } from "./protobuf-writer.ts";

const INITIAL_BYTES = 64 * 1024;
/**
 * Space for the header before the items. A batch is sent from the buffer that it was written to,
 * because a copy per batch would cause full garbage collections.
 */
const HEADER_BYTES = 1_024;
/** Bytes reserved for the length of a span or a log record. */
const LENGTH_BYTES = 2;

/** Items encoded one after the other as in the message around them, each with its tag. */
export class ProtobufItems implements BatchItems {
  readonly attributes: ProtobufAttributes;
  count = 0;
  readonly #field: FieldShape & { readonly type: MessageShape };
  readonly #writer = new ProtobufWriter(INITIAL_BYTES);
  /** Shape of the current message. */
  #shape: MessageShape = {};
  #itemStart = 0;
  /** End of the last complete item. */
  #itemsEnd = HEADER_BYTES;

  /** `field`: the field of the outer message that contains the items. */
  constructor(field: FieldShape) {
    this.#field = field as FieldShape & { type: MessageShape };
    this.#writer.skip(HEADER_BYTES);
    this.attributes = new ProtobufAttributes(this.#writer);
  }

  encodeWith(head: (length: number) => Buffer, tail: Buffer): Buffer {
    this.#writer.truncate(this.#itemsEnd);
    const all = this.#writer.bytes();
    const before = head(all.length - HEADER_BYTES);
    const from = HEADER_BYTES - before.length;
    if (from < 0 || tail.length > 0)
      return Buffer.concat([before, all.subarray(HEADER_BYTES), tail]);
    all.set(before, from);
    return all.subarray(from);
  }

  begin(): void {
    // Discards an item that was not completed.
    this.#writer.truncate(this.#itemsEnd);
    this.#writer.endTemplate();
    this.#itemStart = this.#writer.beginMessage(this.#field.fieldNumber, LENGTH_BYTES);
    this.#enterMessage(this.#field.type);
  }
  end(): void {
    this.#writer.endMessage(this.#itemStart, LENGTH_BYTES);
    this.#finishItem();
  }

  add(item: ProtobufMessage): void {
    this.#writer.truncate(this.#itemsEnd);
    writeField(this.#writer, this.#field, item);
    this.#finishItem();
  }

  clear(): void {
    this.#itemsEnd = HEADER_BYTES;
    this.count = 0;
  }

  id(field: string, digits: string | undefined): void {
    if (digits === undefined) return;
    if (this.#writer.isFillingTemplate) this.#writer.fillHex(digits);
    else this.#writer.hex(this.#fieldShape(field).fieldNumber, digits);
  }
  text(field: string, text: string | undefined): void {
    if (text !== undefined && !this.#writer.isFillingTemplate)
      this.#writer.text(this.#fieldShape(field).fieldNumber, text);
  }
  number(field: string, value: number): void {
    if (this.#writer.isFillingTemplate) return;
    const { fieldNumber, type } = this.#fieldShape(field);
    if (type === "fixed32") this.#writer.fixed32(fieldNumber, value);
    else this.#writer.varint(fieldNumber, value);
  }
  timestamp(field: string, ms: number): void {
    if (this.#writer.isFillingTemplate) this.#writer.fillMoment(ms);
    else this.#writer.moment(this.#fieldShape(field).fieldNumber, ms);
  }

  message(field: string, say: () => void): void {
    if (this.#writer.isFillingTemplate) return say();
    const shape = this.#shape;
    const { fieldNumber, type } = this.#fieldShape(field);
    const mark = this.#writer.beginMessage(fieldNumber);
    this.#enterMessage(type as MessageShape);
    say();
    this.#enterMessage(shape);
    this.#writer.endMessage(mark);
  }

  writeFromTemplate<T>(
    kept: TemplateSet | undefined,
    part: TemplateName,
    of: T,
    say: TemplateWriter<T>,
  ): void {
    const wire = this.#writer;
    const template = kept?.[part];
    if (template) {
      wire.beginTemplate(template);
      say.writeVariable(this, of);
      return wire.endTemplate();
    }
    const from = wire.length;
    wire.beginRecording();
    say.writeVariable(this, of);
    const holes = wire.endRecording();
    say.writeFull(this, of);
    if (kept) kept[part] = { bytes: wire.copyFrom(from), offsets: holes.map((at) => at - from) };
  }

  #finishItem(): void {
    this.#itemsEnd = this.#writer.length;
    this.count++;
  }

  #enterMessage(shape: MessageShape): void {
    this.#shape = shape;
    this.attributes.field = shape["attributes"]?.fieldNumber ?? 0;
  }

  #fieldShape(field: string): FieldShape {
    const found = this.#shape[field];
    if (!found) throw new Error(`Unknown OTLP field ${field}.`);
    return found;
  }
}
