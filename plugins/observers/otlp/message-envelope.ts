// Batches of spans, metrics, or log records, and the messages that contain them and name the
// resource and the scope. The containing messages are the same for all batches of a signal.
import {
  REQUEST_SHAPES,
  type FieldShape,
  type MessageShape,
  type ProtobufMessage,
  type Signal,
} from "./message-shapes.ts";
import type { Attributes } from "./attributes.ts";
import { encodeProtobuf, messageHeader, ProtobufWriter, writeMessage } from "./protobuf.ts";
import type { Destination } from "./settings.ts";

/**
 * Items, encoded as they are added. Objects that are kept until the batch is sent would survive
 * many garbage collections.
 */
export interface ItemBatch {
  readonly count: number;
  /** Adds an item with its own fields and fields that it shares with other items. */
  add(item: ProtobufMessage, shared?: SharedFields): void;
  /** Returns the message with all items. The buffer is valid until `clear`. */
  encode(): Buffer;
  /** Empties the batch for reuse. */
  clear(): void;
}

/**
 * Fields that are the same in the items of many requests. They make up most of an item, so their
 * bytes are encoded once. Encoding them for each item takes three to four times as long.
 */
export interface SharedFields {
  /** The encoded fields by the type of the item. Undefined if they are not cached. */
  readonly cache: SharedBytes | undefined;
  readonly itemType: string;
  create(): ProtobufMessage;
}
export type SharedBytes = Map<string, Buffer>;

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

  add(item: ProtobufMessage, shared?: SharedFields): void {
    this.#texts.push(JSON.stringify(shared ? combine(item, shared.create()) : item));
  }

  encode(): Buffer {
    return Buffer.from(this.#start + this.#texts.join(",") + this.#end);
  }

  clear(): void {
    this.#texts = [];
  }
}

const combine = (item: ProtobufMessage, shared: ProtobufMessage): ProtobufMessage => ({
  ...item,
  ...shared,
  attributes: [item, shared].flatMap(({ attributes }) => (attributes as Attributes).toJSON()),
});

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
/** Bytes reserved for the length of a span or a log record. */
const LENGTH_BYTES = 2;

/** Items encoded one after the other in the form of the containing message, each with its tag. */
class ProtobufBatch implements ItemBatch {
  count = 0;
  readonly #field: EnvelopeField;
  readonly #head: (length: number) => Buffer;
  readonly #writer = new ProtobufWriter(INITIAL_BYTES);
  /** End of the last complete item. */
  #end = HEADER_BYTES;

  /** `field`: the field of the outer message that contains the items. */
  constructor(field: EnvelopeField, head: (length: number) => Buffer) {
    this.#field = field;
    this.#head = head;
    this.#writer.skip(HEADER_BYTES);
  }

  add(item: ProtobufMessage, shared?: SharedFields): void {
    const wire = this.#writer;
    const { fieldNumber, type } = this.#field;
    // Discards an item that was not completed.
    wire.truncate(this.#end);
    const start = wire.beginMessage(fieldNumber, LENGTH_BYTES);
    writeMessage(wire, item, type);
    if (shared) this.#addShared(shared);
    wire.endMessage(start, LENGTH_BYTES);
    this.#end = wire.length;
    this.count++;
  }

  /**
   * The order of fields and attributes has no meaning, so shared fields follow the item's own
   * fields.
   */
  #addShared({ cache, itemType, create }: SharedFields): void {
    const known = cache?.get(itemType);
    if (known) return this.#writer.raw(known);
    const from = this.#writer.length;
    writeMessage(this.#writer, create(), this.#field.type);
    cache?.set(itemType, this.#writer.copyFrom(from));
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
