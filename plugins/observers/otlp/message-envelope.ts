// Batches of spans, metrics, or log records, and the messages around them, which name the resource
// and the scope. The messages around are the same for all batches of a signal.
import {
  REQUEST_SHAPES,
  type FieldShape,
  type MessageShape,
  type ProtobufMessage,
  type Signal,
} from "./message-shapes.ts";
import { encodeProtobuf, messageHeader, ProtobufWriter, writeField } from "./protobuf.ts";
import type { Destination } from "./settings.ts";

/**
 * Items, encoded as they are added. Objects that were kept until the batch is sent would survive
 * many garbage collections.
 */
export interface ItemBatch {
  readonly count: number;
  add(item: ProtobufMessage): void;
  /** Returns the message with all items. The buffer is valid until `clear`. */
  encode(): Buffer;
  /** Empties the batch for reuse. */
  clear(): void;
}

export interface MessageEnvelope {
  /** Creates an empty batch. */
  createBatch(): ItemBatch;
}

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
  const start = JSON.stringify(whole).slice(0, -end.length);
  return { createBatch: () => new JsonBatch(start, end) };
}

class JsonBatch implements ItemBatch {
  readonly #start: string;
  readonly #end: string;
  #texts: string[] = [];

  constructor(start: string, end: string) {
    this.#start = start;
    this.#end = end;
  }

  get count(): number {
    return this.#texts.length;
  }

  add(item: ProtobufMessage): void {
    this.#texts.push(JSON.stringify(item));
  }

  encode(): Buffer {
    return Buffer.from(this.#start + this.#texts.join(",") + this.#end);
  }

  clear(): void {
    this.#texts = [];
  }
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
  return { createBatch: () => new ProtobufBatch(below(inner.type, each), head) };
}

const INITIAL_BYTES = 64 * 1024;
/**
 * Space for the header before the items. A batch is sent from the buffer that it was written to,
 * because a copy per batch would cause full garbage collections.
 */
const HEADER_BYTES = 1_024;

/** Items encoded one after the other as in the message around them, each with its tag. */
class ProtobufBatch implements ItemBatch {
  count = 0;
  readonly #field: FieldShape;
  readonly #head: (length: number) => Buffer;
  readonly #writer = new ProtobufWriter(INITIAL_BYTES);
  /** End of the last complete item. */
  #end = HEADER_BYTES;

  /** `field`: the field of the outer message that contains the items. */
  constructor(field: FieldShape, head: (length: number) => Buffer) {
    this.#field = field;
    this.#head = head;
    this.#writer.skip(HEADER_BYTES);
  }

  add(item: ProtobufMessage): void {
    // Discards an item that was not completed.
    this.#writer.truncate(this.#end);
    writeField(this.#writer, this.#field, item);
    this.#end = this.#writer.length;
    this.count++;
  }

  encode(): Buffer {
    this.#writer.truncate(this.#end);
    const all = this.#writer.bytes();
    const before = this.#head(all.length - HEADER_BYTES);
    const from = HEADER_BYTES - before.length;
    if (from < 0) return Buffer.concat([before, all.subarray(HEADER_BYTES)]);
    all.set(before, from);
    return all.subarray(from);
  }

  clear(): void {
    this.#end = HEADER_BYTES;
    this.count = 0;
  }
}
