// Spans or log records of a batch, encoded as they are added. Objects that were kept until the
// batch is sent would survive many garbage collections. An item is written field by field, under
// the field names of OTLP's JSON.
import type { AttributeWriter } from "./attributes.ts";
import type { ProtobufMessage } from "./message-shapes.ts";

/** The shared bytes of many similar spans or log records, and the offsets at which they differ. */
export interface Template {
  readonly bytes: Buffer;
  /** Offsets of the variable values, in the order in which they are written. */
  readonly offsets: readonly number[];
}

/** Templates for requests that are much alike. */
export class TemplateSet {
  /**
   * Span of a request that starts its trace. `childRequest` is for a request in its client's trace.
   */
  rootRequest: Template | undefined;
  childRequest: Template | undefined;
  /** Span of a call without content. `callWithContent` is for a call that returned content. */
  call: Template | undefined;
  callWithContent: Template | undefined;
  logRecord: Template | undefined;
}
export type TemplateName = keyof TemplateSet;

/** Writes items of one kind, with the part that all requests of one `TemplateSet` share. */
export interface TemplateWriter<T> {
  /**
   * Writes the values that differ: IDs, times, and doubles, always the same ones in the same order.
   * Other data written here must be equal in all items of a template.
   */
  writeVariable(to: BatchItems, of: T): void;
  writeFull(to: BatchItems, of: T): void;
}

export interface BatchItems {
  /** Number of complete items. */
  readonly count: number;
  /**
   * Returns all items encoded for sending, after a header that contains their length. The buffer is
   * valid until `clear`.
   */
  encodeWith(head: (length: number) => Buffer, tail: Buffer): Buffer;
  /** Attributes of the current item or of the current nested message. */
  readonly attributes: AttributeWriter;
  begin(): void;
  end(): void;
  /** Writes an ID from hex digits. */
  id(field: string, digits: string | undefined): void;
  text(field: string, text: string | undefined): void;
  number(field: string, value: number): void;
  /** Writes a time in Unix milliseconds. */
  timestamp(field: string, ms: number): void;
  /** Writes a nested message. Calls within `say` write to that message. */
  message(field: string, say: () => void): void;
  /**
   * Writes an item from the template in `kept`, where only IDs, times, and doubles differ. Creates
   * the template if it does not exist.
   */
  writeFromTemplate<T>(
    kept: TemplateSet | undefined,
    part: TemplateName,
    of: T,
    say: TemplateWriter<T>,
  ): void;
  /** Adds a complete item. */
  add(item: ProtobufMessage): void;
  /** Empties the batch for reuse. */
  clear(): void;
}
