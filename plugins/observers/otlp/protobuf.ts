// Protobuf, as far as OTLP needs it: a message in memory to bytes, by its rows.
import type { FieldShape, MessageShape, Scalar } from "./shapes.ts";

export type Message = { readonly [field: string]: unknown };

const VARINT = 0;
const I64 = 1;
const LEN = 2;
const I32 = 5;

const WIRE: { readonly [S in Scalar]: number } = {
  string: LEN,
  hex: LEN,
  bool: VARINT,
  enum: VARINT,
  int64: VARINT,
  fixed64: I64,
  fixed32: I32,
  double: I64,
};

export function protobuf(message: Message, shape: MessageShape): Buffer {
  const writer = new Writer();
  writer.message(message, shape);
  return writer.bytes();
}

class Writer {
  #buffer = Buffer.allocUnsafe(64 * 1024);
  #at = 0;

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  message(message: Message, shape: MessageShape): void {
    for (const name in message) {
      const value = message[name];
      if (value === undefined) continue;
      const field = shape[name];
      if (!field) throw new Error(`OTLP has no field ${name} here.`);
      if (!field.many) this.#field(field, value);
      else if (typeof field.type === "string" && WIRE[field.type] !== LEN)
        this.#packed(field.n, field.type, value as readonly unknown[]);
      else for (const each of value as readonly unknown[]) this.#field(field, each);
    }
  }

  #field({ n, type }: FieldShape, value: unknown): void {
    if (typeof type !== "string") {
      this.#tag(n, LEN);
      return this.#within(() => this.message(value as Message, type));
    }
    this.#tag(n, WIRE[type]);
    return this.#scalar(type, value);
  }

  #packed(n: number, type: Scalar, values: readonly unknown[]): void {
    if (values.length === 0) return;
    this.#tag(n, LEN);
    this.#within(() => {
      for (const value of values) this.#scalar(type, value);
    });
  }

  /** Its length stands before it and is known after it: most are short, and what is not moves up. */
  #within(write: () => void): void {
    this.#room(10);
    const from = ++this.#at;
    write();
    const length = this.#at - from;
    const more = sizeOf(length) - 1;
    if (more > 0) {
      this.#room(more);
      this.#buffer.copyWithin(from + more, from, this.#at);
    }
    this.#at = from - 1;
    this.#varint(length);
    this.#at += length;
  }

  #tag(n: number, wire: number): void {
    this.#room(10);
    this.#varint(n * 8 + wire);
  }

  #scalar(type: Scalar, value: unknown): void {
    this.#room(10);
    if (type === "string" || type === "hex")
      return this.#text(value as string, type === "hex" ? "hex" : "utf8");
    if (type === "double") this.#at = this.#buffer.writeDoubleLE(value as number, this.#at);
    else if (type === "fixed64")
      this.#at = this.#buffer.writeBigUInt64LE(BigInt(value as string), this.#at);
    else if (type === "fixed32") this.#at = this.#buffer.writeUInt32LE(value as number, this.#at);
    else if (type === "int64") this.#varint64(BigInt.asUintN(64, BigInt(value as string)));
    else this.#varint(Number(value));
    return undefined;
  }

  #text(text: string, encoding: "utf8" | "hex"): void {
    const length = Buffer.byteLength(text, encoding);
    this.#varint(length);
    this.#room(length);
    this.#at += this.#buffer.write(text, this.#at, encoding);
  }

  #varint(value: number): void {
    let left = value;
    while (left > 0x7f) {
      this.#buffer[this.#at++] = (left & 0x7f) | 0x80;
      left = Math.floor(left / 128);
    }
    this.#buffer[this.#at++] = left;
  }

  #varint64(value: bigint): void {
    let left = value;
    while (left > 0x7fn) {
      this.#buffer[this.#at++] = Number(left & 0x7fn) | 0x80;
      left >>= 7n;
    }
    this.#buffer[this.#at++] = Number(left);
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

/** Bytes of a varint. */
function sizeOf(value: number): number {
  let size = 1;
  for (let left = value; left > 0x7f; left = Math.floor(left / 128)) size++;
  return size;
}
