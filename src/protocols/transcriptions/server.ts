// The half of the transcription protocol that faces clients.
import { fail } from "../../model/error.ts";
import type { ModelResponse, ModelEvent } from "../../model/event.ts";
import type { TranscriptRequest, TranscriptItem } from "../../model/operations/audio-requests.ts";
import type { Usage } from "../../model/usage.ts";
import { isFilePart, type Body, type Json, type JsonObject, type Opt } from "../../model/values.ts";
import type { ResponseContext, Encoder } from "../../plugin/protocol.ts";
import { isTruthyFlag, asList, asNumber, omitUndefined, asText } from "../json-values.ts";
import { encodeFault } from "../failure/openai-error.ts";
import { unknownTopLevelFields, ownFields } from "../unknown-fields.ts";
import {
  RESPONSE_FORMAT,
  ID,
  knowsField,
  PROTOCOL_FIELDS,
  TIMESTAMP_GRANULARITIES,
  usageTo,
  formatIn,
} from "./spec.ts";

/** Decodes a client's request into the common form. All form fields are text. */
export function decodeRequest(body: Body): TranscriptRequest {
  const { file } = body;
  return omitUndefined({
    operation: "transcript" as const,
    model: asText(body["model"]) ?? "",
    stream: isTruthyFlag(body["stream"]),
    file: isFilePart(file)
      ? file
      : fail("invalid", "file must be a file in the form.", {
          param: "file",
          code: "invalid_request",
        }),
    language: asText(body["language"]),
    prompt: asText(body["prompt"]),
    temperature: numberIn(body["temperature"], "temperature"),
    format: asText(body[RESPONSE_FORMAT]),
    granularities: timesIn(body[TIMESTAMP_GRANULARITIES]),
    rest: unknownTopLevelFields(body, (name) => body[name] === null || knowsField(name)),
    ext: ownFields(ID, body, PROTOCOL_FIELDS),
  });
}

export const timesIn = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? asList(value) : [value]).flatMap((one) => asText(one) ?? []);

function numberIn(rawValue: unknown, field: string): number | undefined {
  if (rawValue === undefined || rawValue === null || rawValue === "") return undefined;
  const value = typeof rawValue === "string" ? Number(rawValue) : asNumber(rawValue);
  return value !== undefined && Number.isFinite(value)
    ? value
    : fail("invalid", `${field} must be a number.`, { param: field, code: "invalid_request" });
}

/** Encodes a non-streaming response in the format that the client requested. */
export function encodeResponse(
  answer: ModelResponse,
  to: Pick<ResponseContext, "body">,
): JsonObject | Buffer {
  const text = textOf(answer);
  const passages = groupItems(answer.items);
  const usage = usageTo(answer.usage);
  switch (formatIn(to.body)) {
    case "text":
      return Buffer.from(text.endsWith("\n") ? text : `${text}\n`);
    case "srt":
      return captions(text, passages, srt);
    case "vtt":
      return captions(text, passages, vtt);
    case "verbose_json":
      return omitUndefined({ ...verboseResponse(text, passages), usage });
    case "diarized_json": {
      const segments = passages.segments.map(toDiarizedSegment);
      return omitUndefined({ ...verboseHead(passages), text, segments, usage });
    }
    default:
      return omitUndefined({
        text,
        languages: passages.summary["languages"],
        logprobs: logprobsOf(answer),
        usage,
      });
  }
}

const textOf = ({ blocks }: ModelResponse): string =>
  blocks.map((block) => (block.type === "text" ? block.text : "")).join("");

function logprobsOf({ blocks }: ModelResponse): readonly Json[] | undefined {
  const all = blocks.flatMap((block) => (block.type === "text" ? (block.logprobs ?? []) : []));
  return all.length > 0 ? all : undefined;
}

/**
 * Returns captions. If captions were requested from a backend and it returned text, that text is
 * the captions.
 */
function captions(
  text: string,
  { segments }: TranscriptItems,
  write: (segments: TranscriptItems["segments"]) => string,
): Buffer {
  if (segments.length === 0 && text !== "" && !text.includes("-->"))
    fail("upstream", "The provider returned no timestamps.", { code: "times_missing" });
  return Buffer.from(segments.length === 0 && text !== "" ? text : write(segments));
}

function verboseResponse(text: string, passages: TranscriptItems): JsonObject {
  const { segments, words } = passages;
  return {
    ...verboseHead(passages),
    language: passages.summary["language"] ?? "",
    text,
    segments: segments.map(toVerboseSegment),
    ...(words.length > 0 && { words: words.map(toWord) }),
  };
}

const verboseHead = ({ summary, segments, words }: TranscriptItems): JsonObject => ({
  task: summary["task"] ?? "transcribe",
  duration: asNumber(summary["duration"]) ?? segments.at(-1)?.end ?? words.at(-1)?.end ?? 0,
});

/**
 * Encodes a response as events: text as it is transcribed, then the whole text at the end with the
 * usage.
 */
export function createEncoder(
  write: (piece: string) => void,
  to: Pick<ResponseContext, "id" | "body">,
): Encoder {
  const pieces: string[] = [];
  const items: TranscriptItem[] = [];
  let segments = 0;
  const segment = formatIn(to.body) === "diarized_json" ? toDiarizedSegment : toTimedSegment;
  let usage: Usage = {};
  const event = (of: JsonObject): void => write(`data: ${JSON.stringify(of)}\n\n`);
  return {
    writeEvent(e: ModelEvent) {
      switch (e.type) {
        case "delta":
          pieces.push(e.text);
          return event(
            omitUndefined({ type: "transcript.text.delta", delta: e.text, logprobs: e.logprobs }),
          );
        case "item": {
          const item = e.item as TranscriptItem;
          if (item.type === "segment") return event(segment(item, segments++));
          return void items.push(item);
        }
        case "usage":
          usage = e.usage;
          return undefined;
        case "finish": {
          const { summary, words } = groupItems(items);
          return event(
            omitUndefined({
              type: "transcript.text.done",
              text: pieces.join(""),
              ...summary,
              ...(words.length > 0 && { words: words.map(toWord) }),
              usage: usageTo(usage),
            }),
          );
        }
        default:
          return undefined;
      }
    },
    writeFault: (f) => event(encodeFault(f, to).body),
  };
}

/**
 * Encodes the segments, words, and metadata of a transcript. Clients expect every member that
 * OpenAI's segments have.
 */
export type Segment = Extract<TranscriptItem, { type: "segment" }>;

export type Word = Extract<TranscriptItem, { type: "word" }>;

export interface TranscriptItems {
  readonly summary: JsonObject;
  readonly segments: readonly Segment[];
  readonly words: readonly Word[];
}

function groupItems(items: Opt<readonly unknown[]>): TranscriptItems {
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

const toVerboseSegment = ({ start, end, text, raw }: Segment, index: number): JsonObject => ({
  id: index,
  ...DEFAULT_SEGMENT_FIELDS,
  ...raw,
  start,
  end,
  text,
});

/** Returns a segment with its speaker. Default speaker: `A`. */
const toDiarizedSegment = (segment: Segment, index: number): JsonObject => ({
  speaker: "A",
  ...toTimedSegment(segment, index),
});

const toTimedSegment = ({ start, end, text, raw }: Segment, index: number): JsonObject => ({
  id: `seg_${index}`,
  ...raw,
  start,
  end,
  text,
  type: "transcript.text.segment",
});

const toWord = ({ start, end, text }: Word): Json => ({ word: text, start, end });

/** Formats transcripts as captions: numbered segments with the times at which they are shown. */
const srt = (segments: readonly Segment[]): string =>
  segments
    .map(
      ({ start, end, text }, i) =>
        `${i + 1}\n${formatTimestamp(start, ",")} --> ${formatTimestamp(end, ",")}\n${captionText(text)}\n\n`,
    )
    .join("");

const vtt = (segments: readonly Segment[]): string =>
  `WEBVTT\n\n${segments
    .map(
      ({ start, end, text }) =>
        `${formatTimestamp(start, ".")} --> ${formatTimestamp(end, ".")}\n${captionText(text)}\n\n`,
    )
    .join("")}`;

/** Removes blank lines, which would end a caption, and arrows, which would begin a new caption. */
const captionText = (text: string): string =>
  text
    .trim()
    .replaceAll(/\s*[\r\n]+\s*/g, "\n")
    .replaceAll("-->", "->");

/** 00:01:02,345 */
function formatTimestamp(seconds: number, point: string): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const [h, m, s] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map((part) =>
    String(Math.floor(part)).padStart(2, "0"),
  );
  return `${h}:${m}:${s}${point}${String(ms % 1000).padStart(3, "0")}`;
}
