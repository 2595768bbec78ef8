import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFault, type Body, type HeadersIn, type JsonObject } from "tollgate/plugin";
import { transcriptions, type TranscriptDialect } from "tollgate/protocols/transcriptions";
import {
  createResponseContext,
  createCallContext,
  decodeWhole,
  createOutgoing,
  protocolChecks,
  runRelay,
  type Recording,
} from "tollgate/testing";
import { encodeWhole } from "../../../src/testing/codec.ts";
import { CAPTIONS, SEGMENTS, wav, WORDS } from "../../e2e/operations/audio-vendors.ts";

const wire = transcriptions();
const JSONS: HeadersIn = { "content-type": "application/json" };
const EVENTS: HeadersIn = { "content-type": "text/event-stream" };
const PLAIN: HeadersIn = { "content-type": "text/plain; charset=utf-8" };
const LEAST = { model: "m", file: { filename: "a.wav", mime: "audio/wav", data: wav(2) } };

const event = (said: object) => `data: ${JSON.stringify(said)}\n\n`;
const tokens = {
  type: "tokens",
  input_tokens: 24,
  input_token_details: { text_tokens: 4, audio_tokens: 20 },
  output_tokens: 9,
  total_tokens: 33,
};
const seconds = { type: "duration", seconds: 4 };
const TEN = {
  seek: 0,
  tokens: [1],
  temperature: 0,
  avg_logprob: -0.2,
  compression_ratio: 1.2,
  no_speech_prob: 0.1,
};
const verbose = {
  task: "transcribe",
  language: "german",
  duration: 3.25,
  text: WORDS,
  segments: SEGMENTS.map((one, id) => ({ id, ...TEN, ...one })),
  words: [{ word: "Grüße", start: 0, end: 0.4 }],
  usage: seconds,
};
const recording = (
  name: string,
  more: object,
  said: JsonObject | string,
  of: { status?: number; headers?: HeadersIn } = {},
): Recording => ({
  name,
  request: { ...LEAST, ...more } as Body,
  status: of.status ?? 200,
  headers: of.headers ?? JSONS,
  body: Buffer.from(typeof said === "string" ? said : JSON.stringify(said)),
  events: undefined,
});
const RECORDINGS: readonly Recording[] = [
  recording("json", {}, { text: WORDS, usage: tokens }),
  recording(
    "json, of seconds",
    { temperature: "0.5", language: "de" },
    { text: WORDS, usage: seconds },
  ),
  recording("nothing was said", {}, { text: "", usage: seconds }),
  recording(
    "verbose",
    { response_format: "verbose_json", timestamp_granularities: ["word", "segment"] },
    verbose,
  ),
  recording("diarized", { response_format: "diarized_json", include: ["logprobs"] }, {
    task: "transcribe",
    duration: 3.25,
    text: WORDS,
    segments: SEGMENTS.map((one, id) => ({
      id: `seg_${id}`,
      speaker: "B",
      ...one,
      type: "transcript.text.segment",
    })),
    usage: tokens,
  } as JsonObject),
  recording(
    "in events",
    { stream: "true" },
    `${event({ type: "transcript.text.delta", delta: "Grüße ", logprobs: [{ token: "Gr", logprob: -0.1 }] })}${event({ type: "transcript.text.delta", delta: "aus Oslo." })}${event({ type: "transcript.text.done", text: "Grüße aus Oslo.", usage: tokens })}`,
    { headers: EVENTS },
  ),
  recording(
    "in events, by speakers",
    { stream: "true", response_format: "diarized_json" },
    `${event({ type: "transcript.text.segment", id: "seg_0", start: 0, end: 1, text: "Hi.", speaker: "A" })}${event({ type: "transcript.text.delta", delta: "Hi.", segment_id: "seg_0" })}${event({ type: "transcript.later" })}${event({ type: "transcript.text.done", text: "Hi.", task: "transcribe", duration: 1, usage: tokens })}`,
    { headers: EVENTS },
  ),
  recording(
    "an error",
    {},
    { error: { message: "Audio file is too short.", type: "invalid_request_error" } },
    { status: 400 },
  ),
];

describe("the rules of protocols", () => {
  for (const { name, run } of protocolChecks(wire, { recordings: RECORDINGS, trials: 20 }))
    it(name, run);
});

describe("the format that a client requested", () => {
  /** In both modes: the client's view. */
  const read = (
    said: Buffer,
    headers: HeadersIn,
    response_format: string,
    dialect: TranscriptDialect = {},
  ) => {
    const { client, server } = transcriptions(dialect);
    const to = createResponseContext({ body: { ...LEAST, response_format } as Body });
    return [
      runRelay(client!, [said], to, undefined, headers).bytes,
      encodeWhole(server!, decodeWhole(client!, said, createCallContext(), headers), to),
    ].map(String);
  };
  const whole = Buffer.from(JSON.stringify(verbose));

  it.each(["text", "srt", "vtt"] as const)(
    "%s: as the provider sent it, or converted from its response",
    (format) => {
      for (const got of read(Buffer.from(CAPTIONS[format]), PLAIN, format))
        expect(got).toBe(CAPTIONS[format]);
      for (const got of read(whole, JSONS, format)) expect(got).toBe(CAPTIONS[format]);
    },
  );

  it("json of a provider that only returns text", () => {
    for (const format of ["json", "verbose_json"])
      for (const got of read(Buffer.from("Hello"), PLAIN, format))
        expect(JSON.parse(got).text).toBe("Hello");
  });

  it("verbose_json has every required member, also from a provider with another format", () => {
    const said = Buffer.from(
      JSON.stringify({
        model: "voxtral",
        text: WORDS,
        language: "de",
        segments: SEGMENTS,
        usage: { prompt_audio_seconds: 4 },
      }),
    );
    for (const got of read(said, JSONS, "verbose_json", { formats: false })) {
      const { segments } = JSON.parse(got);
      expect(Object.keys(segments[0]).toSorted()).toEqual(
        ["id", "start", "end", "text", ...Object.keys(TEN)].toSorted(),
      );
    }
  });

  it("captions without timestamps are an error in either mode", () => {
    const said = Buffer.from('{"text":"Hello"}');
    for (const response_format of ["srt", "vtt"]) {
      const to = createResponseContext({ body: { ...LEAST, response_format } as Body });
      for (const run of [
        () => runRelay(wire.client!, [said], to, undefined, JSONS),
        () =>
          encodeWhole(
            wire.server!,
            decodeWhole(wire.client!, said, createCallContext(), JSONS),
            to,
          ),
      ])
        expect(getFault(caught(run))).toMatchObject({ kind: "upstream", code: "times_missing" });
    }
  });

  it("captions contain the text, and nothing that would end them", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 40 }), { maxLength: 5 }), (texts) => {
        const segments = texts.map((text, i) => ({ start: i, end: i + 1, text }));
        const said = Buffer.from(JSON.stringify({ text: "x", segments, usage: seconds }));
        fc.pre(texts.length > 0);
        for (const got of read(said, JSONS, "srt")) {
          expect(got.match(/-->/g)).toHaveLength(texts.length);
          expect(got.split("\n\n").filter((one) => one.trim() !== "")).toHaveLength(texts.length);
        }
      }),
    );
  });
});

describe("counts", () => {
  const usage = (said: object) =>
    runRelay(
      wire.client!,
      [Buffer.from(JSON.stringify({ text: "x", ...said }))],
      createResponseContext({ body: LEAST as never }),
      undefined,
      JSONS,
    ).usage;
  it.each([
    [{ usage: tokens }, { input: 4, audio_in: 20, output: 9 }],
    [{ usage: { input_tokens: 24, output_tokens: 9 } }, { input: 0, audio_in: 24, output: 9 }],
    [{ usage: seconds }, { seconds: 4 }],
    [{ usage: { prompt_audio_seconds: 4, prompt_tokens: 5 } }, { seconds: 4 }],
    [{ duration: 3.25 }, { seconds: 4 }],
    [{ duration: "3.25" }, { seconds: 4 }],
    [{}, {}],
  ])("%j is %j", (said, due) => expect(usage(said)).toEqual(due));

  it("the duration of the file is known before it is sent", () => {
    expect(wire.server!.analyze(LEAST as never).exactUsage).toEqual({ seconds: 2 });
    const odd = { ...LEAST, file: { ...LEAST.file, data: Buffer.from("no sound at all") } };
    expect(wire.server!.analyze(odd as never).exactUsage).toBeUndefined();
  });
});

describe("the outgoing request", () => {
  const sent = (
    dialect: TranscriptDialect,
    more: object,
    of: Parameters<typeof createCallContext>[0] = {},
  ) => {
    const out = createOutgoing({ ...LEAST, ...more } as Body);
    transcriptions(dialect).client!.prepare!(out, createCallContext({ model: "m", ...of }));
    return [out.get("response_format"), out.get("timestamp_granularities")];
  };
  const formats = [{ of: ["*"], formats: ["json", "verbose_json"] }];
  it("has a format that the model supports and that contains the requested data", () => {
    expect(sent({ formats }, { response_format: "srt" })).toEqual(["verbose_json", undefined]);
    expect(sent({ formats }, { response_format: "text" })).toEqual(["json", undefined]);
    expect(sent({}, { response_format: "srt" })).toEqual(["srt", undefined]);
    expect(sent({ formats: false }, { response_format: "srt" })).toEqual([undefined, ["segment"]]);
    expect(sent({ formats: false }, {})).toEqual([undefined, undefined]);
    expect(() => sent({ formats }, { response_format: "diarized_json" })).toThrow(/diarized_json/);
  });
  it("requests JSON for plain text if the price is per token, because plain text has no counts", () => {
    const priced = (unit: "seconds" | "audio_in") => ({
      info: {
        model: "m",
        operation: "transcript" as const,
        price: { lines: [{ unit, usd: "1", per: 1 as const }] },
      },
    });
    expect(sent({}, { response_format: "text" }, priced("audio_in"))).toEqual(["json", undefined]);
    expect(sent({}, { response_format: "text" }, priced("seconds"))).toEqual(["text", undefined]);
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
