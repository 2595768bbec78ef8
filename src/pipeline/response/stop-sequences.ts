// Emulates stop sequences for a protocol that has none. The response ends before the first of them,
// and the provider's response is canceled.
import type { ModelEvent } from "../../model/event.ts";
import type { Json } from "../../model/values.ts";
import type { EventHandler } from "./event-filters.ts";

/**
 * Searches for several texts in a text that arrives in pieces. Each character is examined once for
 * each text.
 */
export class MultiTextSearch {
  readonly #texts: readonly string[];
  /**
   * For each text and each prefix length: the length of the longest proper prefix that is also a
   * suffix (Knuth–Morris–Pratt).
   */
  readonly #borders: readonly (readonly number[])[];
  readonly #matched: number[];

  constructor(texts: readonly string[]) {
    this.#texts = texts;
    this.#borders = texts.map(computeBorders);
    this.#matched = texts.map(() => 0);
  }

  /** The number of code units at the end of the input that may be the start of a text. */
  get pending(): number {
    return Math.max(0, ...this.#matched);
  }

  /**
   * Returns the end position in `piece` of the first complete text, and the text. If several texts
   * end there, the longest is returned.
   */
  find(piece: string): { end: number; text: string } | undefined {
    for (let i = 0; i < piece.length; i++) {
      let found: string | undefined;
      for (let k = 0; k < this.#texts.length; k++) {
        const text = this.#texts[k]!;
        let matched = this.#matched[k]!;
        while (matched > 0 && text[matched] !== piece[i]) matched = this.#borders[k]![matched]!;
        if (text[matched] === piece[i]) matched++;
        this.#matched[k] = matched;
        if (matched === text.length && text.length > (found?.length ?? 0)) found = text;
      }
      if (found !== undefined) return { end: i + 1, text: found };
    }
    return undefined;
  }
}

function computeBorders(text: string): number[] {
  const borders = [0, 0];
  let border = 0;
  for (let i = 1; i < text.length; i++) {
    while (border > 0 && text[i] !== text[border]) border = borders[border]!;
    if (text[i] === text[border]) border++;
    borders.push(border);
  }
  return borders;
}

interface OpenTextBlock {
  readonly search: MultiTextSearch;
  /** Code units that were not forwarded because they may be the start of a text. */
  pending: string;
  logprobs: readonly Json[];
}

export interface StopSequenceOptions {
  readonly sequences: readonly string[];
  /**
   * Whether the provider reports its usage in any case. If it does, the text after the stop
   * sequence is dropped, and the response ends when the provider's response ends.
   */
  readonly isWhole: boolean;
  /** Called once, when the response ends early. */
  onStopped(): void;
}

/**
 * Creates the filter that runs before all hooks. Reasoning and tool calls are not searched, as with
 * every provider.
 */
export function createStopFilter(
  next: EventHandler,
  { sequences, isWhole, onStopped }: StopSequenceOptions,
): EventHandler {
  const open = new Map<number, OpenTextBlock | undefined>();
  let foundSequence: string | undefined;
  let isOver = false;

  const release = (index: number, text: OpenTextBlock, length: number) => {
    const logprobs = text.logprobs.length > 0 ? { logprobs: text.logprobs } : {};
    const released = text.pending.slice(0, length);
    text.pending = text.pending.slice(length);
    if (released === "") return;
    text.logprobs = [];
    next({ type: "delta", index, text: released, ...logprobs });
  };

  const stop = (sequence: string) => {
    foundSequence = sequence;
    for (const index of open.keys()) next({ type: "close", index });
    open.clear();
    if (!isWhole) finish();
  };
  const finish = () => {
    isOver = true;
    next({ type: "finish", reason: "stop_sequence", sequence: foundSequence });
    onStopped();
  };

  const delta = (e: Extract<ModelEvent, { type: "delta" }>) => {
    const text = open.get(e.index);
    if (!text) return next(e);
    text.pending += e.text;
    if (e.logprobs) text.logprobs = [...text.logprobs, ...e.logprobs];
    const match = text.search.find(e.text);
    if (!match) return release(e.index, text, text.pending.length - text.search.pending);
    const end = text.pending.length - e.text.length + match.end;
    release(e.index, text, end - match.text.length);
    return stop(match.text);
  };

  return (e) => {
    if (isOver) return undefined;
    if (foundSequence !== undefined) {
      if (e.type === "usage") next(e);
      else if (e.type === "finish") finish();
      return undefined;
    }
    switch (e.type) {
      case "open":
        open.set(
          e.index,
          e.block.type === "text"
            ? { search: new MultiTextSearch(sequences), pending: "", logprobs: [] }
            : undefined,
        );
        return next(e);
      case "delta":
        return delta(e);
      case "close": {
        const text = open.get(e.index);
        if (text) release(e.index, text, text.pending.length);
        open.delete(e.index);
        return next(e);
      }
      default:
        return next(e);
    }
  };
}
