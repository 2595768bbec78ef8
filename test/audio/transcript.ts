// Words from sound: a form comes in, and JSON, plain text or lines of JSON come out.
import {
  fail,
  isFilePart,
  type AnswerContext,
  type Body,
  type ClientHalf,
  type CommonRequest,
  type FilePart,
  type JsonObject,
  type ModelAnswer,
  type Opt,
  type Protocol,
  type ServerHalf,
  type Usage,
  type Work,
} from "tollgate/plugin";
import { lines } from "tollgate/protocols/sse";
import { isObject, parsed, refused, told } from "./parts.ts";

export type TranscriptRequest = Readonly<
  CommonRequest & {
    kind: "dictation";
    file: FilePart;
    language?: Opt<string>;
    temperature?: Opt<number>;
    granularities: readonly string[];
  }
>;
export interface Transcript {
  readonly text: string;
}

declare module "tollgate/plugin" {
  interface Works {
    dictation: { request: TranscriptRequest; item: Transcript };
  }
}

export const transcriptWork: Work<"dictation"> = {
  kind: "dictation",
  noun: "a transcription model",
  modality: "transcripts",
  listed: true,
  written: false,
  whole: [["seconds"]],
  most: ({ counts }) => [[{ units: ["seconds"], count: counts.seconds ?? 3600 }]],
  guess: ({ usage }) => ({ ...usage, seconds: usage.seconds ?? 0 }),
  pricing: ["{ seconds: … }", "dollars a second"],
  examples: [{ about: "a minute", usage: { seconds: 60 } }],
  sample: (model) => ({
    kind: "dictation",
    model,
    stream: false,
    file: { filename: "a.wav", mime: "audio/wav", data: Buffer.from("RIFF") },
    granularities: [],
    rest: {},
    ext: {},
  }),
};

const fileOf = ({ file }: Body): FilePart =>
  isFilePart(file)
    ? file
    : fail("invalid", "file must be a file of the form.", { param: "file", code: "invalid_file" });

/** In a form all is text. */
function numberOf(said: unknown, field: string): number | undefined {
  if (said === undefined) return undefined;
  const number = typeof said === "string" ? Number(said) : said;
  return typeof number === "number" && Number.isFinite(number)
    ? number
    : fail("invalid", `${field} must be a number.`, { param: field });
}

const plain = ({ body }: Pick<AnswerContext, "body">) => body["response_format"] === "text";
const textOf = ({ items = [] }: ModelAnswer) =>
  items.map((item) => (item as Transcript).text).join("");

const server: ServerHalf<"dictation"> = {
  schema: {
    type: "object",
    required: ["model", "file"],
    properties: {
      model: { type: "string" },
      file: { type: "object" },
      language: { type: "string" },
      response_format: { enum: ["json", "text"] },
    },
  },
  survey(body) {
    const { file } = body;
    const bytes = isFilePart(file) ? file.data.length : 0;
    return { features: [], media: { count: 1, bytes } };
  },
  request(body) {
    const { model, file: _file, language, temperature, timestamp_granularities, ...rest } = body;
    const { response_format: _format, stream, ...others } = rest;
    return {
      kind: "dictation",
      model: model as string,
      stream: stream === "true",
      file: fileOf(body),
      language: language as string | undefined,
      temperature: numberOf(temperature, "temperature"),
      granularities: ([timestamp_granularities].flat() as string[]).filter(Boolean),
      rest: others as JsonObject,
      ext: {},
    };
  },
  type: (asked) =>
    asked.stream
      ? "application/x-ndjson"
      : plain(asked)
        ? "text/plain; charset=utf-8"
        : "application/json",
  stream(write) {
    const line = (value: JsonObject) => write(`${JSON.stringify(value)}\n`);
    let usage: Usage = {};
    return {
      event(event) {
        if (event.type === "item") line({ delta: (event.item as Transcript).text });
        if (event.type === "usage") usage = event.usage;
        if (event.type === "finish") line({ done: true, seconds: usage.seconds ?? 0 });
      },
      fail: (fault) => line(told(fault).body as unknown as JsonObject),
    };
  },
  whole: (answer, to) =>
    plain(to)
      ? Buffer.from(textOf(answer))
      : { text: textOf(answer), usage: { type: "duration", seconds: answer.usage.seconds ?? 0 } },
  fault: told,
  ping: "",
};

const secondsOf = (said: JsonObject): Usage => {
  const usage = isObject(said["usage"]) ? said["usage"]["seconds"] : said["seconds"];
  return typeof usage === "number" ? { seconds: usage } : {};
};

const client: ClientHalf<"dictation"> = {
  paths: { generate: "/audio/transcriptions" },
  request: ({ file, language, temperature, granularities, stream }, { model }) => ({
    model,
    file,
    language,
    temperature,
    ...(granularities.length > 0 && { timestamp_granularities: granularities }),
    ...(stream && { stream: true }),
  }),
  stream(emit) {
    let ended = false;
    let index = 0;
    emit({ type: "start" });
    const read = lines((line) => {
      const said = parsed(line);
      if (typeof said["delta"] === "string")
        emit({ type: "item", index: index++, item: { text: said["delta"] } });
      if (said["done"] !== true) return;
      emit({ type: "usage", usage: secondsOf(said) });
      emit({ type: "finish", reason: "stop" });
      ended = true;
    });
    return {
      push: (chunk) => read.push(chunk),
      end() {
        read.end();
        if (!ended) fail("upstream", "The lines ended too soon.", { code: "truncated" });
      },
    };
  },
  whole(body, emit) {
    const said = parsed(body.toString());
    emit({ type: "start" });
    emit({ type: "item", index: 0, item: { text: String(said["text"]) } });
    emit({ type: "usage", usage: secondsOf(said) });
    emit({ type: "finish", reason: "stop" });
  },
  fault: (status) => refused(status),
};

/** Upstream's own type goes on; plain text brings no counts, and lines bring them in the last one. */
const relay: NonNullable<ClientHalf<"dictation">["relay"]> = (sink, to, headers) => {
  const mime = headers["content-type"] ?? "application/json";
  sink.type(mime);
  let last: Buffer = Buffer.alloc(0);
  return {
    between: true,
    push(chunk) {
      sink.content();
      if (last.length > 0) sink.bytes(last);
      last = chunk;
    },
    end() {
      const text = last.toString().trimEnd();
      const line = to.stream ? text.slice(text.lastIndexOf("\n") + 1) : text;
      if (!mime.startsWith("text/")) sink.usage({ type: "usage", usage: secondsOf(parsed(line)) });
      sink.finish("stop");
      sink.bytes(last);
    },
    fail() {},
  };
};

/** `passes`: the client's form and upstream's bytes go on as they came. */
export const transcripts = (passes = true): Protocol<"dictation"> => ({
  id: "dictations",
  work: transcriptWork,
  server,
  client: passes ? { ...client, relay } : client,
  headers: { request: ["accept"], response: ["x-seconds"] },
  reviewed: [
    [
      "what is said, and how it is written down",
      {
        model: "plain",
        file: "plain",
        language: "plain",
        temperature: "plain",
        response_format: "plain",
        stream: "plain",
        timestamp_granularities: "plain",
      },
    ],
  ],
});
