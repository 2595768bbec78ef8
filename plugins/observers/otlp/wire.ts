// Bytes as protobuf has them: tags, numbers, texts, and messages within messages.
import type { Template } from "./items.ts";

const VARINT = 0;
const I64 = 1;
const LEN = 2;
const I32 = 5;

const TWO_32 = 2 ** 32;
/** In a millisecond. */
const NANOS = 1_000_000;

/** Of a hex digit, by its character. */
const NIBBLE = new Uint8Array(128);
for (const [i, digit] of [..."0123456789abcdef"].entries()) NIBBLE[digit.charCodeAt(0)] = i;
for (const [i, digit] of [..."ABCDEF"].entries()) NIBBLE[digit.charCodeAt(0)] = 10 + i;

export class Wire {
  #buffer: Buffer;
  #view: DataView;
  #at = 0;
  /** Where ids, moments and doubles were written, while that is noted. */
  #notes: number[] | undefined;
  /** Where those of a template stand, from its begin on, and which of them is next. */
  #holes: readonly number[] = [];
  #hole = 0;
  #base = 0;
  #fills = false;

  constructor(size: number) {
    this.#buffer = Buffer.allocUnsafe(size);
    this.#view = viewOf(this.#buffer);
  }

  note(): void {
    this.#notes = [];
  }
  noted(): readonly number[] {
    const notes = this.#notes ?? [];
    this.#notes = undefined;
    return notes;
  }

  /** Its ids, moments and doubles are those of another one, which are said next. */
  fill({ bytes, holes }: Template): void {
    this.#base = this.#at;
    this.raw(bytes);
    this.#holes = holes;
    this.#hole = 0;
    this.#fills = true;
  }
  filled(): void {
    this.#fills = false;
  }
  get fills(): boolean {
    return this.#fills;
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
    return this.#base + this.#holes[this.#hole++]!;
  }

  get length(): number {
    return this.#at;
  }

  /** What was written; it is this buffer's own memory. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  /** What was written from there on, in memory of its own: a slice of Node's pool would keep 64 KB. */
  copied(from: number): Buffer {
    const copy = Buffer.allocUnsafeSlow(this.#at - from);
    this.#buffer.copy(copy, 0, from, this.#at);
    return copy;
  }

  /** Room for what is written there later. */
  skip(bytes: number): void {
    this.#room(bytes);
    this.#at += bytes;
  }

  /** What stands behind it is gone. */
  cut(end: number): void {
    this.#at = end;
  }

  /** Where a message begins whose length is known when it is closed; so many bytes are kept for that. */
  begin(n: number, lengthBytes = 1): number {
    this.#tag(n, LEN);
    return (this.#at += lengthBytes);
  }

  /** Its length stands before it: what needs another room for that moves. */
  close(from: number, lengthBytes = 1): void {
    const length = this.#at - from;
    const size = sizeOf(length);
    const more = size - lengthBytes;
    if (more !== 0) {
      if (more > 0) this.#room(more);
      this.#buffer.copyWithin(from + more, from, this.#at);
    }
    this.#at = from - lengthBytes;
    this.#varint(length);
    this.#at += length;
  }

  head(n: number, length: number): void {
    this.#tag(n, LEN);
    this.#varint(length);
  }

  raw(bytes: Buffer): void {
    this.#room(bytes.length);
    this.#buffer.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  text(n: number, text: string): void {
    if (text.length < 0x80 && this.plain(n, text)) return;
    this.#tag(n, LEN);
    const size = Buffer.byteLength(text);
    this.#room(size + 10);
    this.#varint(size);
    this.#at += this.#buffer.write(text, this.#at);
  }

  /** False, and nothing is written, where it is not all ASCII. At most 127 characters. */
  plain(n: number, text: string): boolean {
    const { length } = text;
    this.#room(20 + length);
    const start = this.#at;
    this.#tag(n, LEN);
    const buffer = this.#buffer;
    const from = this.#at + 1;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) {
        this.#at = start;
        return false;
      }
      buffer[from + i] = code;
    }
    buffer[from - 1] = length;
    this.#at = from + length;
    return true;
  }

  /** Few bytes: a loop is faster than a call that copies. */
  short(bytes: Buffer): void {
    const { length } = bytes;
    this.#room(length);
    const buffer = this.#buffer;
    const from = this.#at;
    for (let i = 0; i < length; i++) buffer[from + i] = bytes[i]!;
    this.#at = from + length;
  }

  hex(n: number, digits: string): void {
    this.#tag(n, LEN);
    const size = digits.length >> 1;
    this.#room(size + 10);
    this.#varint(size);
    this.#notes?.push(this.#at);
    this.#hex(this.#at, digits);
    this.#at += size;
  }

  #hex(at: number, digits: string): void {
    const buffer = this.#buffer;
    for (let i = 0; i < digits.length >> 1; i++)
      buffer[at + i] =
        (NIBBLE[digits.charCodeAt(2 * i)]! << 4) | NIBBLE[digits.charCodeAt(2 * i + 1)]!;
  }

  /** What is no negative number, and no more than 2^53. */
  varint(n: number, value: number): void {
    this.#tag(n, VARINT);
    this.#varint(value);
  }

  varint64(n: number, value: bigint): void {
    this.#tag(n, VARINT);
    let left = BigInt.asUintN(64, value);
    while (left > 0x7fn) {
      this.#buffer[this.#at++] = Number(left & 0x7fn) | 0x80;
      left >>= 7n;
    }
    this.#buffer[this.#at++] = Number(left);
  }

  double(n: number, value: number): void {
    this.#tag(n, I64);
    this.oneDouble(value);
  }
  fixed64(n: number, digits: string): void {
    this.#tag(n, I64);
    this.oneFixed64(digits);
  }
  fixed32(n: number, value: number): void {
    this.#tag(n, I32);
    this.#view.setUint32(this.#at, value, true);
    this.#at += 4;
  }

  moment(n: number, ms: number): void {
    this.#tag(n, I64);
    this.#notes?.push(this.#at);
    this.#moment(this.#at, ms);
    this.#at += 8;
  }

  /** Unix milliseconds, rounded, as nanoseconds: more than a number holds, so in two halves. */
  #moment(at: number, ms: number): void {
    const whole = Math.max(0, Math.round(ms));
    const low = (whole % TWO_32) * NANOS;
    const carry = Math.floor(low / TWO_32);
    const high = Math.floor(whole / TWO_32) * NANOS + carry;
    this.#view.setUint32(at, low - carry * TWO_32, true);
    this.#view.setUint32(at + 4, high, true);
  }

  /** Of a list that stands packed in its field. */
  oneDouble(value: number): void {
    this.#room(8);
    this.#notes?.push(this.#at);
    this.#view.setFloat64(this.#at, value, true);
    this.#at += 8;
  }
  oneFixed64(digits: string): void {
    this.#room(8);
    this.#at = this.#buffer.writeBigUInt64LE(BigInt(digits), this.#at);
  }

  /** With room for a number, or a length, behind it. */
  #tag(n: number, wire: number): void {
    this.#room(20);
    this.#varint(n * 8 + wire);
  }

  #varint(value: number): void {
    let left = value;
    while (left > 0x7f) {
      this.#buffer[this.#at++] = (left & 0x7f) | 0x80;
      left = Math.floor(left / 128);
    }
    this.#buffer[this.#at++] = left;
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes));
    larger.set(this.#buffer.subarray(0, this.#at));
    this.#buffer = larger;
    this.#view = viewOf(larger);
  }
}

const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView =>
  new DataView(buffer, byteOffset, length);

/** Bytes of a varint. */
export function sizeOf(value: number): number {
  let size = 1;
  for (let left = value; left > 0x7f; left = Math.floor(left / 128)) size++;
  return size;
}

/** What stands before a message of this length. */
export function headOf(n: number, length: number): Buffer {
  const wire = new Wire(20);
  wire.head(n, length);
  return wire.bytes();
}
