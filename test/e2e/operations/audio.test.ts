// Speech and transcription through a whole gateway, with every provider and common SDKs: the
// requested content in the requested format, and one exact bill.
import { createReadStream } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { generateSpeech, transcribe } from "ai";
import { AzureOpenAI, toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ScriptedReply } from "tollgate/testing";
import { until } from "../../kit/wait.ts";
import {
  CAPTIONS,
  EARS,
  formIn,
  HEARS,
  SEGMENTS,
  SOUND,
  speaking,
  wav,
  WORDS,
} from "./audio-vendors.ts";
import { keyOf, operating, raised, type Operating } from "./stage.ts";
import { OPERATIONS } from "./table.ts";

/** Half of the audio, followed by `how`. */
const broken = (how: "stall" | "reset"): ScriptedReply => ({
  headers: { "content-type": "audio/mpeg" },
  body: [SOUND.subarray(0, 5_000), SOUND.subarray(5_000)],
  framing: "chunked",
  truncation: { after: { pieces: 1 }, how },
  billedUsage: { characters: 9 },
});

let at: Operating;
beforeAll(async () => {
  at = await operating({
    "POST /stalls/v1/audio/speech": broken("stall"),
    "POST /cut/v1/audio/speech": broken("reset"),
  });
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

const ai = () => createOpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey: keyOf("alice") });
const THREE = wav(3.25);
const file = () => toFile(THREE, "harbour.wav");
const bytes = async (answer: Response | { arrayBuffer(): Promise<ArrayBuffer> }) =>
  Buffer.from(await answer.arrayBuffer());

describe.each(EARS.map((ear) => [`${ear.name}/${ear.model}`, ear] as const))(
  "%s transcribes",
  (model, ear) => {
    const create = async (more: object = {}) =>
      (await at.client().audio.transcriptions.create({
        file: await file(),
        model,
        ...more,
      } as never)) as any;

    it.each(["json", "text", "srt", "verbose_json", "vtt", "diarized_json"])(
      "openai SDK: %s, or it is rejected with an explanation",
      async (response_format) => {
        const before = (await at.rows(ear.name)).length;
        if (!ear.formats.includes(response_format)) {
          const { status, message } = await raised(create({ response_format }));
          expect(status).toBe(400);
          expect(message).toContain(response_format);
          return;
        }
        const got = await create({ response_format });
        if (response_format in CAPTIONS) expect(got).toBe(CAPTIONS[response_format as "srt"]);
        else expect(got.text).toBe(WORDS);
        if (response_format === "verbose_json" || response_format === "diarized_json") {
          expect(got.segments.map(({ start, end, text }: any) => ({ start, end, text }))).toEqual(
            SEGMENTS,
          );
          expect(got.duration).toBeGreaterThan(3);
        }
        if (response_format === "diarized_json")
          for (const segment of got.segments)
            expect(segment).toMatchObject({
              id: expect.any(String),
              speaker: expect.any(String),
              type: "transcript.text.segment",
            });
        const [row, ...others] = (await at.rows(ear.name)).slice(before);
        expect(others).toEqual([]);
        const [bill] = at.up.bills;
        expect(row).toMatchObject({ state: "exact", usage: bill!.usage });
        expect(Number(row.costNano)).toBe(ear.nano(bill!.usage));
      },
    );

    it("openai SDK: a file on disk, a Blob, and bytes give the same result", async () => {
      const folder = await mkdtemp(join(tmpdir(), "tollgate-sound-"));
      const path = join(folder, "né.wav");
      await writeFile(path, THREE);
      const files = [
        createReadStream(path),
        new File([new Uint8Array(THREE)], "né.wav"),
        await file(),
      ];
      for (const one of files) expect((await create({ file: one })).text).toBe(WORDS);
      for (const asked of at.asked()) {
        const form = await formIn(asked);
        expect((form.get("file") as Buffer).equals(THREE)).toBe(true);
        expect(form.get("model")).toBe(ear.model);
      }
      await rm(folder, { recursive: true });
    });

    it("openai SDK: events give the same text", async () => {
      const events: any[] = [];
      for await (const event of await create({ stream: true })) events.push(event);
      const deltas = events.filter(({ type }) => type === "transcript.text.delta");
      expect(deltas.map(({ delta }) => delta).join("")).toBe(WORDS);
      expect(events.at(-1)).toMatchObject({ type: "transcript.text.done", text: WORDS });
      expect((await at.rows(ear.name)).at(-1)).toMatchObject({ usage: at.up.bills[0]!.usage });
    });

    it("AI SDK", async () => {
      // It requests the format that the model supports.
      const transcription = ai().transcription(model);
      const options = ear.formats.includes("verbose_json") ? "verbose_json" : "json";
      const got = await transcribe({
        model: transcription,
        audio: THREE,
        maxRetries: 0,
        providerOptions: { openai: { responseFormat: options } },
      });
      expect(got.text).toBe(WORDS);
      if (options === "verbose_json")
        expect(
          got.segments.map(({ text, startSecond, endSecond }) => ({
            start: startSecond,
            end: endSecond,
            text,
          })),
        ).toEqual(SEGMENTS);
    });

    it("translates, if the model can", async () => {
      const translating = at.client().audio.translations.create({ file: await file(), model });
      if (!ear.translates && ear.name !== "openai")
        return expect(await raised(translating)).toMatchObject({ status: 400 });
      if (!ear.translates) return void (await translating.catch(() => {}));
      expect((await translating).text).toBe(WORDS);
      return expect(at.asked().at(-1)!.path).toMatch(/\/audio\/translations$/);
    });
  },
);

const SAID = "Grüße aus Oslo 🌍";

describe.each(OPERATIONS["speech"]!.priced)("$model speaks", ({ model }) => {
  const ask = (more: object = {}) =>
    at.client().audio.speech.create({ model, input: SAID, voice: "alloy", ...more });

  it.each(["mp3", "wav", "pcm"] as const)(
    "openai SDK: %s, byte for byte",
    async (response_format) => {
      const got = await ask({ response_format });
      expect(got.headers.get("content-type")).toBe(
        { mp3: "audio/mpeg", wav: "audio/wav", pcm: "audio/pcm" }[response_format],
      );
      expect((await bytes(got)).equals(SOUND)).toBe(true);
    },
  );

  it("AI SDK", async () => {
    const got = await generateSpeech({
      model: ai().speech(model),
      text: SAID,
      voice: "alloy",
      maxRetries: 0,
    });
    expect(Buffer.from(got.audio.uint8Array).equals(SOUND)).toBe(true);
  });

  it("streams events, whichever provider produces them", async () => {
    const got = await ask({ stream_format: "sse" });
    expect(got.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const events = (await bytes(got))
      .toString()
      .split("\n\n")
      .filter(Boolean)
      .map((one) => JSON.parse(one.replace(/^data: /, "")));
    const sound = events.filter(({ type }) => type === "speech.audio.delta");
    expect(
      Buffer.concat(sound.map(({ audio }) => Buffer.from(audio, "base64"))).equals(SOUND),
    ).toBe(true);
    expect(events.at(-1)).toMatchObject({ type: "speech.audio.done" });
  });
});

it("under Service-ZDR, a custom voice stored at the provider is rejected", async () => {
  const odd = { model: "demo/speech", input: "x", voice: { id: "voice_1" } };
  const headers = { "service-zdr": "required" };
  expect(await raised(at.client().audio.speech.create(odd, { headers }))).toMatchObject({
    status: 400,
  });
});

describe("truncation", () => {
  it("bills all of the text if a client disconnects in mid-audio", async () => {
    const stop = new AbortController();
    const { signal } = stop;
    const asking = at
      .client()
      .audio.speech.create(
        { model: "stalls/my-tts", input: "123456789", voice: "alloy" },
        { signal },
      )
      .then((got) => got.arrayBuffer())
      .catch((error: Error) => error);
    await until(() => at.asked().length === 1);
    await until(() => at.asked()[0]!.bytesSent > 0);
    stop.abort();
    await asking;
    await until(() => at.asked()[0]!.state === "aborted");
    await until(async () => (await at.rows("stalls")).length === 1);
    // The provider accepted the whole text, and bills all of it.
    expect((await at.rows("stalls"))[0]).toMatchObject({
      state: "estimated",
      usage: { characters: 9 },
    });
  });

  it("partial audio never looks complete", async () => {
    const got = await at.client().audio.speech.create({
      model: "cut/my-tts",
      input: "123456789",
      voice: "alloy",
    });
    await expect(got.arrayBuffer()).rejects.toThrow();
    await until(async () => (await at.rows("cut")).length === 1);
  });

  it("a transcript that happens to be JSON stays plain text", async () => {
    const route = "POST /local/v1/audio/transcriptions";
    at.up.setRoutes({
      [route]: { headers: { "content-type": "application/json" }, body: '"Hello"' },
    });
    const asked = { model: "local/my-whisper", file: wav(1) };
    const answer = await at.ask({ path: "/v1/audio/transcriptions" }, asked);
    expect(answer).toMatchObject({ status: 200, body: { text: "Hello" } });
    at.up.setRoutes({ [route]: HEARS["POST /local/v1/audio/*"] });
  });

  it("text in place of audio is an error of its own", async () => {
    at.up.setRoutes({
      "POST /local/v1/audio/speech": { headers: { "content-type": "text/plain" }, body: "sorry" },
    });
    const asked = { model: "local/my-tts", input: "x", voice: "alloy" };
    expect(await raised(at.client().audio.speech.create(asked))).toMatchObject({
      status: 502,
      code: "bad_content_type",
    });
    at.up.setRoutes({ "POST /local/v1/audio/speech": speaking("characters") });
  });
});

describe("the offline demo", () => {
  it("transcribes its own speech, in every format", async () => {
    const spoken = await at.client().audio.speech.create({
      model: "demo/speech",
      input: SAID,
      voice: "any",
      response_format: "wav",
    });
    const said = await bytes(spoken);
    const hears = async (more: object) =>
      (await at.client().audio.transcriptions.create({
        model: "demo/transcribe",
        file: await toFile(said, "x.wav"),
        ...more,
      } as never)) as any;
    expect((await hears({})).text).toBe(SAID);
    expect(await hears({ response_format: "text" })).toBe(`${SAID}\n`);
    expect(await hears({ response_format: "srt" })).toContain(
      `1\n00:00:00,000 --> 00:00:01,000\n${SAID}\n`,
    );
    expect(await hears({ response_format: "vtt" })).toMatch(/^WEBVTT\n\n/);
    const verbose = await hears({
      response_format: "verbose_json",
      timestamp_granularities: ["word"],
    });
    expect(verbose.words.map(({ word }: any) => word)).toEqual(SAID.split(" "));
    expect((await hears({ response_format: "diarized_json" })).segments).toHaveLength(1);
    expect((await at.rows("demo")).at(-1)).toMatchObject({ state: "exact", usage: { seconds: 1 } });
    const got = await transcribe({
      model: ai().transcription("demo/transcribe"),
      audio: said,
      maxRetries: 0,
      providerOptions: { openai: { responseFormat: "verbose_json" } },
    });
    expect(got.text).toBe(SAID);
  });

  it("reports what it does not support", async () => {
    const asked = { model: "demo/speech", input: "x", voice: "any" } as const;
    expect(
      await raised(at.client().audio.speech.create({ ...asked, response_format: "opus" })),
    ).toMatchObject({ status: 400, code: "unsupported_format" });
    expect(
      await raised(at.client().audio.speech.create({ ...asked, model: "demo/transcribe" })),
    ).toMatchObject({ status: 400 });
    const got = await at.client().audio.speech.create(asked);
    expect((await bytes(got)).readUInt16BE(0)).toBe(0xfff3);
  });
});

it("a model of two providers falls back to the next, with the file", async () => {
  const ear = { model: "two-transcriptions", file: await file() };
  expect((await at.client().audio.transcriptions.create(ear)).text).toBe(WORDS);
  expect(at.asked().map(({ path }) => path.split("/")[1])).toEqual([
    "down-transcriptions",
    "sound-transcriptions",
  ]);
  for (const asked of at.asked())
    expect(((await formIn(asked)).get("file") as Buffer).equals(THREE)).toBe(true);
});

it("accepts Azure's clients", async () => {
  const azure = new AzureOpenAI({
    endpoint: at.gateway.url,
    apiKey: keyOf("alice"),
    apiVersion: "2025-04-01-preview",
    maxRetries: 0,
    deployment: "local/my-whisper",
  });
  expect(
    (await azure.audio.transcriptions.create({ model: "local/my-whisper", file: await file() }))
      .text,
  ).toBe(WORDS);
  const spoken = new AzureOpenAI({
    endpoint: at.gateway.url,
    apiKey: keyOf("alice"),
    apiVersion: "2025-04-01-preview",
    maxRetries: 0,
    deployment: "local/my-tts",
  });
  const got = await spoken.audio.speech.create({
    model: "local/my-tts",
    input: "x",
    voice: "alloy",
  });
  expect((await bytes(got)).equals(SOUND)).toBe(true);
});

it("writes no file to disk", async () => {
  const mark = Buffer.from("canary-7c1e-of-a-sound");
  await at.client().audio.transcriptions.create({
    model: "local/my-whisper",
    file: await toFile(wav(1, mark), "x.wav"),
  });
  expect(at.asked()[0]!.body.includes(mark)).toBe(true);
  const folder = at.gateway.dir;
  for (const name of await readdir(folder, { recursive: true })) {
    const found = await readFile(join(folder, name)).catch(() => Buffer.alloc(0));
    expect(found.includes(mark), name).toBe(false);
  }
});
