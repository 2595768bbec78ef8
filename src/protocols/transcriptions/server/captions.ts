// Formats transcripts as captions: numbered segments with the times at which they are shown.
import type { TranscriptItem } from "../../../model/operations/audio-requests.ts";

type Segment = Extract<TranscriptItem, { type: "segment" }>;

export const srt = (segments: readonly Segment[]): string =>
  segments
    .map(
      ({ start, end, text }, i) =>
        `${i + 1}\n${formatTimestamp(start, ",")} --> ${formatTimestamp(end, ",")}\n${captionText(text)}\n\n`,
    )
    .join("");

export const vtt = (segments: readonly Segment[]): string =>
  `WEBVTT\n\n${segments
    .map(
      ({ start, end, text }) =>
        `${formatTimestamp(start, ".")} --> ${formatTimestamp(end, ".")}\n${captionText(text)}\n\n`,
    )
    .join("")}`;

/** Removes blank lines, which would end a caption, and arrows, which would begin a new one. */
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
