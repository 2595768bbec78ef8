// Providers of speech and transcription in their own formats, with their bills.
import {
  eventStreamResponse,
  jsonResponse,
  type ResponsePiece,
  type ScriptedResponse,
  type UpstreamRequest,
} from "tollgate/testing";
import type { Usage } from "tollgate/plugin";

/** Requests of every provider, with their time. */
export const WORDS = "Grüße aus Oslo. The harbour is in the west.";
export const SEGMENTS = [
  { start: 0, end: 1.5, text: "Grüße aus Oslo." },
  { start: 1.5, end: 3.25, text: " The harbour is in the west." },
] as const;
const TEN = {
  seek: 0,
  tokens: [50_364, 2],
  temperature: 0,
  avg_logprob: -0.3,
  compression_ratio: 1.1,
  no_speech_prob: 0.02,
};
export const CAPTIONS = {
  text: `${WORDS}\n`,
  srt: "1\n00:00:00,000 --> 00:00:01,500\nGrüße aus Oslo.\n\n2\n00:00:01,500 --> 00:00:03,250\nThe harbour is in the west.\n\n",
  vtt: "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nGrüße aus Oslo.\n\n00:00:01.500 --> 00:00:03.250\nThe harbour is in the west.\n\n",
} as const;

/** A tone of one second per requested second, as WAV. */
export function wav(seconds: number, more: Buffer = Buffer.alloc(0)): Buffer {
  const rate = 8_000;
  const size = Math.round(seconds * rate);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + size, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36);
  head.writeUInt32LE(size, 40);
  const sound = Buffer.alloc(size, 127);
  more.copy(sound);
  return Buffer.concat([head, sound]);
}

/** The fields of a form, decoded by another parser. For the file, its bytes. */
export async function formIn(asked: UpstreamRequest): Promise<Map<string, string | Buffer>> {
  const type = asked.headers["content-type"] ?? "";
  const form = await new Response(new Uint8Array(asked.body), {
    headers: { "content-type": type },
  }).formData();
  const fields = new Map<string, string | Buffer>();
  for (const [name, value] of form)
    fields.set(name, typeof value === "string" ? value : Buffer.from(await value.arrayBuffer()));
  return fields;
}

/** A provider's bill for audio: started seconds, or tokens. */
type Billing = (file: Buffer) => { usage: Usage; said: object };
const secondsOf = (file: Buffer): number => Math.ceil((file.length - 44) / 8_000);
const bySecond: Billing = (file) => ({
  usage: { seconds: secondsOf(file) },
  said: { type: "duration", seconds: secondsOf(file) },
});
const byToken: Billing = (file) => {
  const heard = secondsOf(file) * 10;
  return {
    usage: { input: 4, audio_in: heard, output: 12 },
    said: {
      type: "tokens",
      input_tokens: heard + 4,
      input_token_details: { text_tokens: 4, audio_tokens: heard },
      output_tokens: 12,
      total_tokens: heard + 16,
    },
  };
};

const plainly = (body: string): ScriptedResponse => ({
  headers: { "content-type": "text/plain; charset=utf-8" },
  body,
});
const refused = (message: string): ScriptedResponse =>
  jsonResponse(
    { error: { message, type: "invalid_request_error", param: "response_format", code: null } },
    400,
  );

/**
 * OpenAI's format, and that of compatible providers. `streams`: its behavior if a stream is
 * requested.
 */
export const hearing =
  (of: { formats: readonly string[]; billing: Billing; streams: boolean; counts?: boolean }) =>
  async (asked: UpstreamRequest): Promise<ScriptedResponse> => {
    const form = await formIn(asked);
    const file = form.get("file") as Buffer;
    const format = (form.get("response_format") as string | undefined) ?? "json";
    if (!of.formats.includes(format)) return refused(`${format} is not supported`);
    const { usage, said } = of.billing(file);
    const bill = { billedUsage: usage };
    const counts = of.counts === false ? {} : { usage: said };
    if (form.get("stream") === "true" && of.streams) return { ...streamed(said), ...bill };
    const task = asked.path.endsWith("/translations") ? "translate" : "transcribe";
    const duration = secondsOf(file);
    const segments = SEGMENTS.map((one, id) => ({ id, ...TEN, ...one }));
    switch (format) {
      case "text":
      case "srt":
      case "vtt":
        return { ...plainly(CAPTIONS[format]), ...bill };
      case "verbose_json":
        return {
          ...jsonResponse({
            task,
            language: "german",
            duration,
            text: WORDS,
            segments,
            ...counts,
          } as never),
          ...bill,
        };
      case "diarized_json": {
        const spoken = SEGMENTS.map((one, id) => ({
          ...one,
          id: `seg_${id}`,
          speaker: "AB"[id],
          type: "transcript.text.segment",
        }));
        return {
          ...jsonResponse({ task, duration, text: WORDS, segments: spoken, ...counts } as never),
          ...bill,
        };
      }
      default:
        return { ...jsonResponse({ text: WORDS, ...counts } as never), ...bill };
    }
  };

const event = (said: object): ResponsePiece => `data: ${JSON.stringify(said)}\n\n`;

function streamed(usage: object): ScriptedResponse {
  const pieces = WORDS.match(/\S+\s*/g)!;
  return eventStreamResponse([
    ...pieces.map((delta) => event({ type: "transcript.text.delta", delta })),
    event({ type: "transcript.text.done", text: WORDS, usage }),
  ]);
}

/** Mistral's: one format, and events with other names. */
export const hearingMistral = async (asked: UpstreamRequest): Promise<ScriptedResponse> => {
  const form = await formIn(asked);
  if (form.has("response_format") || form.has("prompt"))
    return jsonResponse({ detail: "extra fields" }, 422);
  const seconds = secondsOf(form.get("file") as Buffer);
  const usage = {
    prompt_audio_seconds: seconds,
    prompt_tokens: 5,
    completion_tokens: 12,
    total_tokens: 17,
  };
  const timed = form.has("timestamp_granularities") || form.has("timestamp_granularities[]");
  const segments = timed ? SEGMENTS.map((one) => ({ ...one, type: "transcription_segment" })) : [];
  const answer = { model: "voxtral-mini-2602", text: WORDS, language: "de", segments, usage };
  if (form.get("stream") !== "true")
    return { ...jsonResponse(answer as never), billedUsage: { seconds } };
  const named = (type: string, said: object): ResponsePiece =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...said })}\n\n`;
  return {
    ...eventStreamResponse([
      named("transcription.language", { audio_language: "de" }),
      ...WORDS.match(/\S+\s*/g)!.map((text) => named("transcription.text.delta", { text })),
      named("transcription.done", answer),
    ]),
    billedUsage: { seconds },
  };
};

/** Audio in which every part is unique. */
export const SOUND = Buffer.from(
  Array.from({ length: 20_000 }, (_, i) => (i * 31 + (i >> 7)) & 255),
);

const piecesOf = (sound: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(sound.length / size) }, (_, i) =>
    sound.subarray(i * size, (i + 1) * size),
  );

const MIMES: { readonly [format: string]: string } = {
  mp3: "audio/mpeg",
  wav: "audio/wav",
  pcm: "audio/pcm",
};

/** By character, sent as generated. Or by tokens, which are reported in events only. */
export const speaking =
  (counted: "characters" | "tokens") =>
  (asked: UpstreamRequest): ScriptedResponse => {
    const { input, response_format = "mp3", stream_format = "audio" } = asked.json();
    const characters = Array.from(input as string).length;
    const bill: Usage =
      counted === "characters" ? { characters } : { input: characters, audio_out: characters * 3 };
    if (stream_format === "sse" && counted === "characters")
      return jsonResponse({ error: { message: "sse is not supported for this model" } }, 400);
    if (stream_format !== "sse")
      return {
        headers: { "content-type": MIMES[response_format] ?? "audio/mpeg" },
        body: piecesOf(SOUND, 3_000),
        framing: "chunked",
        billedUsage: bill,
      };
    return {
      ...eventStreamResponse([
        ...piecesOf(SOUND, 3_000).map((one) =>
          event({ type: "speech.audio.delta", audio: one.toString("base64") }),
        ),
        event({
          type: "speech.audio.done",
          usage: {
            input_tokens: characters,
            output_tokens: characters * 3,
            total_tokens: characters * 4,
          },
        }),
      ]),
      billedUsage: bill,
    };
  };

const ALL = ["json", "text", "srt", "verbose_json", "vtt"] as const;

export interface Ear {
  readonly name: string;
  readonly model: string;
  /** Formats that a client can request. */
  readonly formats: readonly string[];
  /** Per second, or per token, in nano-dollars. `hold`: the counted unit. */
  readonly nano: (usage: Usage) => number;
  readonly translates: boolean;
}

const aSecond = ({ seconds = 0 }: Usage): number => seconds * 100_000;

export const EARS: readonly Ear[] = [
  { name: "openai", model: "whisper-1", formats: ALL, nano: aSecond, translates: true },
  {
    name: "openai",
    model: "gpt-4o-transcribe",
    formats: ["json", "text"],
    nano: ({ input = 0, audio_in = 0, output = 0 }) =>
      input * 2_500 + audio_in * 6_000 + output * 10_000,
    translates: false,
  },
  {
    name: "openai",
    model: "gpt-4o-transcribe-diarize",
    formats: ["json", "text", "diarized_json", "srt", "vtt"],
    nano: ({ input = 0, audio_in = 0, output = 0 }) =>
      input * 2_500 + audio_in * 6_000 + output * 10_000,
    translates: false,
  },
  { name: "groq", model: "whisper-large-v3", formats: ALL, nano: aSecond, translates: true },
  {
    name: "mistral",
    model: "voxtral-mini-latest",
    formats: [...ALL, "diarized_json"],
    nano: aSecond,
    translates: false,
  },
  { name: "local", model: "my-whisper", formats: ALL, nano: aSecond, translates: true },
  { name: "turned", model: "my-whisper", formats: ALL, nano: aSecond, translates: true },
];

const listed = (...ids: readonly string[]): ScriptedResponse =>
  jsonResponse({ object: "list", data: ids.map((id) => ({ id, object: "model" })) });

export const HEARS = {
  "GET /openai/v1/models": listed(
    "whisper-1",
    "gpt-4o-transcribe",
    "gpt-4o-transcribe-diarize",
    "tts-1",
    "gpt-4o-mini-tts",
    "gpt-realtime",
  ),
  "GET /groq/openai/v1/models": listed("whisper-large-v3"),
  "GET /mistral/v1/models": listed("voxtral-mini-latest"),
  "POST /openai/v1/audio/transcriptions": async (asked: UpstreamRequest) => {
    const model = String((await formIn(asked)).get("model"));
    return await hearing(
      model === "whisper-1"
        ? { formats: ALL, billing: bySecond, streams: false }
        : model.endsWith("diarize")
          ? { formats: ["json", "text", "diarized_json"], billing: byToken, streams: true }
          : { formats: ["json"], billing: byToken, streams: true },
    )(asked);
  },
  "POST /openai/v1/audio/translations": hearing({
    formats: ALL,
    billing: bySecond,
    streams: false,
  }),
  "POST /groq/openai/v1/audio/*": hearing({
    formats: ALL,
    billing: bySecond,
    streams: false,
    counts: false,
  }),
  "POST /mistral/v1/audio/transcriptions": hearingMistral,
  "POST /local/v1/audio/*": hearing({
    formats: ALL,
    billing: bySecond,
    streams: true,
    counts: false,
  }),
} as const;
