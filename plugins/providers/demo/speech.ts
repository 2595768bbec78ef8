import { setImmediate as turn } from "node:timers/promises";
import { fail, type Call, type ModelEvent, type SpeechRequest } from "tollgate/plugin";
import { digestOf } from "./seeded-random.ts";

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
