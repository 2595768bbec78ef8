// Encodes an in-memory message as protobuf by its shape, as far as OTLP needs it.
import type { FieldShape, MessageShape, ProtobufMessage, Scalar } from "./message-shapes.ts";
import { ProtobufWriter } from "./protobuf-writer.ts";

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
