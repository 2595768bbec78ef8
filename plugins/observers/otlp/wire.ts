// Bytes as protobuf has them: tags, numbers, texts, and messages within messages.

const VARINT = 0;
const I64 = 1;
const LEN = 2;
const I32 = 5;

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

  /** What was written; it is this buffer's own memory. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  /** Where a message begins whose length is known when it is closed. */
  begin(n: number): number {
    this.#tag(n, LEN);
    return ++this.#at;
  }

  /** Its length stands before it: most are short, and what is not moves up. */
  close(from: number): void {
    const length = this.#at - from;
    if (length < 0x80) {
      this.#buffer[from - 1] = length;
      return;
    }
    const more = sizeOf(length) - 1;
    this.#room(more);
    this.#buffer.copyWithin(from + more, from, this.#at);
    this.#at = from - 1;
    this.#varint(length);
    this.#at += length;
  }

  /** A message that is bytes already. */
  message(n: number, bytes: Buffer): void {
    this.#tag(n, LEN);
    this.#varint(bytes.length);
    this.raw(bytes);
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
