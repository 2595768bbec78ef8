// Characters stay whole in a stream. Models and their hosts cut where it falls, in the middle of a pair of surrogates too;
// half a pair is no text to readers whose strings are not ours: their JSON parsers raise on it, or two halves never make one.
import type { Encoder, ModelEvent } from "../plugin/index.ts";

const endsTorn = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
};

/** Half a character waits for its other half, which comes with the next piece of the same block. */
export function wholeCharacters({ event, fail }: Encoder): Encoder {
  const halves = new Map<number, string>();
  const piece = (e: Extract<ModelEvent, { type: "delta" }>): void => {
    const half = halves.get(e.index);
    if (half === undefined && !endsTorn(e.text)) return event(well(e));
    if (half !== undefined) halves.delete(e.index);
    let text = half === undefined ? e.text : half + e.text;
    if (endsTorn(text)) {
      halves.set(e.index, text.slice(-1));
      text = text.slice(0, -1);
    }
    // What belongs to the piece beside its text goes out with it, even when no text is left.
    if (text !== "" || e.logprobs) event(well({ ...e, text }));
  };
  return {
    event(e) {
      if (e.type === "delta") return piece(e);
      if (e.type === "close" && halves.delete(e.index))
        event({ type: "delta", index: e.index, text: "\ufffd" });
      event(e);
    },
    fail,
  };
}

/** A half that never had another is no character. */
const well = (e: Extract<ModelEvent, { type: "delta" }>) =>
  e.text.isWellFormed() ? e : { ...e, text: e.text.toWellFormed() };
