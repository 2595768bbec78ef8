// What relays of events have in common: what a chunk has let pass leaves with that chunk, also where the rest of it is refused.
import type { Fault } from "../../model/error.ts";
import type { PassthroughStream } from "../../plugin/protocol.ts";
import type { WriteBatch } from "./json-bytes.ts";
import type { EventSplitter } from "./event-splitter.ts";

/** A relay over what `frames` and `gather` do: a codec says what an event means, and what the end does. */
export class EventPassthrough implements PassthroughStream {
  readonly #events: EventSplitter;
  readonly #out: WriteBatch;
  readonly #isOver: () => boolean;
  readonly #end: () => void;
  readonly writeFault: (fault: Fault) => void;

  /** `over`: the answer has ended, and nothing of the gateway's may follow. `end`: the provider has; called once, unless it is over. */
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
