// Spans or lines on their way into a batch, written as they are said: what was kept as objects until the batch goes would outlive
// collection after collection. One is said field by field, by the names that OTLP's JSON has for them.
import type { Attributes } from "./attributes.ts";
import type { Message } from "./protobuf.ts";

/** What many items have alike: a span or a line as far as they all go, and where in it they differ. */
export interface Template {
  readonly bytes: Buffer;
  /** In the order in which they are said. */
  readonly holes: readonly number[];
}

/** Of requests that are much alike. */
export class Kept {
  /** A request that begins its trace, and one that is in its client's. */
  request: Template | undefined;
  child: Template | undefined;
  /** A call, and one that content came of. */
  call: Template | undefined;
  told: Template | undefined;
  line: Template | undefined;
}
export type KeptPart = keyof Kept;

/** What is alike of all that share one `Kept`. */
export interface Likeness<T> {
  /** Said of each: ids, moments and doubles, always the same ones; what else it says is alike. */
  each(to: Items, of: T): void;
  all(to: Items, of: T): void;
}

export interface Items {
  /** How many are in it. */
  readonly count: number;
  /** All of them as they are sent, behind a head that tells how long they are: good until they are cleared. */
  framed(head: (length: number) => Buffer, tail: Buffer): Buffer;
  /** Of the item, or of the message within it, that is being said. */
  readonly attributes: Attributes;
  begin(): void;
  end(): void;
  /** Hex digits. */
  id(field: string, digits: string | undefined): void;
  text(field: string, text: string | undefined): void;
  number(field: string, value: number): void;
  /** Unix milliseconds. */
  moment(field: string, ms: number): void;
  /** A message within it: what is said by `say` is said of that. */
  within(field: string, say: () => void): void;
  /** What all that share one `kept` say alike, but for ids, moments and doubles. */
  alike<T>(kept: Kept | undefined, part: KeptPart, of: T, say: Likeness<T>): void;
  /** One that is there whole. */
  add(item: Message): void;
  /** Empty, for the next batch. */
  clear(): void;
}
