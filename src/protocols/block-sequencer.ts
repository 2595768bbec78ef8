// Serializes blocks that are open at the same time, for protocols that allow only one open block.
// Events of the first block pass through. Events of other blocks wait until it closes.
import type { ModelEvent } from "../model/event.ts";

export type IndexedEvent = Extract<ModelEvent, { index: number }>;

export class BlockSequencer {
  /**
   * Events of blocks that wait for the open block to close, in the order in which the blocks
   * opened.
   */
  readonly #waiting = new Map<number, IndexedEvent[]>();
  #current: number | undefined;
  readonly #apply: (e: IndexedEvent) => void;

  constructor(apply: (e: IndexedEvent) => void) {
    this.#apply = apply;
  }

  event(e: IndexedEvent): void {
    if (e.type === "open") {
      if (this.#current !== undefined) {
        this.#waiting.set(e.index, [e]);
        return;
      }
      this.#current = e.index;
      return this.#apply(e);
    }
    if (e.index !== this.#current) {
      this.#waiting.get(e.index)?.push(e);
      return;
    }
    this.#apply(e);
    if (e.type === "close") this.#next();
  }

  #next(): void {
    for (const [index, events] of this.#waiting) {
      this.#waiting.delete(index);
      for (const e of events) this.#apply(e);
      if (events.at(-1)?.type === "close") continue;
      this.#current = index;
      return;
    }
    this.#current = undefined;
  }
}
