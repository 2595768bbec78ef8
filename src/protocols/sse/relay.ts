// What relays of events have in common: what a chunk has let pass leaves with that chunk, also where the rest of it is refused.
import type { Fault } from "../../model/error.ts";
import type { Relay } from "../../plugin/protocol.ts";
import type { Gather } from "./bytes.ts";
import type { Frames } from "./frames.ts";

/** A relay over what `frames` and `gather` do: a codec says what an event means, and what the end does. */
export class EventRelay implements Relay {
  readonly #events: Frames;
  readonly #out: Gather;
  readonly #over: () => boolean;
  readonly #end: () => void;
  readonly fail: (fault: Fault) => void;

  /** `over`: the answer has ended, and nothing of the gateway's may follow. `end`: the provider has; called once, unless it is over. */
  constructor(of: {
    readonly events: Frames;
    readonly out: Gather;
    readonly over: () => boolean;
    readonly end: () => void;
    readonly fail: (fault: Fault) => void;
  }) {
    this.#events = of.events;
    this.#out = of.out;
    this.#over = of.over;
    this.#end = of.end;
    this.fail = of.fail;
  }

  get between(): boolean {
    return this.#events.between && !this.#over();
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
    if (!this.#over()) this.#end();
    this.#out.flush();
  }
}
