// The messages around the items of a batch, which name the resource and the scope. They are the
// same for all batches of a signal.
import type { BatchItems } from "./batch-items.ts";
import { JsonItems } from "./json-items.ts";
import { ProtobufItems } from "./protobuf-items.ts";
import { encodeProtobuf } from "./protobuf.ts";
import type { ProtobufMessage } from "./message-shapes.ts";
import type { Destination } from "./settings.ts";
import {
  REQUEST_SHAPES,
  type FieldShape,
  type MessageShape,
  type Signal,
} from "./message-shapes.ts";
import { messageHeader } from "./protobuf-writer.ts";

export interface MessageEnvelope {
  /** Creates an empty batch. */
  createBatch(): BatchItems;
  encode(items: BatchItems): Buffer;
}

const EMPTY_BUFFER = Buffer.alloc(0);
const SCOPE = { name: "tollgate" };

export const createEnvelope = (
  protocol: Destination["protocol"],
  signal: Signal,
  resource: ProtobufMessage,
): MessageEnvelope =>
  protocol === "http/json"
    ? createJsonEnvelope(signal, resource)
    : createProtobufEnvelope(signal, resource);

function createJsonEnvelope(signal: Signal, resource: ProtobufMessage): MessageEnvelope {
  const [top, group, each] = REQUEST_SHAPES[signal].names;
  const whole = { [top]: [{ resource, [group]: [{ scope: SCOPE, [each]: [] }] }] };
  const end = "]}]}]}";
  const before = Buffer.from(JSON.stringify(whole).slice(0, -end.length));
  const after = Buffer.from(end);
  return {
    createBatch: () => new JsonItems(),
    encode: (items) => items.encodeWith(() => before, after),
  };
}

type EnvelopeField = FieldShape & { readonly type: MessageShape };

function createProtobufEnvelope(signal: Signal, resource: ProtobufMessage): MessageEnvelope {
  const { names, shape } = REQUEST_SHAPES[signal];
  const [top, group, each] = names;
  const below = (of: MessageShape, name: string) => of[name] as EnvelopeField;
  const outer = below(shape, top);
  const inner = below(outer.type, group);
  const resourceBytes = encodeProtobuf({ resource }, outer.type);
  const scopeBytes = encodeProtobuf({ scope: SCOPE }, inner.type);
  const head = (length: number): Buffer => {
    const within = scopeBytes.length + length;
    const innerHead = messageHeader(inner.fieldNumber, within);
    const outerHead = messageHeader(
      outer.fieldNumber,
      resourceBytes.length + innerHead.length + within,
    );
    return Buffer.concat([outerHead, resourceBytes, innerHead, scopeBytes]);
  };
  return {
    createBatch: () => new ProtobufItems(below(inner.type, each)),
    encode: (items) => items.encodeWith(head, EMPTY_BUFFER),
  };
}
