// Encodes an in-memory message as protobuf by its shape, as far as OTLP needs it.
import type { FieldShape, MessageShape, ProtobufMessage, Scalar } from "./message-shapes.ts";

export function encodeProtobuf(message: ProtobufMessage, shape: MessageShape): Buffer {
  const wire = new ProtobufWriter(64 * 1024);
  writeMessage(wire, message, shape);
  return wire.bytes();
}

function writeMessage(wire: ProtobufWriter, message: ProtobufMessage, shape: MessageShape): void {
  for (const name in message) {
    const value = message[name];
    if (value === undefined) continue;
    const field = shape[name];
    if (!field) throw new Error(`Unknown OTLP field ${name}.`);
    if (!field.isRepeated) writeField(wire, field, value);
    else if (field.type === "fixed64" || field.type === "double")
      writePacked(wire, field, value as never);
    else for (const each of value as readonly unknown[]) writeField(wire, field, each);
  }
}

export function writeField(
  wire: ProtobufWriter,
  { fieldNumber, type }: FieldShape,
  value: unknown,
): void {
  if (typeof type === "string") return SCALARS[type](wire, fieldNumber, value as never);
  const mark = wire.beginMessage(fieldNumber);
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

const SCALARS: { readonly [S in Scalar]: (wire: ProtobufWriter, n: number, value: never) => void } =
  {
    string: (wire, n, value: string) => wire.text(n, value),
    hex: (wire, n, value: string) => wire.hex(n, value),
    bool: (wire, n, value: boolean) => wire.varint(n, Number(value)),
    enum: (wire, n, value: number) => wire.varint(n, value),
    int64: (wire, n, value: string) => wire.varint64(n, BigInt(value)),
    fixed64: (wire, n, value: string) => wire.fixed64(n, value),
    fixed32: (wire, n, value: number) => wire.fixed32(n, value),
    double: (wire, n, value: number) => wire.double(n, value),
  };

const VARINT = 0;
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

  /** Returns the bytes written so far as a view of this writer's buffer. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#position);
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
    this.#tag(n, LEN);
    const { length } = text;
    if (length < 0x80 && this.#shortAscii(text)) return;
    const size = Buffer.byteLength(text);
    this.#ensureCapacity(size + 10);
    this.#varint(size);
    this.#position += this.#buffer.write(text, this.#position);
  }

  /**
   * Writes the length and the bytes of a text of up to 127 characters, with a loop, which is faster
   * than a call. If the text is not ASCII, writes nothing and returns false.
   */
  #shortAscii(text: string): boolean {
    const { length } = text;
    this.#ensureCapacity(1 + length);
    const buffer = this.#buffer;
    const from = this.#position + 1;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      buffer[from + i] = code;
    }
    buffer[from - 1] = length;
    this.#position = from + length;
    return true;
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
