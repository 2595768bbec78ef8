// Writes protobuf: tags, numbers, texts, and nested messages.
import type { Template } from "./batch-items.ts";

const VARINT = 0;
const I64 = 1;
const LEN = 2;
const I32 = 5;

const TWO_32 = 2 ** 32;
const NANOS_PER_MS = 1_000_000;

/** Value of a hex digit, by its character code. */
const HEX_VALUES = new Uint8Array(128);
for (const [i, digit] of [..."0123456789abcdef"].entries()) HEX_VALUES[digit.charCodeAt(0)] = i;
for (const [i, digit] of [..."ABCDEF"].entries()) HEX_VALUES[digit.charCodeAt(0)] = 10 + i;

export class ProtobufWriter {
  #buffer: Buffer;
  #view: DataView;
  #position = 0;
  /** Offsets of IDs, times, and doubles that were written since `beginRecording`. */
  #recordedOffsets: number[] | undefined;
  /** Offsets of the template's variable values, relative to its start. */
  #templateOffsets: readonly number[] = [];
  #nextOffset = 0;
  #templateStart = 0;
  #isFilling = false;

  constructor(size: number) {
    this.#buffer = Buffer.allocUnsafe(size);
    this.#view = viewOf(this.#buffer);
  }

  beginRecording(): void {
    this.#recordedOffsets = [];
  }
  endRecording(): readonly number[] {
    const notes = this.#recordedOffsets ?? [];
    this.#recordedOffsets = undefined;
    return notes;
  }

  /**
   * Copies a template. Its IDs, times, and doubles belong to another item and are overwritten next.
   */
  beginTemplate({ bytes, offsets }: Template): void {
    this.#templateStart = this.#position;
    this.raw(bytes);
    this.#templateOffsets = offsets;
    this.#nextOffset = 0;
    this.#isFilling = true;
  }
  endTemplate(): void {
    this.#isFilling = false;
  }
  get isFillingTemplate(): boolean {
    return this.#isFilling;
  }

  fillHex(digits: string): void {
    this.#hex(this.#next(), digits);
  }
  fillMoment(ms: number): void {
    this.#moment(this.#next(), ms);
  }
  fillDouble(value: number): void {
    this.#view.setFloat64(this.#next(), value, true);
  }
  #next(): number {
    return this.#templateStart + this.#templateOffsets[this.#nextOffset++]!;
  }

  get length(): number {
    return this.#position;
  }

  /** Returns the bytes written so far as a view of this writer's buffer. */
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

  raw(bytes: Buffer): void {
    this.#ensureCapacity(bytes.length);
    this.#buffer.set(bytes, this.#position);
    this.#position += bytes.length;
  }

  text(n: number, text: string): void {
    if (text.length < 0x80 && this.tryAscii(n, text)) return;
    this.#tag(n, LEN);
    const size = Buffer.byteLength(text);
    this.#ensureCapacity(size + 10);
    this.#varint(size);
    this.#position += this.#buffer.write(text, this.#position);
  }

  /**
   * Writes a text of up to 127 ASCII characters. If it contains other characters, writes nothing
   * and returns false.
   */
  tryAscii(n: number, text: string): boolean {
    const { length } = text;
    this.#ensureCapacity(20 + length);
    const start = this.#position;
    this.#tag(n, LEN);
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
    this.#recordedOffsets?.push(this.#position);
    this.#hex(this.#position, digits);
    this.#position += size;
  }

  #hex(at: number, digits: string): void {
    const buffer = this.#buffer;
    for (let i = 0; i < digits.length >> 1; i++)
      buffer[at + i] =
        (HEX_VALUES[digits.charCodeAt(2 * i)]! << 4) | HEX_VALUES[digits.charCodeAt(2 * i + 1)]!;
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

  moment(n: number, ms: number): void {
    this.#tag(n, I64);
    this.#recordedOffsets?.push(this.#position);
    this.#moment(this.#position, ms);
    this.#position += 8;
  }

  /**
   * Writes Unix milliseconds, rounded, as nanoseconds. The value exceeds the safe integers, so it
   * is written in two halves.
   */
  #moment(at: number, ms: number): void {
    const whole = Math.max(0, Math.round(ms));
    const low = (whole % TWO_32) * NANOS_PER_MS;
    const carry = Math.floor(low / TWO_32);
    const high = Math.floor(whole / TWO_32) * NANOS_PER_MS + carry;
    this.#view.setUint32(at, low - carry * TWO_32, true);
    this.#view.setUint32(at + 4, high, true);
  }

  /** Writes a value of a packed list. */
  packedDouble(value: number): void {
    this.#ensureCapacity(8);
    this.#recordedOffsets?.push(this.#position);
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
export function varintSize(value: number): number {
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
