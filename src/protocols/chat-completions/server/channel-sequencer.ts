// Serializes text in a stream. If two blocks of one channel are open at the same time, the later
// one waits for the first.
import type { ModelEvent } from "../../../plugin/index.ts";

export type BlockEvent = Exclude<ModelEvent, { type: "start" | "usage" | "finish" }>;

interface Channel {
  /** Index of the block that is being emitted. */
  current: number | undefined;
  /** Buffered events of the waiting blocks. */
  waiting: Map<number, BlockEvent[]>;
}

export class ChannelSequencer {
  readonly #emit: (e: BlockEvent) => void;
  readonly #channels = new Map<string, Channel>();
  readonly #channelOf = new Map<number, Channel>();

  constructor(speak: (e: BlockEvent) => void) {
    this.#emit = speak;
  }

  push(e: BlockEvent): void {
    if (
      e.type === "open" &&
      (e.block.type === "text" || e.block.type === "reasoning" || e.block.type === "refusal")
    )
      this.#join(e.index, e.block.type);
    const channel = this.#channelOf.get(e.index);
    if (!channel) return this.#emit(e);
    if (channel.current !== e.index) return void channel.waiting.get(e.index)!.push(e);
    this.#emit(e);
    if (e.type === "close") this.#leave(e.index, channel);
  }

  #join(index: number, type: string): void {
    let channel = this.#channels.get(type);
    if (!channel) this.#channels.set(type, (channel = { current: undefined, waiting: new Map() }));
    this.#channelOf.set(index, channel);
    if (channel.current === undefined) channel.current = index;
    else channel.waiting.set(index, []);
  }

  #leave(index: number, channel: Channel): void {
    this.#channelOf.delete(index);
    for (const [next, held] of channel.waiting) {
      channel.waiting.delete(next);
      channel.current = next;
      for (const one of held) this.#emit(one);
      if (held.at(-1)?.type !== "close") return;
      this.#channelOf.delete(next);
    }
    channel.current = undefined;
  }
}
