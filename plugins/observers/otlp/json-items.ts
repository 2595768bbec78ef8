import { ListedAttributes, nanos } from "./attributes.ts";
import type { Items, Kept, KeptPart, Likeness } from "./items.ts";
import type { Message } from "./protobuf.ts";

/** As the members of a list. */
export class JsonItems implements Items {
  attributes = new ListedAttributes();
  #texts: string[] = [];
  #item: { [field: string]: unknown } = {};

  get count(): number {
    return this.#texts.length;
  }

  framed(head: (length: number) => Buffer, tail: Buffer): Buffer {
    const bytes = Buffer.from(this.#texts.join(","));
    return Buffer.concat([head(bytes.length), bytes, tail]);
  }

  begin(): void {
    this.#item = {};
    this.attributes = new ListedAttributes();
  }
  end(): void {
    this.add(this.#said());
  }

  add(item: Message): void {
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
  moment(field: string, ms: number): void {
    this.#item[field] = nanos(ms);
  }

  within(field: string, say: () => void): void {
    const [item, attributes] = [this.#item, this.attributes];
    this.begin();
    say();
    const said = this.#said();
    [this.#item, this.attributes] = [item, attributes];
    // Of events there may be several.
    if (field === "events") item[field] = [...((item[field] as Message[]) ?? []), said];
    else item[field] = said;
  }

  alike<T>(_kept: Kept | undefined, _part: KeptPart, of: T, say: Likeness<T>): void {
    say.each(this, of);
    say.all(this, of);
  }

  #said(): Message {
    const { list } = this.attributes;
    return list.length > 0 ? { ...this.#item, attributes: list } : this.#item;
  }
}
