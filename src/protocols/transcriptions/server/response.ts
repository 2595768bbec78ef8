// Encodes a non-streaming response in the format that the client requested.
import { fail } from "../../../model/error.ts";
import type { ModelResponse } from "../../../model/event.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { asNumber, omitUndefined } from "../../json-values.ts";
import { usageTo } from "../usage.ts";
import { formatIn } from "../constants.ts";
import { srt, vtt } from "./captions.ts";
import {
  toVerboseSegment,
  groupItems,
  toDiarizedSegment,
  toWord,
  type TranscriptItems,
} from "./transcript-items.ts";

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
