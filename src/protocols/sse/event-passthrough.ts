// Shared base of streams that forward events.
import type { Fault } from "../../model/error.ts";
import type { PassthroughSink, PassthroughStream } from "../../plugin/protocol.ts";
import { createEventSplitter, MAX_EVENT_BYTES, type EventSplitter } from "./event-splitter.ts";
import { EventTemplates, type TemplateFields } from "./event-templates.ts";
import { createWriteBatch, type WriteBatch } from "./json-bytes.ts";

const BRACE = 123;
const BRACKET = 91;

/**
 * Forwards a stream and reports its content. Events that a chunk has released are written with that
 * chunk, even if the rest of the chunk is rejected. The codec defines the meaning of each event and
 * the handling of the end.
 */
export abstract class EventPassthrough implements PassthroughStream {
  protected readonly sink: PassthroughSink;
  protected readonly out: WriteBatch;
  protected readonly events: EventSplitter;
  /** Whether the response has ended. After that, the gateway must not write anything. */
  protected isOver = false;
  #hasBegun = false;
  /** Body of a response that is not a stream, although one was requested. */
  #response: Buffer[] | undefined;

  constructor(sink: PassthroughSink, maxEventBytes: number = MAX_EVENT_BYTES) {
    this.sink = sink;
    this.out = createWriteBatch((bytes) => sink.write(bytes));
    this.events = createEventSplitter((b, from, to) => this.onEvent(b, from, to), maxEventBytes);
  }

  get isBetweenEvents(): boolean {
    return this.events.isBetweenEvents && !this.isOver;
  }

  push(chunk: Buffer): void {
    if (this.convertResponse && !this.#hasBegun && !this.#begin(chunk)) return;
    if (this.#response) return void this.#response.push(chunk);
    try {
      this.forward(chunk);
    } finally {
      this.out.flush();
      this.afterChunk();
    }
  }

  end(): void {
    if (this.#response) return this.convertResponse!(Buffer.concat(this.#response));
    this.events.end();
    if (!this.isOver) this.onEnd();
    this.out.flush();
  }

  abstract writeFault(fault: Fault): void;

  /** Called for each event, which is the range `[from, to)` of the buffer. */
  protected abstract onEvent(b: Buffer, from: number, to: number): void;

  /** Called once when the provider's stream ends, unless the response has ended. */
  protected abstract onEnd(): void;

  /** Called when the events of a chunk have been written. */
  protected afterChunk(): void {}

  /** Converts a response in one piece into a stream. Without it, every response is a stream. */
  protected convertResponse?(body: Buffer): void;

  /** Called with the first byte of a response that is not JSON. */
  protected onStreamStart(_first: number): void {}

  protected forward(chunk: Buffer): void {
    this.events.push(chunk);
  }

  /**
   * Returns whether the response has begun, and detects whether it is JSON. Providers send
   * whitespace before a response to keep the connection open.
   */
  #begin(chunk: Buffer): boolean {
    const first = chunk.find((byte) => byte > 32);
    if (first === undefined) return false;
    this.#hasBegun = true;
    if (first === BRACE || first === BRACKET) this.#response = [];
    else this.onStreamStart(first);
    return true;
  }
}

/** Forwards a stream in which most events repeat. Such events are not parsed: see `EventTemplates`. */
export abstract class TemplatePassthrough extends EventPassthrough {
  protected readonly templates: EventTemplates;
  readonly #maxBytes: number;

  constructor(sink: PassthroughSink, fields: TemplateFields, maxEventBytes = MAX_EVENT_BYTES) {
    super(sink, maxEventBytes);
    this.templates = new EventTemplates(fields);
    this.#maxBytes = maxEventBytes;
  }

  /** Called for each event that fits a template, before it is forwarded. */
  protected abstract onKnownEvent(known: EventTemplates): void;

  /** Called for each event that fits no template. */
  protected abstract onNewEvent(b: Buffer, from: number, to: number): void;

  /** Forwards events that fit templates. `last` is the offset of the last event. */
  protected forwardKnown(b: Buffer, from: number, to: number, _last: number): void {
    this.out.addRange(b, from, to);
  }

  protected override forward(chunk: Buffer): void {
    const from = this.events.isAtEventStart ? this.#passKnown(chunk, 0) : 0;
    if (from < chunk.length) this.events.push(from === 0 ? chunk : chunk.subarray(from));
  }

  protected override afterChunk(): void {
    this.templates.endChunk();
  }

  protected onEvent(b: Buffer, from: number, to: number): void {
    if (this.isOver) return;
    const end = this.#passKnown(b, from);
    if (end === from) return this.onNewEvent(b, from, to);
    // If `end` equals `to`, the event may have been joined from several chunks. The splitter cannot
    // continue inside such a buffer.
    if (end > to) this.events.skipTo(end);
    // A last event whose line ending was missing has one more line feed.
    else this.out.addRange(b, end, to);
  }

  /**
   * Forwards the known events from `from` on, and returns the offset after the last event. This
   * offset is nearly always the end of the chunk.
   */
  #passKnown(b: Buffer, from: number): number {
    const known = this.templates;
    if (this.isOver || b.length > this.#maxBytes || !known.find(b, from)) return from;
    // If lines end in CR, an event may end before its template does.
    if (known.hasCr(b)) return from;
    let [last, end] = [from, from];
    do {
      last = end;
      end = known.end;
      this.onKnownEvent(known);
    } while (end < b.length && known.find(b, end));
    this.forwardKnown(b, from, end, last);
    return end;
  }
}
