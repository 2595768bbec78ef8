import { setImmediate as turn } from "node:timers/promises";
import {
  fail,
  transcriptOperation,
  type Call,
  type ModelEvent,
  type TranscriptItem,
  type TranscriptRequest,
  type SpeechRequest,
} from "tollgate/plugin";
import { digestOf } from "./random-text.ts";
import { splitWords } from "./request-text.ts";

/**
 * Bytes per second to assume if a file does not contain its duration. This is the rate of
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
  words: readonly string[],
  seconds: number,
  granularities: readonly string[],
): TranscriptItem[] {
  const each = seconds / Math.max(1, words.length);
  const at = (i: number): number => Math.round(i * each * 100) / 100;
  return [
    { type: "transcript", raw: { task: "transcribe", language: "english", duration: seconds } },
    { type: "segment", start: 0, end: seconds, text: words.join("") },
    ...(granularities.includes("word") ? words : []).map((word, i): TranscriptItem => ({
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

const RATE = 8_000;
/** Number of samples per letter: 1/20 s. */
const LETTER = RATE / 20;
const BITS = 16;
const LONGEST = 4_096;
const FORMATS = ["wav", "pcm", "mp3"];

/**
 * Returns a tone for each letter, with a pitch that rises through the alphabet. A WAV file contains
 * the text in a comment, where demo/transcribe finds it. MP3, the default format, is silence of the
 * same duration.
 */
export async function* speech(r: SpeechRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "speech")
    fail("not_found", `Model demo/${call.model} does not support speech. Use demo/speech.`, {
      code: "model_not_found",
      param: "model",
    });
  const format = r.format ?? "mp3";
  if (!FORMATS.includes(format))
    fail("unsupported", `demo/speech supports only ${FORMATS.join(", ")}.`, {
      param: "response_format",
      code: "unsupported_format",
    });
  const letters = [...r.input];
  if (letters.length > LONGEST)
    fail("invalid", `demo/speech accepts up to ${LONGEST} characters.`, {
      param: "input",
      code: "string_above_max_length",
    });
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  let index = 0;
  const piece = (bytes: Buffer): ModelEvent => ({ type: "item", index: index++, item: { bytes } });
  if (format === "wav") yield piece(headOf(r.input, letters.length * LETTER * 2));
  const seconds = (letters.length * LETTER) / RATE;
  if (format === "mp3") yield piece(silence(seconds));
  else
    for (const [i, letter] of letters.entries()) {
      if (i % 50 === 49) await turn();
      if (call.signal.aborted) fail("canceled", "The request was canceled.");
      yield piece(tone(letter));
    }
  yield { type: "usage", usage: { characters: letters.length } };
  yield { type: "finish", reason: "stop" };
}

function tone(letter: string): Buffer {
  const bytes = Buffer.alloc(LETTER * 2);
  const hertz = /\s/.test(letter) ? 0 : 220 + (letter.codePointAt(0)! % 96) * 8;
  for (let i = 0; i < LETTER; i++)
    bytes.writeInt16LE(Math.round(6_000 * Math.sin((2 * Math.PI * hertz * i) / RATE)), i * 2);
  return bytes;
}

/** Returns the RIFF header: sample format, comment, and data size. */
function headOf(words: string, size: number): Buffer {
  const form = Buffer.alloc(16);
  form.writeUInt16LE(1, 0);
  form.writeUInt16LE(1, 2);
  form.writeUInt32LE(RATE, 4);
  form.writeUInt32LE((RATE * BITS) / 8, 8);
  form.writeUInt16LE(BITS / 8, 12);
  form.writeUInt16LE(BITS, 14);
  const comment = chunk(
    "LIST",
    Buffer.concat([Buffer.from("INFO"), chunk("ICMT", Buffer.from(words))]),
  );
  const inside = Buffer.concat([
    Buffer.from("WAVE"),
    chunk("fmt ", form),
    comment,
    sized("data", size),
  ]);
  return Buffer.concat([sized("RIFF", inside.length + size), inside]);
}

function sized(name: string, size: number): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, 0);
  head.writeUInt32LE(size, 4);
  return head;
}

/** Creates a chunk, padded to an even length. */
const chunk = (name: string, content: Buffer): Buffer =>
  Buffer.concat([sized(name, content.length), content, Buffer.alloc(content.length % 2)]);

/** Returns silent frames of MPEG-2 Layer III at 8 kbit/s and 16 kHz: 36 bytes per 576 samples. */
function silence(seconds: number): Buffer {
  const frame = Buffer.alloc(36);
  frame.writeUInt32BE(0xfff318c4);
  const frames = Math.max(2, Math.ceil((seconds * 16_000) / 576));
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}
