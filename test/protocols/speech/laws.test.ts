import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFault, type Body, type HeadersIn } from "tollgate/plugin";
import { speech, type SpeechDialect } from "tollgate/protocols/speech";
import {
  createResponseContext,
  createCallContext,
  decode,
  createOutgoing,
  protocolChecks,
  runRelay,
  type Recording,
} from "tollgate/testing";
import { encodeBytes, encodeWhole } from "../../../src/testing/codec.ts";
import { trialCount } from "../../kit/law-effort.ts";

const wire = speech();
const EVENTS: HeadersIn = { "content-type": "text/event-stream" };
const SOUND: HeadersIn = { "content-type": "audio/mpeg" };
const LEAST = { model: "m", input: "Grüße 🌍", voice: "alloy" };

const event = (said: object) => `data: ${JSON.stringify(said)}\n\n`;
const inEvents = (sound: Buffer, size: number): Buffer => {
  const pieces: string[] = [];
  for (let at = 0; at < sound.length; at += size)
    pieces.push(
      event({
        type: "speech.audio.delta",
        audio: sound.subarray(at, at + size).toString("base64"),
      }),
    );
  const usage = { input_tokens: 7, output_tokens: 21, total_tokens: 28 };
  return Buffer.from(pieces.join("") + event({ type: "speech.audio.done", usage }));
};
const heard = (bytes: Buffer): Buffer =>
  Buffer.concat(
    bytes
      .toString()
      .split("\n\n")
      .filter((one) => one.includes("speech.audio.delta"))
      .map((one) => Buffer.from(JSON.parse(one.replace(/^data: /, "")).audio, "base64")),
  );

const recording = (name: string, more: object, body: Buffer | string, status = 200): Recording => ({
  name,
  request: { ...LEAST, ...more } as Body,
  status,
  headers: status === 200 ? EVENTS : { "content-type": "application/json" },
  body: Buffer.from(body as string),
  events: undefined,
});
const RECORDINGS: readonly Recording[] = [
  recording(
    "in events",
    { stream_format: "sse", response_format: "pcm" },
    inEvents(Buffer.from("some sound of no format"), 5),
  ),
  recording(
    "with what is newer than us",
    { stream_format: "sse", speed: 1.5, instructions: "Whisper.", pitch: 2 },
    `: hello\n\n${event({ type: "speech.later", x: 1 })}${inEvents(Buffer.alloc(9_000, 7), 4_000).toString()}data: [DONE]\n\n`,
  ),
  recording(
    "a voice of its own",
    { stream_format: "sse", voice: { id: "voice_1" } },
    inEvents(Buffer.from("s"), 1),
  ),
  recording(
    "an error",
    {},
    '{"error":{"message":"No such voice","type":"invalid_request_error","code":null}}',
    400,
  ),
];

describe("the rules of protocols", () => {
  for (const { name, run } of protocolChecks(wire, { recordings: RECORDINGS, trials: 20 }))
    it(name, run);
});

const NONE = Buffer.alloc(0);
const WORDS = { json: Buffer.from(' {"a": 1, "b'), page: Buffer.from("<html>") };
/** Some start like text. Bytes that no text contains distinguish them. */
const sounds = fc
  .tuple(
    fc.constantFrom(NONE, WORDS.json, WORDS.page),
    fc.uint8Array({ minLength: 1, maxLength: 20_000 }),
  )
  .map(([begins, bytes]) => Buffer.concat([begins, Buffer.from([3]), Buffer.from(bytes)]));
const sizes = fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 12 });
function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let from = 0, i = 0; from < bytes.length; from += at[i % at.length]!, i++)
    pieces.push(bytes.subarray(from, from + at[i % at.length]!));
  return pieces;
}

describe("audio", () => {
  it("is forwarded unchanged in both modes and both formats, for any chunks", () => {
    fc.assert(
      fc.property(sounds, sizes, fc.boolean(), fc.boolean(), (sound, at, came, wanted) => {
        const body = { ...LEAST, ...(wanted && { stream_format: "sse" }) } as Body;
        const to = createResponseContext({ stream: true, body });
        const headers = came ? EVENTS : SOUND;
        const chunks = cut(came ? inEvents(sound, 3_001) : sound, at);
        const passthrough = runRelay(wire.client!, chunks, to, undefined, headers);
        const events = decode(wire.client!, chunks, createCallContext({ stream: true }), headers);
        const translated = encodeBytes(wire.server!, events, to);
        const inOne = encodeWhole(wire.server!, events, to);
        for (const bytes of [passthrough.bytes, translated, inOne])
          expect((wanted ? heard(bytes) : bytes).equals(sound)).toBe(true);
        expect(passthrough.usage).toEqual(came ? { input: 7, audio_out: 21 } : {});
        expect(passthrough.finishOffset).toBeLessThan(passthrough.bytes.length);
      }),
      { numRuns: trialCount(300) },
    );
  });

  it("is distinguished from text by its bytes, for any media type and any chunks", () => {
    const words = [
      '{"error":{"message":"Too much to do.","type":"overloaded_error"}}',
      '\n { "detail": "Grüße" }',
      '{"error":{"mess',
      "<!DOCTYPE html><h1>Bad gateway</h1>",
      `{"error":"${"x".repeat(70_000)}"}`,
    ];
    fc.assert(
      fc.property(fc.constantFrom(...words), sizes, fc.boolean(), (said, at, wanted) => {
        const body = { ...LEAST, ...(wanted && { stream_format: "sse" }) } as Body;
        const chunks = cut(Buffer.from(said), at);
        for (const run of [
          () =>
            runRelay(
              wire.client!,
              chunks,
              createResponseContext({ stream: true, body }),
              undefined,
              SOUND,
            ),
          () => decode(wire.client!, chunks, createCallContext({ stream: true }), SOUND),
        ])
          expect(getFault(caught(run)), said.slice(0, 100)).toMatchObject({
            kind: /overloaded/.test(said) ? "overloaded" : "upstream",
          });
      }),
      { numRuns: trialCount(200) },
    );
  });

  it("in truncated events is incomplete; text and an empty body are not audio", () => {
    const whole = inEvents(Buffer.from("sound"), 2);
    const kinds = [
      [whole.subarray(0, whole.length - 20), EVENTS],
      [Buffer.from(event({ type: "speech.audio.done", usage: {} })), EVENTS],
      [Buffer.from(event({ error: { message: "no" } })), EVENTS],
      [Buffer.from("data: {\n\n"), EVENTS],
      [Buffer.from("sorry"), { "content-type": "text/plain" }],
      [Buffer.alloc(0), SOUND],
    ] as const;
    for (const body of [LEAST, { ...LEAST, stream_format: "sse" }])
      for (const [bytes, headers] of kinds)
        for (const run of [
          () =>
            runRelay(
              wire.client!,
              [bytes],
              createResponseContext({ stream: true, body }),
              undefined,
              headers,
            ),
          () => decode(wire.client!, [bytes], createCallContext({ stream: true }), headers),
        ])
          expect(getFault(caught(run)), bytes.toString()).toMatchObject({
            kind: expect.any(String),
          });
  });
});

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return expect.unreachable("nothing was thrown");
}

describe("events are requested", () => {
  const sent = (dialect: SpeechDialect, model: string, more: object) => {
    const out = createOutgoing({ ...LEAST, ...more } as Body);
    speech(dialect).client!.prepare!(out, createCallContext({ model }));
    return out.get("stream_format");
  };
  it.each([
    [["gpt-*"], "gpt-4o-mini-tts", undefined, "sse"],
    [["gpt-*"], "gpt-4o-mini-tts", "audio", "sse"],
    [["gpt-*"], "tts-1", "sse", undefined],
    [undefined, "tts-1", "sse", "sse"],
    [undefined, "tts-1", undefined, undefined],
  ])("by %s, of %s, if a client sends %s: %s", (events, model, stream_format, due) =>
    expect(sent(events ? { events } : {}, model, stream_format ? { stream_format } : {})).toBe(due),
  );
});

it("characters are counted as users see them", () => {
  for (const [input, characters] of [
    ["Grüße", 5],
    ["🌍🌍", 2],
    ["", 0],
  ] as const)
    expect(wire.server!.analyze({ ...LEAST, input }).exactUsage).toEqual({ characters });
});
