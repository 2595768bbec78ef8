// What is known of a transcript beside its words, as this wire says it. Its readers want every member of a segment that OpenAI's have.
import type { Passage } from "../../../model/sound.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";

export type Segment = Extract<Passage, { type: "segment" }>;
export type Word = Extract<Passage, { type: "word" }>;

export interface Passages {
  readonly about: JsonObject;
  readonly segments: readonly Segment[];
  readonly words: readonly Word[];
}

export function passagesIn(items: Opt<readonly unknown[]>): Passages {
  let about: JsonObject = {};
  const segments: Segment[] = [];
  const words: Word[] = [];
  for (const one of (items ?? []) as readonly Passage[])
    if (one.type === "segment") segments.push(one);
    else if (one.type === "word") words.push(one);
    else about = { ...about, ...one.said };
  return { about, segments, words };
}

/** What was not measured: a host that only says when each was said is believed that it was. */
const UNMEASURED: JsonObject = {
  seek: 0,
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 1,
  no_speech_prob: 0,
};

export const measured = ({ start, end, text, said }: Segment, index: number): JsonObject => ({
  id: index,
  ...UNMEASURED,
  ...said,
  start,
  end,
  text,
});

/** The speaker is a letter, where the host did not say. */
export const spoken = (segment: Segment, index: number): JsonObject => ({
  speaker: "A",
  ...timed(segment, index),
});

export const timed = ({ start, end, text, said }: Segment, index: number): JsonObject => ({
  id: `seg_${index}`,
  ...said,
  start,
  end,
  text,
  type: "transcript.text.segment",
});

export const worded = ({ start, end, text }: Word): Json => ({ word: text, start, end });
