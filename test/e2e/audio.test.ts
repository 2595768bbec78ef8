// Speech and transcripts through a whole gateway, from every host, by the SDKs that people use: what a client asked for, in the form
// that it asked for, and one exact bill.
import { createReadStream } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { generateSpeech, transcribe } from "ai";
import OpenAI, { AzureOpenAI, toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Usage } from "tollgate/plugin";
import { digest } from "../../src/lib/key.ts";
import { staged, type LocalStage } from "../kit/in-process.ts";
import { until } from "../kit/waits.ts";
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
} from "./audio/vendors.ts";

const KEYS = {
  alice: "alice-key",
  poor: "poor-key",
  narrow: "narrow-key",
  few: "few-key",
} as const;
const TOKENS = `price: { input: "2.5", audio_in: "6", output: "10" }`;
const SECONDS = `kind: transcript, price: { seconds: "0.0001" }`;

let at: LocalStage;
beforeAll(async () => {
  at = await staged(
    {
      ...HEARS,
      "POST /openai/v1/audio/speech": (asked) =>
        speaking(asked.json().model.startsWith("gpt-") ? "tokens" : "characters")(asked),
      "POST /local/v1/audio/speech": speaking("characters"),
      "POST /eventful/v1/audio/speech": speaking("tokens"),
      "POST /slow/v1/audio/*": { waitMs: 20_000 },
      "POST /stalls/v1/audio/speech": {
        headers: { "content-type": "audio/mpeg" },
        body: [SOUND.subarray(0, 5_000), SOUND.subarray(5_000)],
        framing: "chunked",
        cut: { after: { pieces: 1 }, how: "stall" },
        bill: { characters: 9 },
      },
      "POST /cut/v1/audio/speech": {
        headers: { "content-type": "audio/mpeg" },
        body: [SOUND.subarray(0, 5_000), SOUND.subarray(5_000)],
        framing: "chunked",
        cut: { after: { pieces: 1 }, how: "reset" },
        bill: { characters: 9 },
      },
    },
    (up) => `
store: { use: memory }
attempts: { target: 1 }
frontends: [chat-completions, speech, transcriptions, models]
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digest(KEYS.alice)}" }
        - { id: narrow, digest: "${digest(KEYS.narrow)}", models: ["demo/*"] }
        - { id: poor, digest: "${digest(KEYS.poor)}", limits: [usd=0.0003/total] }
        - { id: few, digest: "${digest(KEYS.few)}", limits: [seconds=5/total, characters=10/total] }
  - { use: ./quiet.ts, for: { models: ["turned/*"] } }
  - zdr
  - limits
  - usage
providers:
  demo: { use: demo }
  openai:
    use: openai
    with: { api_key: k, base_url: "${up}/openai/v1" }
    models: { gpt-4o-transcribe: { ${TOKENS} }, gpt-4o-transcribe-diarize: { ${TOKENS} }, tts-1: { price: { characters: "0.000015" } } }
  groq:
    use: groq
    with: { api_key: k, base_url: "${up}/groq/openai/v1" }
    models: { whisper-large-v3: { price: { seconds: "0.0001" } } }
  mistral:
    use: mistral
    with: { api_key: k, base_url: "${up}/mistral/v1" }
    models: { voxtral-mini-latest: { price: { seconds: "0.0001" } } }
${["local", "slow", "stalls", "cut"].map((name) => host(name, `${up}/${name}/v1`)).join("")}
${host("turned", `${up}/local/v1`)}
  eventful:
    use: openai-compatible
    with: { base_url: "${up}/eventful/v1", speech: ["*"], speech_events: true, models: false }
    models: { my-tts: { kind: speech, price: { input: "0.6", audio_out: "12" } } }
models:
  ear: { candidates: [slow/my-whisper, local/my-whisper] }
`,
    {
      // A hook on the events closes the verbatim lane.
      files: {
        "quiet.ts": `import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({ api: 1, name: "quiet", summary: "Touches nothing", sends: "nowhere", setup: () => ({ event: (_call, next) => next }) });
`,
      },
    },
  );
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.forget());

const host = (name: string, base: string) => `
  ${name}:
    use: openai-compatible
    with: { base_url: "${base}", speech: ["*tts"], speech_events: false, transcriptions: ["*whisper"], models: false }
    models: { my-tts: { kind: speech, price: { characters: "0.000015" } }, my-whisper: { ${SECONDS} } }
`;

const client = (apiKey: string = KEYS.alice) =>
  new OpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey, maxRetries: 0 });
const ai = () => createOpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey: KEYS.alice });
/** What an SDK throws. */
const raised = (run: Promise<unknown>): Promise<any> =>
  run.then(
    () => expect.unreachable("nothing was raised"),
    ({ status, code, message }) => ({ status, code, message }),
  );
/** Settle rows of a provider, oldest first. */
async function rows(provider?: string): Promise<any[]> {
  const { items } = (await at.gateway.ask("ledger.entries", { limit: 500 })) as any;
  return items.filter(
    (row: any) => row.kind === "settle" && (!provider || row.target.provider === provider),
  );
}
const THREE = wav(3.25);
const file = () => toFile(THREE, "harbour.wav");
const bytes = async (answer: Response | { arrayBuffer(): Promise<ArrayBuffer> }) =>
  Buffer.from(await answer.arrayBuffer());

describe.each(EARS.map((ear) => [`${ear.name}/${ear.model}`, ear] as const))(
  "%s hears",
  (model, ear) => {
    const create = async (more: object = {}) =>
      (await client().audio.transcriptions.create({
        file: await file(),
        model,
        ...more,
      } as never)) as any;

    it.each(["json", "text", "srt", "verbose_json", "vtt", "diarized_json"])(
      "openai SDK: %s, or it is refused in words",
      async (response_format) => {
        const before = (await rows(ear.name)).length;
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
        const [row, ...others] = (await rows(ear.name)).slice(before);
        expect(others).toEqual([]);
        const [bill] = at.up.bill;
        expect(row).toMatchObject({ state: "exact", usage: bill!.usage });
        expect(Number(row.costNano)).toBe(ear.nano(bill!.usage));
      },
    );

    it("openai SDK: a file on a disk, a Blob, and bytes are the same", async () => {
      const folder = await mkdtemp(join(tmpdir(), "tollgate-sound-"));
      const path = join(folder, "né.wav");
      await writeFile(path, THREE);
      const files = [
        createReadStream(path),
        new File([new Uint8Array(THREE)], "né.wav"),
        await file(),
      ];
      for (const one of files) expect((await create({ file: one })).text).toBe(WORDS);
      for (const asked of at.up.requests) {
        const form = await formIn(asked);
        expect((form.get("file") as Buffer).equals(THREE)).toBe(true);
        expect(form.get("model")).toBe(ear.model);
      }
      await rm(folder, { recursive: true });
    });

    it("openai SDK: in events, which are the same words", async () => {
      const events: any[] = [];
      for await (const event of await create({ stream: true })) events.push(event);
      const deltas = events.filter(({ type }) => type === "transcript.text.delta");
      expect(deltas.map(({ delta }) => delta).join("")).toBe(WORDS);
      expect(events.at(-1)).toMatchObject({ type: "transcript.text.done", text: WORDS });
      expect((await rows(ear.name)).at(-1)).toMatchObject({ usage: at.up.bill[0]!.usage });
    });

    it("AI SDK", async () => {
      // It asks for the form that it knows the model by.
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

    it("translates, where it can", async () => {
      const translating = client().audio.translations.create({ file: await file(), model });
      if (!ear.translates && ear.name !== "openai")
        return expect(await raised(translating)).toMatchObject({ status: 400 });
      if (!ear.translates) return void (await translating.catch(() => {}));
      expect((await translating).text).toBe(WORDS);
      return expect(at.up.requests.at(-1)!.path).toMatch(/\/audio\/translations$/);
    });
  },
);

const VOICES = [
  ["openai/tts-1", ({ characters = 0 }) => characters * 15_000],
  ["openai/gpt-4o-mini-tts", ({ input = 0, audio_out = 0 }) => input * 600 + audio_out * 12_000],
  ["local/my-tts", ({ characters = 0 }) => characters * 15_000],
  ["turned/my-tts", ({ characters = 0 }) => characters * 15_000],
  ["eventful/my-tts", ({ input = 0, audio_out = 0 }) => input * 600 + audio_out * 12_000],
] as const satisfies readonly (readonly [string, (usage: Usage) => number])[];
const SAID = "Grüße aus Oslo 🌍";

describe.each(VOICES)("%s speaks", (model, nano) => {
  const provider = model.split("/")[0]!;
  const ask = (more: object = {}) =>
    client().audio.speech.create({ model, input: SAID, voice: "alloy", ...more });

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

  it("in events, whoever makes them", async () => {
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

  it("bills what the host charges, to the last", async () => {
    const before = (await rows(provider)).length;
    await bytes(await ask());
    const [row, ...others] = (await rows(provider)).slice(before);
    expect(others).toEqual([]);
    const { usage } = at.up.bill[0]!;
    expect(row).toMatchObject({ state: "exact", usage });
    expect(Number(row.costNano)).toBe(nano(usage));
  });
});

it("what the ledger counted is what the hosts billed", async () => {
  const before = (await rows()).length;
  await Promise.all([
    ...EARS.flatMap(({ name, model, formats }) =>
      formats.map(async (response_format) =>
        client().audio.transcriptions.create({
          file: await file(),
          model: `${name}/${model}`,
          response_format,
        } as never),
      ),
    ),
    ...VOICES.map(async ([model]) =>
      bytes(await client().audio.speech.create({ model, input: SAID, voice: "alloy" })),
    ),
  ]);
  const booked = (await rows()).slice(before);
  const sum = (all: readonly { usage: any }[], unit: string) =>
    all.reduce((total, { usage }) => total + (usage[unit] ?? 0), 0);
  for (const unit of ["seconds", "characters", "input", "audio_in", "audio_out", "output"])
    expect(sum(booked, unit), unit).toBe(sum(at.up.bill, unit));
  expect(booked.map(({ state }) => state)).toEqual(booked.map(() => "exact"));
});

describe("who is refused", () => {
  const hears = async (key: string, model: string, of: Buffer = THREE, headers = {}) =>
    client(key).audio.transcriptions.create(
      { file: await toFile(of, "x.wav"), model },
      { headers },
    );
  const speaks = (key: string, model: string, input = "Hello", headers = {}) =>
    client(key).audio.speech.create({ model, input, voice: "alloy" }, { headers });

  it("a key that may not use the model, and none at all", async () => {
    for (const [key, status] of [
      [KEYS.narrow, 403],
      ["no-key", 401],
    ] as const) {
      expect(await raised(hears(key, "local/my-whisper"))).toMatchObject({ status });
      expect(await raised(speaks(key, "local/my-tts"))).toMatchObject({ status });
    }
    expect(at.up.requests).toEqual([]);
  });

  it("a budget that its hold does not fit in, and the next request that does", async () => {
    expect(await raised(hears(KEYS.poor, "local/my-whisper", wav(30)))).toMatchObject({
      status: 429,
      code: "insufficient_quota",
    });
    expect(await raised(speaks(KEYS.poor, "local/my-tts", "word ".repeat(50)))).toMatchObject({
      status: 429,
    });
    expect(at.up.requests).toEqual([]);
    await hears(KEYS.poor, "local/my-whisper", wav(0.5));
    await bytes(await speaks(KEYS.poor, "local/my-tts", "Hi"));
    expect((await rows("local")).slice(-2).map(({ costNano }) => Number(costNano))).toEqual([
      100_000, 30_000,
    ]);
  });

  it("a limit in seconds, or in characters", async () => {
    await hears(KEYS.few, "local/my-whisper", wav(4));
    expect(await raised(hears(KEYS.few, "local/my-whisper", wav(4)))).toMatchObject({
      status: 429,
    });
    await bytes(await speaks(KEYS.few, "local/my-tts", "12345678"));
    expect(await raised(speaks(KEYS.few, "local/my-tts", "12345678"))).toMatchObject({
      status: 429,
    });
  });

  it("under Service-ZDR whatever nobody vouches for", async () => {
    const zdr = { "service-zdr": "required" };
    for (const { name, model } of EARS)
      expect(await raised(hears(KEYS.alice, `${name}/${model}`, THREE, zdr)), name).toMatchObject({
        status: 403,
      });
    for (const [model] of VOICES)
      expect(await raised(speaks(KEYS.alice, model, "Hello", zdr)), model).toMatchObject({
        status: 403,
      });
    expect(at.up.requests).toEqual([]);
    await hears(KEYS.alice, "demo/transcribe", THREE, zdr);
    await bytes(await speaks(KEYS.alice, "demo/speech", "Hello", zdr));
    const odd = { model: "demo/speech", input: "x", voice: { id: "voice_1" } };
    expect(await raised(client().audio.speech.create(odd, { headers: zdr }))).toMatchObject({
      status: 400,
    });
  });
});

describe("what breaks off", () => {
  it("a client that goes away: upstream is let go of, and the row says so", async () => {
    for (const model of ["slow/my-whisper", "stalls/my-tts"]) {
      const provider = model.split("/")[0]!;
      const stop = new AbortController();
      const { signal } = stop;
      const asking = (
        model.endsWith("tts")
          ? client()
              .audio.speech.create({ model, input: "123456789", voice: "alloy" }, { signal })
              .then((got) => got.arrayBuffer())
          : client().audio.transcriptions.create({ model, file: await file() }, { signal })
      ).catch((error: Error) => error);
      at.up.forget();
      await until(() => at.up.requests.length === 1);
      if (provider === "stalls") await until(() => at.up.requests[0]!.sent > 0);
      stop.abort();
      await asking;
      await until(() => at.up.requests[0]!.state === "aborted");
      await until(async () => (await rows(provider)).length === 1);
    }
    // All of a text was taken on: its host bills all of it.
    expect((await rows("stalls"))[0]).toMatchObject({
      state: "estimated",
      usage: { characters: 9 },
    });
  });

  it("half a sound never looks whole", async () => {
    const got = await client().audio.speech.create({
      model: "cut/my-tts",
      input: "123456789",
      voice: "alloy",
    });
    await expect(got.arrayBuffer()).rejects.toThrow();
    await until(async () => (await rows("cut")).length === 1);
  });

  it("what is called JSON and is none is no transcript; a text of JSON is plain words", async () => {
    const form = () => {
      const of = new FormData();
      of.set("model", "local/my-whisper");
      of.set("file", new Blob([new Uint8Array(wav(1))]), "a.wav");
      return of;
    };
    const asked = () =>
      fetch(`${at.gateway.url}/v1/audio/transcriptions`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEYS.alice}` },
        body: form(),
      });
    const ROUTE = "POST /local/v1/audio/transcriptions";
    const hears = at.up;
    for (const [body, status] of [
      ["\u0007\u0000 no answer", 502],
      ["data: no answer", 502],
      ["7", 502],
      ['"Hello"', 200],
    ] as const) {
      hears.script({
        [ROUTE]: {
          headers: { "content-type": "application/json" },
          body,
        },
      });
      const answer = await asked();
      expect([body, answer.status]).toEqual([body, status]);
      if (status === 200) expect(await answer.json()).toMatchObject({ text: "Hello" });
    }
    hears.script({ [ROUTE]: HEARS["POST /local/v1/audio/*"] });
  });

  it("words where sound was asked for are an error, and no sound", async () => {
    at.up.script({
      "POST /local/v1/audio/speech": { headers: { "content-type": "text/plain" }, body: "sorry" },
    });
    const asked = { model: "local/my-tts", input: "x", voice: "alloy" };
    expect(await raised(client().audio.speech.create(asked))).toMatchObject({
      status: 502,
      code: "bad_content_type",
    });
    // The head of an error, or half of one, is no sound either, whatever it is called.
    for (const [type, body] of [
      ["application/json", '{"choices": ['],
      ["audio/mpeg", '{"error":{"message":"no"}}'],
      ["audio/mpeg", "<html>no</html>"],
    ] as const) {
      at.up.script({
        "POST /local/v1/audio/speech": { headers: { "content-type": type }, body },
      });
      expect(await raised(client().audio.speech.create(asked)), body).toMatchObject({
        status: 502,
      });
    }
    at.up.script({
      "POST /local/v1/audio/speech": { headers: { "content-type": "audio/mpeg" }, body: "" },
    });
    expect(await raised(client().audio.speech.create(asked))).toMatchObject({ status: 502 });
    at.up.script({ "POST /local/v1/audio/speech": speaking("characters") });
  });
});

describe("the demo, offline", () => {
  it("hears what it has said, in every form", async () => {
    const spoken = await client().audio.speech.create({
      model: "demo/speech",
      input: SAID,
      voice: "any",
      response_format: "wav",
    });
    const said = await bytes(spoken);
    const hears = async (more: object) =>
      (await client().audio.transcriptions.create({
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
    expect((await rows("demo")).at(-1)).toMatchObject({ state: "exact", usage: { seconds: 1 } });
    const got = await transcribe({
      model: ai().transcription("demo/transcribe"),
      audio: said,
      maxRetries: 0,
      providerOptions: { openai: { responseFormat: "verbose_json" } },
    });
    expect(got.text).toBe(SAID);
  });

  it("says what it cannot", async () => {
    const asked = { model: "demo/speech", input: "x", voice: "any" } as const;
    expect(
      await raised(client().audio.speech.create({ ...asked, response_format: "opus" })),
    ).toMatchObject({ status: 400, code: "unsupported_format" });
    expect(await raised(client().audio.speech.create({ ...asked, input: "" }))).toMatchObject({
      status: 400,
    });
    expect(
      await raised(client().audio.speech.create({ ...asked, model: "demo/transcribe" })),
    ).toMatchObject({ status: 400 });
    const got = await client().audio.speech.create(asked);
    expect((await bytes(got)).readUInt16BE(0)).toBe(0xfff3);
  });
});

it("a name of two hosts goes on to the next, with the file", async () => {
  at.up.script({
    "POST /slow/v1/audio/*": {
      status: 529,
      headers: { "content-type": "application/json" },
      body: "{}",
    },
  });
  expect(
    (await client().audio.transcriptions.create({ model: "ear", file: await file() })).text,
  ).toBe(WORDS);
  expect(at.up.requests.map(({ path }) => path.split("/")[1])).toEqual(["slow", "local"]);
});

it("a client of Azure's is understood", async () => {
  const azure = new AzureOpenAI({
    endpoint: at.gateway.url,
    apiKey: KEYS.alice,
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
    apiKey: KEYS.alice,
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

it("lists say what a model is for, and errors where to ask", async () => {
  const headers = { authorization: `Bearer ${KEYS.alice}` };
  for (const [kind, id] of [
    ["speech", "demo/speech"],
    ["transcript", "demo/transcribe"],
  ]) {
    const res = await fetch(`${at.gateway.url}/v1/models?kind=${kind}`, { headers });
    const { data } = (await res.json()) as any;
    expect(data.find((one: any) => one.id === id)).toMatchObject({ kind });
  }
  const chat = (model: string) =>
    client().chat.completions.create({ model, messages: [{ role: "user", content: "x" }] });
  expect((await raised(chat("demo/speech"))).message).toContain(
    "is a speech model: ask for it at /v1/audio/speech",
  );
  expect((await raised(chat("demo/transcribe"))).message).toContain(
    "is a transcription model: ask for it at /v1/audio/transcriptions",
  );
});

it("no file stands on any disk", async () => {
  const mark = Buffer.from("canary-7c1e-of-a-sound");
  await client().audio.transcriptions.create({
    model: "local/my-whisper",
    file: await toFile(wav(1, mark), "x.wav"),
  });
  expect(at.up.requests[0]!.body.includes(mark)).toBe(true);
  const folder = at.gateway.dir;
  for (const name of await readdir(folder, { recursive: true })) {
    const found = await readFile(join(folder, name)).catch(() => Buffer.alloc(0));
    expect(found.includes(mark), name).toBe(false);
  }
});
