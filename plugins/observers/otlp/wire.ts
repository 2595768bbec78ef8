// Bytes as protobuf has them: tags, numbers, texts, and messages within messages.

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
  #at = 0;

  constructor(size: number) {
    this.#buffer = Buffer.allocUnsafe(size);
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
    this.#tag(n, LEN);
    const { length } = text;
    if (length < 0x80) {
      this.#room(1 + length);
      const buffer = this.#buffer;
      const from = this.#at + 1;
      let i = 0;
      for (; i < length; i++) {
        const code = text.charCodeAt(i);
        if (code > 0x7f) break;
        buffer[from + i] = code;
      }
      if (i === length) {
        buffer[from - 1] = length;
        this.#at = from + length;
        return;
      }
    }
    const size = Buffer.byteLength(text);
    this.#room(size + 10);
    this.#varint(size);
    this.#at += this.#buffer.write(text, this.#at);
  }

  hex(n: number, digits: string): void {
    this.#tag(n, LEN);
    const size = digits.length >> 1;
    this.#room(size + 10);
    this.#varint(size);
    for (let i = 0; i < size; i++)
      this.#buffer[this.#at++] =
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
    this.#at = this.#buffer.writeUInt32LE(value, this.#at);
  }

  /** Unix milliseconds, rounded, as nanoseconds: more than a number holds, so in two halves. */
  moment(n: number, ms: number): void {
    this.#tag(n, I64);
    const whole = Math.max(0, Math.round(ms));
    const low = (whole % TWO_32) * NANOS;
    const carry = Math.floor(low / TWO_32);
    const high = Math.floor(whole / TWO_32) * NANOS + carry;
    this.#at = this.#buffer.writeUInt32LE(low - carry * TWO_32, this.#at);
    this.#at = this.#buffer.writeUInt32LE(high, this.#at);
  }

  /** Of a list that stands packed in its field. */
  oneDouble(value: number): void {
    this.#room(8);
    this.#at = this.#buffer.writeDoubleLE(value, this.#at);
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
  }
}

/** Bytes of a varint. */
function sizeOf(value: number): number {
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
