// Shared base of streams that forward events. Events that a chunk has released are written with
// that chunk, even if the rest of the chunk is rejected.
import type { Fault } from "../../model/error.ts";
import type { PassthroughStream } from "../../plugin/protocol.ts";
import type { WriteBatch } from "./json-bytes.ts";
import type { EventSplitter } from "./event-splitter.ts";

/**
 * Forwards a stream with an event splitter and a write batch. The codec defines what each event
 * means and what happens at the end.
 */
export class EventPassthrough implements PassthroughStream {
  readonly #events: EventSplitter;
  readonly #out: WriteBatch;
  readonly #isOver: () => boolean;
  readonly #end: () => void;
  readonly writeFault: (fault: Fault) => void;

  /**
   * Creates the stream. `over` returns whether the response has ended, after which the gateway may
   * write nothing. `end` is called once when the provider's stream ends, unless the response is
   * over.
   */
  constructor(of: {
    readonly events: EventSplitter;
    readonly out: WriteBatch;
    readonly over: () => boolean;
    readonly end: () => void;
    readonly fail: (fault: Fault) => void;
  }) {
    this.#events = of.events;
    this.#out = of.out;
    this.#isOver = of.over;
    this.#end = of.end;
    this.writeFault = of.fail;
  }

  get isBetweenEvents(): boolean {
    return this.#events.isBetweenEvents && !this.#isOver();
  }

  push(chunk: Buffer): void {
    try {
      this.#events.push(chunk);
    } finally {
      this.#out.flush();
    }
  }

  end(): void {
    this.#events.end();
    if (!this.#isOver()) this.#end();
    this.#out.flush();
  }
}
