// Protobuf, as far as OTLP needs it: a message in memory to bytes, by its rows.
import type { FieldShape, MessageShape, Scalar } from "./shapes.ts";
import { Wire } from "./wire.ts";

export type Message = { readonly [field: string]: unknown };

export function protobuf(message: Message, shape: MessageShape): Buffer {
  const wire = new Wire(64 * 1024);
  write(wire, message, shape);
  return wire.bytes();
}

function write(wire: Wire, message: Message, shape: MessageShape): void {
  for (const name in message) {
    const value = message[name];
    if (value === undefined) continue;
    const field = shape[name];
    if (!field) throw new Error(`OTLP has no field ${name} here.`);
    if (!field.many) one(wire, field, value);
    else if (field.type === "fixed64" || field.type === "double")
      packed(wire, field, value as never);
    else for (const each of value as readonly unknown[]) one(wire, field, each);
  }
}

export function one(wire: Wire, { n, type }: FieldShape, value: unknown): void {
  if (typeof type === "string") return SCALARS[type](wire, n, value as never);
  const mark = wire.begin(n);
  write(wire, value as Message, type);
  wire.close(mark);
}

function packed(
  wire: Wire,
  { n, type }: FieldShape,
  values: readonly string[] & readonly number[],
): void {
  if (values.length === 0) return;
  const mark = wire.begin(n);
  if (type === "double") for (const value of values) wire.oneDouble(value);
  else for (const value of values) wire.oneFixed64(value);
  wire.close(mark);
}

const SCALARS: { readonly [S in Scalar]: (wire: Wire, n: number, value: never) => void } = {
  string: (wire, n, value: string) => wire.text(n, value),
  hex: (wire, n, value: string) => wire.hex(n, value),
  bool: (wire, n, value: boolean) => wire.varint(n, Number(value)),
  enum: (wire, n, value: number) => wire.varint(n, value),
  int64: (wire, n, value: string) => wire.varint64(n, BigInt(value)),
  fixed64: (wire, n, value: string) => wire.fixed64(n, value),
  fixed32: (wire, n, value: number) => wire.fixed32(n, value),
  double: (wire, n, value: number) => wire.double(n, value),
};
