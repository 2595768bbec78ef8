// Spans or lines on their way into a batch, written as they are said: what was kept as objects until the batch goes would outlive
// collection after collection. One is said field by field, by the names that OTLP's JSON has for them.
import type { AttributeWriter } from "./attributes.ts";
import type { ProtobufMessage } from "./message-shapes.ts";

/** What many items have alike: a span or a line as far as they all go, and where in it they differ. */
export interface Template {
  readonly bytes: Buffer;
  /** In the order in which they are said. */
  readonly offsets: readonly number[];
}

/** Of requests that are much alike. */
export class TemplateSet {
  /** A request that begins its trace, and one that is in its client's. */
  rootRequest: Template | undefined;
  childRequest: Template | undefined;
  /** A call, and one that content came of. */
  call: Template | undefined;
  callWithContent: Template | undefined;
  logRecord: Template | undefined;
}
export type TemplateName = keyof TemplateSet;

/** What is alike of all that share one `Kept`. */
export interface TemplateWriter<T> {
  /** Said of each: ids, moments and doubles, always the same ones; what else it says is alike. */
  writeVariable(to: BatchItems, of: T): void;
  writeFull(to: BatchItems, of: T): void;
}

export interface BatchItems {
  /** How many are in it. */
  readonly count: number;
  /** All of them as they are sent, behind a head that tells how long they are: good until they are cleared. */
  encodeWith(head: (length: number) => Buffer, tail: Buffer): Buffer;
  /** Of the item, or of the message within it, that is being said. */
  readonly attributes: AttributeWriter;
  begin(): void;
  end(): void;
  /** Hex digits. */
  id(field: string, digits: string | undefined): void;
  text(field: string, text: string | undefined): void;
  number(field: string, value: number): void;
  /** Unix milliseconds. */
  timestamp(field: string, ms: number): void;
  /** A message within it: what is said by `say` is said of that. */
  message(field: string, say: () => void): void;
  /** What all that share one `kept` say alike, but for ids, moments and doubles. */
  writeFromTemplate<T>(
    kept: TemplateSet | undefined,
    part: TemplateName,
    of: T,
    say: TemplateWriter<T>,
  ): void;
  /** One that is there whole. */
  add(item: ProtobufMessage): void;
  /** Empty, for the next batch. */
  clear(): void;
}
