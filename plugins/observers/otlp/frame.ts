// What stands around the items of a batch: whose they are. It is the same for all batches of a signal.
import type { Items } from "./items.ts";
import { JsonItems } from "./json-items.ts";
import { ProtobufItems } from "./protobuf-items.ts";
import { protobuf, type Message } from "./protobuf.ts";
import type { Destination } from "./settings.ts";
import { REQUESTS, type FieldShape, type MessageShape, type Signal } from "./shapes.ts";
import { headOf } from "./wire.ts";

export interface Frame {
  /** For a new batch. */
  empty(): Items;
  around(items: Items): Buffer;
}

const NOTHING = Buffer.alloc(0);
const SCOPE = { name: "tollgate" };

export const frameOf = (
  protocol: Destination["protocol"],
  signal: Signal,
  resource: Message,
): Frame => (protocol === "http/json" ? asJson(signal, resource) : asProtobuf(signal, resource));

function asJson(signal: Signal, resource: Message): Frame {
  const [top, group, each] = REQUESTS[signal].names;
  const whole = { [top]: [{ resource, [group]: [{ scope: SCOPE, [each]: [] }] }] };
  const end = "]}]}]}";
  const before = Buffer.from(JSON.stringify(whole).slice(0, -end.length));
  const after = Buffer.from(end);
  return {
    empty: () => new JsonItems(),
    around: (items) => items.framed(() => before, after),
  };
}

type Around = FieldShape & { readonly type: MessageShape };

function asProtobuf(signal: Signal, resource: Message): Frame {
  const { names, shape } = REQUESTS[signal];
  const [top, group, each] = names;
  const below = (of: MessageShape, name: string) => of[name] as Around;
  const outer = below(shape, top);
  const inner = below(outer.type, group);
  const resourceBytes = protobuf({ resource }, outer.type);
  const scopeBytes = protobuf({ scope: SCOPE }, inner.type);
  const head = (length: number): Buffer => {
    const within = scopeBytes.length + length;
    const innerHead = headOf(inner.n, within);
    const outerHead = headOf(outer.n, resourceBytes.length + innerHead.length + within);
    return Buffer.concat([outerHead, resourceBytes, innerHead, scopeBytes]);
  };
  return {
    empty: () => new ProtobufItems(below(inner.type, each)),
    around: (items) => items.framed(head, NOTHING),
  };
}
