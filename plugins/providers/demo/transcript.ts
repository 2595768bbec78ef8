import { setImmediate as turn } from "node:timers/promises";
import {
  fail,
  transcriptOperation,
  type Call,
  type ModelEvent,
  type TranscriptItem,
  type TranscriptRequest,
} from "tollgate/plugin";
import { digestOf } from "./seeded-random.ts";
import { splitWords } from "./tokens.ts";

/**
 * Bytes per second to assume if a file does not contain its duration. Corresponds to
 * telephone-quality speech.
 */
const BYTES_A_SECOND = 4_000;

/**
 * Transcribes a file of demo/speech from its comment. For other audio, the text is its duration.
 */
export async function* transcript(r: TranscriptRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "transcribe")
    fail(
      "not_found",
      `Model demo/${call.model} does not support transcription. Use demo/transcribe.`,
      {
        code: "model_not_found",
        param: "model",
      },
    );
  const { data } = r.file;
  const seconds =
    transcriptOperation.analyzeCost!(r).exactUsage?.seconds ??
    Math.max(1, Math.ceil(data.length / BYTES_A_SECOND));
  const transcriptText =
    commentIn(data) ?? `A sound of ${seconds} ${seconds === 1 ? "second" : "seconds"}.`;
  const spokenWords = splitWords(transcriptText);
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  yield { type: "open", index: 0, block: { type: "text" } };
  for (const [i, text] of spokenWords.entries()) {
    if (i % 100 === 99) await turn();
    if (call.signal.aborted) fail("canceled", "The request was canceled.");
    yield { type: "delta", index: 0, text };
  }
  yield { type: "close", index: 0 };
  for (const [index, item] of passages(spokenWords, seconds, r.granularities).entries())
    yield { type: "item", index, item };
  yield { type: "usage", usage: { seconds } };
  yield { type: "finish", reason: "stop" };
}

/** Returns one segment for the whole text, and words of equal duration. */
function passages(
  said: readonly string[],
  seconds: number,
  granularities: readonly string[],
): TranscriptItem[] {
  const each = seconds / Math.max(1, said.length);
  const at = (i: number): number => Math.round(i * each * 100) / 100;
  return [
    { type: "transcript", raw: { task: "transcribe", language: "english", duration: seconds } },
    { type: "segment", start: 0, end: seconds, text: said.join("") },
    ...(granularities.includes("word") ? said : []).map((word, i): TranscriptItem => ({
      type: "word",
      start: at(i),
      end: at(i + 1),
      text: word.trim(),
    })),
  ];
}

const COMMENT = Buffer.from("ICMT");
/** Number of bytes to search for the comment, which precedes the audio data. */
const HEAD = 64 * 1024;

function commentIn(file: Buffer): string | undefined {
  const at = file.subarray(0, HEAD).indexOf(COMMENT);
  if (at < 0 || at + 8 > file.length) return undefined;
  return file.toString("utf8", at + 8, Math.min(file.length, at + 8 + file.readUInt32LE(at + 4)));
}
