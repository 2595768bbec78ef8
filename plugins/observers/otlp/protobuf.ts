// Encodes an in-memory message as protobuf by its shape, as far as OTLP needs it.
import { Attributes, type AttributeType, Time } from "./attributes.ts";
import {
  ATTRIBUTE,
  VALUE,
  type FieldShape,
  type MessageShape,
  type ProtobufMessage,
} from "./message-shapes.ts";

export function encodeProtobuf(message: ProtobufMessage, shape: MessageShape): Buffer {
  const wire = new ProtobufWriter(64 * 1024);
  writeMessage(wire, message, shape);
  return wire.bytes();
}

export function writeMessage(
  wire: ProtobufWriter,
  message: ProtobufMessage,
  shape: MessageShape,
): void {
  for (const name in message) {
    const value = message[name];
    if (value === undefined) continue;
    const field = shape[name];
    if (!field) throw new Error(`Unknown OTLP field ${name}.`);
    if (value instanceof Attributes) writeAttributes(wire, field.fieldNumber, value);
    else if (!field.isRepeated) writeField(wire, field, value);
    else if (field.type === "fixed64" || field.type === "double")
      writePacked(wire, field, value as never);
    else for (const each of value as readonly unknown[]) writeField(wire, field, each);
  }
}

function writeField(
  wire: ProtobufWriter,
  { fieldNumber: n, type }: FieldShape,
  value: unknown,
): void {
  switch (type) {
    case "string":
      return wire.text(n, value as string);
    case "hex":
      return wire.hex(n, value as string);
    case "fixed64":
      return value instanceof Time ? wire.time(n, value.ms) : wire.fixed64(n, value as string);
    case "fixed32":
      return wire.fixed32(n, value as number);
    case "enum":
    case "bool":
      return wire.varint(n, Number(value));
    case "double":
      return wire.double(n, value as number);
    case "int64":
      return wire.varint64(n, BigInt(value as string));
  }
  const mark = wire.beginMessage(n);
  writeMessage(wire, value as ProtobufMessage, type);
  wire.endMessage(mark);
}

function writePacked(
  wire: ProtobufWriter,
  { fieldNumber, type }: FieldShape,
  values: readonly string[] & readonly number[],
): void {
  if (values.length === 0) return;
  const mark = wire.beginMessage(fieldNumber);
  if (type === "double") for (const value of values) wire.packedDouble(value);
  else for (const value of values) wire.packedFixed64(value);
  wire.endMessage(mark);
}

const KEY_FIELD = ATTRIBUTE["key"]!.fieldNumber;
const VALUE_FIELD = ATTRIBUTE["value"]!.fieldNumber;
const STRING_FIELD = VALUE["stringValue"]!.fieldNumber;
const BOOL_FIELD = VALUE["boolValue"]!.fieldNumber;
const INT_FIELD = VALUE["intValue"]!.fieldNumber;
const DOUBLE_FIELD = VALUE["doubleValue"]!.fieldNumber;
const ARRAY_FIELD = VALUE["arrayValue"]!.fieldNumber;
const SINGLE_VALUE_FIELD = 1;

/**
 * Maximum number of characters for which the lengths of the text and of the containing messages fit
 * into one byte each.
 */
const MAX_SHORT_TEXT = 100;
/**
 * Maximum number of cached key encodings. Gateway names repeat, but clients choose the names of
 * labels.
 */
const MAX_CACHED_KEYS = 256;
const encodedKeys = new Map<string, Buffer>();

/** Writes attributes. Their messages have known lengths, so no message is moved afterwards. */
function writeAttributes(wire: ProtobufWriter, n: number, { entries }: Attributes): void {
  for (let i = 0; i < entries.length; i += 3) {
    const head = encodedKey(entries[i] as string);
    const value = entries[i + 2];
    switch (entries[i + 1] as AttributeType) {
      case "integer": {
        const integer = value as number;
        if (integer < 0) {
          writeLongAttribute(wire, n, head, () => wire.varint64(INT_FIELD, BigInt(integer)));
          continue;
        }
        beginAttribute(wire, n, head, 1 + varintSize(integer));
        wire.varint(INT_FIELD, integer);
        continue;
      }
      case "double":
        beginAttribute(wire, n, head, 9);
        wire.double(DOUBLE_FIELD, value as number);
        continue;
      case "boolean":
        beginAttribute(wire, n, head, 2);
        wire.varint(BOOL_FIELD, Number(value));
        continue;
      case "text":
        writeTextAttribute(wire, n, head, value as string);
        continue;
      case "texts":
        writeLongAttribute(wire, n, head, () => {
          const all = wire.beginMessage(ARRAY_FIELD);
          for (const text of value as readonly string[]) {
            const one = wire.beginMessage(SINGLE_VALUE_FIELD);
            wire.text(STRING_FIELD, text);
            wire.endMessage(one);
          }
          wire.endMessage(all);
        });
    }
  }
}

/** Begins an attribute whose value has a known size in bytes. */
function beginAttribute(wire: ProtobufWriter, n: number, head: Buffer, bytes: number): void {
  wire.head(n, head.length + 1 + varintSize(bytes) + bytes);
  wire.writeShort(head);
  wire.head(VALUE_FIELD, bytes);
}

function writeTextAttribute(wire: ProtobufWriter, n: number, head: Buffer, text: string): void {
  const from = wire.length;
  if (text.length <= MAX_SHORT_TEXT) {
    beginAttribute(wire, n, head, 2 + text.length);
    if (wire.shortAscii(STRING_FIELD, text)) return;
    wire.truncate(from);
  }
  writeLongAttribute(wire, n, head, () => wire.text(STRING_FIELD, text));
}

/** Writes an attribute whose value has an unknown size. */
function writeLongAttribute(
  wire: ProtobufWriter,
  n: number,
  head: Buffer,
  writeValue: () => void,
): void {
  const attribute = wire.beginMessage(n);
  wire.writeShort(head);
  const outer = wire.beginMessage(VALUE_FIELD);
  writeValue();
  // The message of the value ends first. If its length needs more bytes, the value is moved within
  // the attribute.
  wire.endMessage(outer);
  wire.endMessage(attribute);
}

function encodedKey(key: string): Buffer {
  const known = encodedKeys.get(key);
  if (known) return known;
  const wire = new ProtobufWriter(64);
  wire.text(KEY_FIELD, key);
  const head = wire.copyFrom(0);
  if (encodedKeys.size < MAX_CACHED_KEYS) encodedKeys.set(key, head);
  return head;
}

const VARINT = 0;
const TWO_32 = 2 ** 32;
const NANOS_PER_MS = 1_000_000;
const I64 = 1;
const LEN = 2;
const I32 = 5;

/** Value of a hex digit, by its character code. */
const HEX_VALUES = new Uint8Array(128);
for (const [i, digit] of [..."0123456789abcdef"].entries()) HEX_VALUES[digit.charCodeAt(0)] = i;
for (const [i, digit] of [..."ABCDEF"].entries()) HEX_VALUES[digit.charCodeAt(0)] = 10 + i;

export class ProtobufWriter {
  #buffer: Buffer;
  #view: DataView;
  #position = 0;

  constructor(size: number) {
    this.#buffer = Buffer.allocUnsafe(size);
    this.#view = viewOf(this.#buffer);
  }

  get length(): number {
    return this.#position;
  }

  /** Returns all written bytes as a view of this writer's buffer. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#position);
  }

  /**
   * Returns a copy of the bytes from an offset. A slice of Node's pool would keep 64 KB in memory.
   */
  copyFrom(from: number): Buffer {
    const copy = Buffer.allocUnsafeSlow(this.#position - from);
    this.#buffer.copy(copy, 0, from, this.#position);
    return copy;
  }

  raw(bytes: Buffer): void {
    this.#ensureCapacity(bytes.length);
    this.#buffer.set(bytes, this.#position);
    this.#position += bytes.length;
  }

  /** Leaves space for bytes that are written later. */
  skip(bytes: number): void {
    this.#ensureCapacity(bytes);
    this.#position += bytes;
  }

  /** Discards all bytes after an offset. */
  truncate(end: number): void {
    this.#position = end;
  }

  /**
   * Begins a message whose length is written when it ends. Reserves `lengthBytes` for the length
   * and returns the offset of the content.
   */
  beginMessage(n: number, lengthBytes = 1): number {
    this.#tag(n, LEN);
    return (this.#position += lengthBytes);
  }

  /**
   * Ends a message and writes its length. Moves the content if the length needs more or fewer bytes
   * than reserved.
   */
  endMessage(from: number, lengthBytes = 1): void {
    const length = this.#position - from;
    const size = varintSize(length);
    const more = size - lengthBytes;
    if (more !== 0) {
      if (more > 0) this.#ensureCapacity(more);
      this.#buffer.copyWithin(from + more, from, this.#position);
    }
    this.#position = from - lengthBytes;
    this.#varint(length);
    this.#position += length;
  }

  head(n: number, length: number): void {
    this.#tag(n, LEN);
    this.#varint(length);
  }

  text(n: number, text: string): void {
    if (text.length < 0x80 && this.shortAscii(n, text)) return;
    this.#tag(n, LEN);
    const size = Buffer.byteLength(text);
    this.#ensureCapacity(size + 10);
    this.#varint(size);
    this.#position += this.#buffer.write(text, this.#position);
  }

  /**
   * Writes a text of up to 127 characters with a loop, which is faster than a function call. If the
   * text is not ASCII, writes nothing and returns false.
   */
  shortAscii(n: number, text: string): boolean {
    const { length } = text;
    const start = this.#position;
    this.#ensureCapacity(20 + length);
    this.#varint(n * 8 + LEN);
    const buffer = this.#buffer;
    const from = this.#position + 1;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) {
        this.#position = start;
        return false;
      }
      buffer[from + i] = code;
    }
    buffer[from - 1] = length;
    this.#position = from + length;
    return true;
  }

  /** Copies few bytes with a loop, which is faster than a call. */
  writeShort(bytes: Buffer): void {
    const { length } = bytes;
    this.#ensureCapacity(length);
    const buffer = this.#buffer;
    const from = this.#position;
    for (let i = 0; i < length; i++) buffer[from + i] = bytes[i]!;
    this.#position = from + length;
  }

  hex(n: number, digits: string): void {
    this.#tag(n, LEN);
    const size = digits.length >> 1;
    this.#ensureCapacity(size + 10);
    this.#varint(size);
    const buffer = this.#buffer;
    const at = this.#position;
    for (let i = 0; i < size; i++)
      buffer[at + i] =
        (HEX_VALUES[digits.charCodeAt(2 * i)]! << 4) | HEX_VALUES[digits.charCodeAt(2 * i + 1)]!;
    this.#position += size;
  }

  /** Writes an integer from 0 to 2^53. */
  varint(n: number, value: number): void {
    this.#tag(n, VARINT);
    this.#varint(value);
  }

  varint64(n: number, value: bigint): void {
    this.#tag(n, VARINT);
    let left = BigInt.asUintN(64, value);
    while (left > 0x7fn) {
      this.#buffer[this.#position++] = Number(left & 0x7fn) | 0x80;
      left >>= 7n;
    }
    this.#buffer[this.#position++] = Number(left);
  }

  double(n: number, value: number): void {
    this.#tag(n, I64);
    this.packedDouble(value);
  }
  fixed64(n: number, digits: string): void {
    this.#tag(n, I64);
    this.packedFixed64(digits);
  }
  /**
   * Writes Unix milliseconds as nanoseconds. The value exceeds the safe integers, so it is written
   * in two halves.
   */
  time(n: number, ms: number): void {
    this.#tag(n, I64);
    const low = (ms % TWO_32) * NANOS_PER_MS;
    const carry = Math.floor(low / TWO_32);
    const high = Math.floor(ms / TWO_32) * NANOS_PER_MS + carry;
    this.#view.setUint32(this.#position, low - carry * TWO_32, true);
    this.#view.setUint32(this.#position + 4, high, true);
    this.#position += 8;
  }
  fixed32(n: number, value: number): void {
    this.#tag(n, I32);
    this.#view.setUint32(this.#position, value, true);
    this.#position += 4;
  }

  /** Writes a value of a packed list. */
  packedDouble(value: number): void {
    this.#ensureCapacity(8);
    this.#view.setFloat64(this.#position, value, true);
    this.#position += 8;
  }
  packedFixed64(digits: string): void {
    this.#ensureCapacity(8);
    this.#position = this.#buffer.writeBigUInt64LE(BigInt(digits), this.#position);
  }

  /** Writes a tag and ensures space for a number or a length after it. */
  #tag(n: number, wire: number): void {
    this.#ensureCapacity(20);
    this.#varint(n * 8 + wire);
  }

  #varint(value: number): void {
    let left = value;
    while (left > 0x7f) {
      this.#buffer[this.#position++] = (left & 0x7f) | 0x80;
      left = Math.floor(left / 128);
    }
    this.#buffer[this.#position++] = left;
  }

  #ensureCapacity(bytes: number): void {
    if (this.#position + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#position + bytes));
    larger.set(this.#buffer.subarray(0, this.#position));
    this.#buffer = larger;
    this.#view = viewOf(larger);
  }
}

const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView =>
  new DataView(buffer, byteOffset, length);

/** Returns the size of a varint in bytes. */
function varintSize(value: number): number {
  let size = 1;
  for (let left = value; left > 0x7f; left = Math.floor(left / 128)) size++;
  return size;
}

/** Returns the tag and length that precede a message of this length. */
export function messageHeader(n: number, length: number): Buffer {
  const wire = new ProtobufWriter(20);
  wire.head(n, length);
  return wire.bytes();
}
