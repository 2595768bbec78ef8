import { JsonAttributes, toNanos } from "./attributes.ts";
import type { BatchItems, TemplateSet, TemplateName, TemplateWriter } from "./batch-items.ts";
import type { ProtobufMessage } from "./message-shapes.ts";

/** Items encoded as members of a JSON array. */
export class JsonItems implements BatchItems {
  attributes = new JsonAttributes();
  #texts: string[] = [];
  #item: { [field: string]: unknown } = {};

  get count(): number {
    return this.#texts.length;
  }

  encodeWith(head: (length: number) => Buffer, tail: Buffer): Buffer {
    const bytes = Buffer.from(this.#texts.join(","));
    return Buffer.concat([head(bytes.length), bytes, tail]);
  }

  begin(): void {
    this.#item = {};
    this.attributes = new JsonAttributes();
  }
  end(): void {
    this.add(this.#currentItem());
  }

  add(item: ProtobufMessage): void {
    this.#texts.push(JSON.stringify(item));
  }

  clear(): void {
    this.#texts = [];
  }

  id(field: string, digits: string | undefined): void {
    this.#item[field] = digits;
  }
  text(field: string, text: string | undefined): void {
    this.#item[field] = text;
  }
  number(field: string, value: number): void {
    this.#item[field] = value;
  }
  timestamp(field: string, ms: number): void {
    this.#item[field] = toNanos(ms);
  }

  message(field: string, say: () => void): void {
    const [item, attributes] = [this.#item, this.attributes];
    this.begin();
    say();
    const said = this.#currentItem();
    [this.#item, this.attributes] = [item, attributes];
    // An item can have several events.
    if (field === "events") item[field] = [...((item[field] as ProtobufMessage[]) ?? []), said];
    else item[field] = said;
  }

  writeFromTemplate<T>(
    _kept: TemplateSet | undefined,
    _part: TemplateName,
    of: T,
    say: TemplateWriter<T>,
  ): void {
    say.writeVariable(this, of);
    say.writeFull(this, of);
  }

  #currentItem(): ProtobufMessage {
    const { list } = this.attributes;
    return list.length > 0 ? { ...this.#item, attributes: list } : this.#item;
  }
}
