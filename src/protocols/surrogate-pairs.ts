// Keeps characters whole in a stream. Models and providers split text anywhere, even inside a
// surrogate pair. Clients whose strings are not UTF-16 cannot read half a pair: their JSON parsers
// throw, or the two halves never combine.
import type { Encoder, Fault, ModelEvent } from "../plugin/index.ts";

const endsInHalfPair = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
};

type Delta = Extract<ModelEvent, { type: "delta" }>;

/**
 * Wraps an encoder so that half a surrogate pair waits for the other half in the next delta of the
 * same block.
 */
export const joinSurrogatePairs = (encoder: Encoder): Encoder => new SurrogatePairEncoder(encoder);

class SurrogatePairEncoder implements Encoder {
  readonly #encoder: Encoder;
  readonly #halves = new Map<number, string>();

  constructor(encoder: Encoder) {
    this.#encoder = encoder;
  }

  writeEvent(e: ModelEvent): void {
    if (e.type === "delta") return this.#delta(e);
    if (e.type === "close" && this.#halves.delete(e.index))
      this.#encoder.writeEvent({ type: "delta", index: e.index, text: "\ufffd" });
    this.#encoder.writeEvent(e);
  }

  writeFault(fault: Fault): void {
    this.#encoder.writeFault(fault);
  }

  #delta(e: Delta): void {
    const half = this.#halves.get(e.index);
    if (half === undefined && !endsInHalfPair(e.text))
      return this.#encoder.writeEvent(toWellFormedDelta(e));
    if (half !== undefined) this.#halves.delete(e.index);
    let text = half === undefined ? e.text : half + e.text;
    if (endsInHalfPair(text)) {
      this.#halves.set(e.index, text.slice(-1));
      text = text.slice(0, -1);
    }
    // Log probabilities belong to this delta, so they are sent with it even if no text is left.
    if (text !== "" || e.logprobs) this.#encoder.writeEvent(toWellFormedDelta({ ...e, text }));
  }
}

/** Replaces unpaired surrogates, which are not characters. */
const toWellFormedDelta = (e: Delta): Delta =>
  e.text.isWellFormed() ? e : { ...e, text: e.text.toWellFormed() };
