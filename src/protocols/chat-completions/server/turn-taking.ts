// Texts take turns in a stream: of two blocks on one channel that are open together, the later one waits for the first.
import type { ModelEvent } from "../../../plugin/index.ts";

export type BlockEvent = Exclude<ModelEvent, { type: "start" | "usage" | "finish" }>;

interface Channel {
  /** The block whose turn it is. */
  floor: number | undefined;
  /** What the others will say when it is their turn. */
  waiting: Map<number, BlockEvent[]>;
}

export class Turns {
  readonly #speak: (e: BlockEvent) => void;
  readonly #channels = new Map<string, Channel>();
  readonly #channelOf = new Map<number, Channel>();

  constructor(speak: (e: BlockEvent) => void) {
    this.#speak = speak;
  }

  take(e: BlockEvent): void {
    if (
      e.type === "open" &&
      (e.block.type === "text" || e.block.type === "reasoning" || e.block.type === "refusal")
    )
      this.#join(e.index, e.block.type);
    const channel = this.#channelOf.get(e.index);
    if (!channel) return this.#speak(e);
    if (channel.floor !== e.index) return void channel.waiting.get(e.index)!.push(e);
    this.#speak(e);
    if (e.type === "close") this.#leave(e.index, channel);
  }

  #join(index: number, type: string): void {
    let channel = this.#channels.get(type);
    if (!channel) this.#channels.set(type, (channel = { floor: undefined, waiting: new Map() }));
    this.#channelOf.set(index, channel);
    if (channel.floor === undefined) channel.floor = index;
    else channel.waiting.set(index, []);
  }

  #leave(index: number, channel: Channel): void {
    this.#channelOf.delete(index);
    for (const [next, held] of channel.waiting) {
      channel.waiting.delete(next);
      channel.floor = next;
      for (const one of held) this.#speak(one);
      if (held.at(-1)?.type !== "close") return;
      this.#channelOf.delete(next);
    }
    channel.floor = undefined;
  }
}
