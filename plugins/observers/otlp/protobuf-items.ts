import { EncodedAttributes } from "./encoded-attributes.ts";
import type { Items, Kept, KeptPart, Likeness } from "./items.ts";
import { one, type Message } from "./protobuf.ts";
import type { FieldShape, MessageShape } from "./shapes.ts";
import { Wire } from "./wire.ts";

const SIZE = 64 * 1024;
/** For what stands before them: a batch is sent from where it was written, for a copy of each is what full collections are made for. */
const ROOM = 1_024;
/** Of a span's length, and of a line's. */
const LENGTH_BYTES = 2;

/** As they stand behind each other in the message around them, each with its tag. */
export class ProtobufItems implements Items {
  readonly attributes: EncodedAttributes;
  count = 0;
  readonly #field: FieldShape & { readonly type: MessageShape };
  readonly #wire = new Wire(SIZE);
  /** Of what is being said. */
  #shape: MessageShape = {};
  #mark = 0;
  /** Behind the last whole one. */
  #end = ROOM;

  /** `field`: of the message around them. */
  constructor(field: FieldShape) {
    this.#field = field as FieldShape & { type: MessageShape };
    this.#wire.skip(ROOM);
    this.attributes = new EncodedAttributes(this.#wire);
  }

  framed(head: (length: number) => Buffer, tail: Buffer): Buffer {
    this.#wire.cut(this.#end);
    const all = this.#wire.bytes();
    const before = head(all.length - ROOM);
    const from = ROOM - before.length;
    if (from < 0 || tail.length > 0) return Buffer.concat([before, all.subarray(ROOM), tail]);
    all.set(before, from);
    return all.subarray(from);
  }

  begin(): void {
    // One that could not be said to its end is none.
    this.#wire.cut(this.#end);
    this.#wire.filled();
    this.#mark = this.#wire.begin(this.#field.n, LENGTH_BYTES);
    this.#enter(this.#field.type);
  }
  end(): void {
    this.#wire.close(this.#mark, LENGTH_BYTES);
    this.#whole();
  }

  add(item: Message): void {
    this.#wire.cut(this.#end);
    one(this.#wire, this.#field, item);
    this.#whole();
  }

  clear(): void {
    this.#end = ROOM;
    this.count = 0;
  }

  id(field: string, digits: string | undefined): void {
    if (digits === undefined) return;
    if (this.#wire.fills) this.#wire.fillHex(digits);
    else this.#wire.hex(this.#of(field).n, digits);
  }
  text(field: string, text: string | undefined): void {
    if (text !== undefined && !this.#wire.fills) this.#wire.text(this.#of(field).n, text);
  }
  number(field: string, value: number): void {
    if (this.#wire.fills) return;
    const { n, type } = this.#of(field);
    if (type === "fixed32") this.#wire.fixed32(n, value);
    else this.#wire.varint(n, value);
  }
  moment(field: string, ms: number): void {
    if (this.#wire.fills) this.#wire.fillMoment(ms);
    else this.#wire.moment(this.#of(field).n, ms);
  }

  within(field: string, say: () => void): void {
    if (this.#wire.fills) return say();
    const shape = this.#shape;
    const { n, type } = this.#of(field);
    const mark = this.#wire.begin(n);
    this.#enter(type as MessageShape);
    say();
    this.#enter(shape);
    this.#wire.close(mark);
  }

  alike<T>(kept: Kept | undefined, part: KeptPart, of: T, say: Likeness<T>): void {
    const wire = this.#wire;
    const template = kept?.[part];
    if (template) {
      wire.fill(template);
      say.each(this, of);
      return wire.filled();
    }
    const from = wire.length;
    wire.note();
    say.each(this, of);
    const holes = wire.noted();
    say.all(this, of);
    if (kept) kept[part] = { bytes: wire.copied(from), holes: holes.map((at) => at - from) };
  }

  #whole(): void {
    this.#end = this.#wire.length;
    this.count++;
  }

  #enter(shape: MessageShape): void {
    this.#shape = shape;
    this.attributes.field = shape["attributes"]?.n ?? 0;
  }

  #of(field: string): FieldShape {
    const found = this.#shape[field];
    if (!found) throw new Error(`OTLP has no field ${field} here.`);
    return found;
  }
}
