// Encodes the segments, words, and metadata of a transcript. Clients expect every member that
// OpenAI's segments have.
import type { TranscriptItem } from "../../../model/operations/audio-requests.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";

export type Segment = Extract<TranscriptItem, { type: "segment" }>;
export type Word = Extract<TranscriptItem, { type: "word" }>;

export interface TranscriptItems {
  readonly summary: JsonObject;
  readonly segments: readonly Segment[];
  readonly words: readonly Word[];
}

export function groupItems(items: Opt<readonly unknown[]>): TranscriptItems {
  let about: JsonObject = {};
  const segments: Segment[] = [];
  const words: Word[] = [];
  for (const one of (items ?? []) as readonly TranscriptItem[])
    if (one.type === "segment") segments.push(one);
    else if (one.type === "word") words.push(one);
    else about = { ...about, ...one.raw };
  return { summary: about, segments, words };
}

/**
 * Values for measurements that a backend did not report. They mark a segment as certain to be
 * speech.
 */
const DEFAULT_SEGMENT_FIELDS: JsonObject = {
  seek: 0,
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 1,
  no_speech_prob: 0,
};

export const toVerboseSegment = (
  { start, end, text, raw }: Segment,
  index: number,
): JsonObject => ({
  id: index,
  ...DEFAULT_SEGMENT_FIELDS,
  ...raw,
  start,
  end,
  text,
});

/** Returns a segment with its speaker. Default speaker: `A`. */
export const toDiarizedSegment = (segment: Segment, index: number): JsonObject => ({
  speaker: "A",
  ...toTimedSegment(segment, index),
});

export const toTimedSegment = ({ start, end, text, raw }: Segment, index: number): JsonObject => ({
  id: `seg_${index}`,
  ...raw,
  start,
  end,
  text,
  type: "transcript.text.segment",
});

export const toWord = ({ start, end, text }: Word): Json => ({ word: text, start, end });
