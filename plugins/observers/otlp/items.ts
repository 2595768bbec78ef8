// Spans or lines on their way into a batch, written as they are said: what was kept as objects until the batch goes would outlive
// collection after collection. One is said field by field, by the names that OTLP's JSON has for them.
import type { Attributes } from "./attributes.ts";
import type { Message } from "./protobuf.ts";

/** Bytes of what many items have alike, a part of a span or of a line each. */
export class Kept {
  request: Buffer | undefined;
  call: Buffer | undefined;
  line: Buffer | undefined;
}
export type KeptPart = keyof Kept;

export interface Items {
  /** How many are in it. */
  readonly count: number;
  readonly bytes: Buffer;
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
  /** What all that share one `kept` say alike. */
  alike(kept: Kept | undefined, part: KeptPart, say: () => void): void;
  /** One that is there whole. */
  add(item: Message): void;
  /** Empty, for the next batch. */
  clear(): void;
}
