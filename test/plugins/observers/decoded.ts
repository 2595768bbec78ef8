// A collector's view of an export: JSON unchanged, and protobuf decoded to the same form by its
// message tables.
import { gunzipSync } from "node:zlib";
import type { UpstreamRequest } from "tollgate/testing";
import {
  REQUEST_SHAPES,
  type MessageShape,
  type Scalar,
  type Signal,
} from "../../../plugins/observers/otlp/message-shapes.ts";

export type Decoded = { [field: string]: any };

/** The items of an export: spans, metrics, or log records of one or several resources. */
export function itemsOf(post: UpstreamRequest): Decoded[] {
  const { headers, path } = post;
  const signal = path.split("/").at(-1) as Signal;
  const body = headers["content-encoding"] === "gzip" ? gunzipSync(post.body) : post.body;
  const message =
    headers["content-type"] === "application/json"
      ? JSON.parse(body.toString())
      : decode(body, REQUEST_SHAPES[signal].shape);
  const [top, group, items] = REQUEST_SHAPES[signal].names;
  return (message[top] as Decoded[]).flatMap((one) =>
    (one[group] as Decoded[]).flatMap((scope) => scope[items] as Decoded[]),
  );
}

/** Attributes as an object. */
export const attributesOf = ({ attributes = [] }: Decoded): Record<string, unknown> =>
  Object.fromEntries(
    attributes.map(({ key, value }: Decoded) => {
      const [plain] = Object.values(value) as [any];
      return [key, plain.values ? plain.values.map((one: Decoded) => one["stringValue"]) : plain];
    }),
  );

export function decode(bytes: Buffer, shape: MessageShape): Decoded {
  const message: Decoded = {};
  const names = new Map(
    Object.entries(shape).map(([name, field]) => [field.fieldNumber, { name, ...field }]),
  );
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const fixed = (type: Scalar): unknown => {
    const from = at;
    at += type === "fixed32" ? 4 : 8;
    if (type === "fixed32") return bytes.readUInt32LE(from);
    return type === "double" ? bytes.readDoubleLE(from) : String(bytes.readBigUInt64LE(from));
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const field = names.get(tag >> 3);
    if (!field) throw new Error(`no field ${tag >> 3}`);
    const { name, type, isRepeated } = field;
    let value: unknown;
    const wire = tag & 7;
    if (wire === 2) {
      const length = Number(varint());
      const inside = bytes.subarray(at, at + length);
      if (inside.length < length) throw new Error(`${name} is cut`);
      if (isRepeated && (type === "fixed64" || type === "double")) {
        const end = at + length;
        const list: unknown[] = [];
        while (at < end) list.push(fixed(type));
        message[name] = list;
        continue;
      }
      at += length;
      value =
        typeof type !== "string"
          ? decode(inside, type)
          : inside.toString(type === "hex" ? "hex" : "utf8");
    } else if (wire === 0) {
      const number = varint();
      value =
        type === "bool"
          ? number === 1n
          : type === "int64"
            ? String(BigInt.asIntN(64, number))
            : Number(number);
    } else value = fixed(type as Scalar);
    if (isRepeated) (message[name] ??= []).push(value);
    else message[name] = value;
  }
  return message;
}
