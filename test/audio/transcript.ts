// Text from audio: the request is a form, and the response is JSON, plain text, or JSON lines.
import {
  fail,
  isFilePart,
  type ResponseContext,
  type Body,
  type ClientHalf,
  type CommonRequest,
  type FilePart,
  type JsonObject,
  type ModelResponse,
  type Opt,
  type Protocol,
  type ServerHalf,
  type Usage,
  type OperationSpec,
} from "tollgate/plugin";
import { createLineDecoder } from "tollgate/protocols/sse";
import { isObject, parsed, refused, told } from "./parts.ts";

export type TranscriptRequest = Readonly<
  CommonRequest & {
    operation: "dictation";
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
  interface Operations {
    dictation: { request: TranscriptRequest; item: Transcript };
  }
}

export const transcriptWork: OperationSpec<"dictation"> = {
  name: "dictation",
  noun: "a transcription model",
  outputModality: "transcripts",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["seconds"]],
  estimateUsage: ({ exactUsage }) => [[{ units: ["seconds"], count: exactUsage.seconds ?? 3600 }]],
  estimateMissingUsage: ({ usage }) => ({ ...usage, seconds: usage.seconds ?? 0 }),
  pricingHint: ["{ seconds: … }", "dollars a second"],
  priceExamples: [{ description: "a minute", usage: { seconds: 60 } }],
  sampleRequest: (model) => ({
    operation: "dictation",
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

/** In a form every value is text. */
function numberOf(said: unknown, field: string): number | undefined {
  if (said === undefined) return undefined;
  const number = typeof said === "string" ? Number(said) : said;
  return typeof number === "number" && Number.isFinite(number)
    ? number
    : fail("invalid", `${field} must be a number.`, { param: field });
}

const plain = ({ body }: Pick<ResponseContext, "body">) => body["response_format"] === "text";
const textOf = ({ items = [] }: ModelResponse) =>
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
  analyze(body) {
    const { file } = body;
    const bytes = isFilePart(file) ? file.data.length : 0;
    return { features: [], media: { count: 1, bytes } };
  },
  decodeRequest(body) {
    const { model, file: _file, language, temperature, timestamp_granularities, ...rest } = body;
    const { response_format: _format, stream, ...others } = rest;
    return {
      operation: "dictation",
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
  contentType: (asked) =>
    asked.stream
      ? "application/x-ndjson"
      : plain(asked)
        ? "text/plain; charset=utf-8"
        : "application/json",
  createEncoder(write) {
    const line = (value: JsonObject) => write(`${JSON.stringify(value)}\n`);
    let usage: Usage = {};
    return {
      writeEvent(event) {
        if (event.type === "item") line({ delta: (event.item as Transcript).text });
        if (event.type === "usage") usage = event.usage;
        if (event.type === "finish") line({ done: true, seconds: usage.seconds ?? 0 });
      },
      writeFault: (fault) => line(told(fault).body as unknown as JsonObject),
    };
  },
  encodeResponse: (answer, to) =>
    plain(to)
      ? Buffer.from(textOf(answer))
      : { text: textOf(answer), usage: { type: "duration", seconds: answer.usage.seconds ?? 0 } },
  encodeFault: told,
  ping: "",
};

const secondsOf = (said: JsonObject): Usage => {
  const usage = isObject(said["usage"]) ? said["usage"]["seconds"] : said["seconds"];
  return typeof usage === "number" ? { seconds: usage } : {};
};

const client: ClientHalf<"dictation"> = {
  paths: { generate: "/audio/transcriptions" },
  encodeRequest: ({ file, language, temperature, granularities, stream }, { model }) => ({
    model,
    file,
    language,
    temperature,
    ...(granularities.length > 0 && { timestamp_granularities: granularities }),
    ...(stream && { stream: true }),
  }),
  createDecoder(emit) {
    let ended = false;
    let index = 0;
    emit({ type: "start" });
    const read = createLineDecoder((line) => {
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
  decodeResponse(body, emit) {
    const said = parsed(body.toString());
    emit({ type: "start" });
    emit({ type: "item", index: 0, item: { text: String(said["text"]) } });
    emit({ type: "usage", usage: secondsOf(said) });
    emit({ type: "finish", reason: "stop" });
  },
  decodeFault: (status) => refused(status),
};

/**
 * The upstream's own type is forwarded. Plain text has no counts, and the last JSON line has them.
 */
const relay: NonNullable<ClientHalf<"dictation">["createPassthrough"]> = (sink, to, headers) => {
  const mime = headers["content-type"] ?? "application/json";
  sink.setContentType(mime);
  let last: Buffer = Buffer.alloc(0);
  return {
    isBetweenEvents: true,
    push(chunk) {
      sink.reportContent();
      if (last.length > 0) sink.write(last);
      last = chunk;
    },
    end() {
      const text = last.toString().trimEnd();
      const line = to.stream ? text.slice(text.lastIndexOf("\n") + 1) : text;
      if (!mime.startsWith("text/"))
        sink.reportUsage({ type: "usage", usage: secondsOf(parsed(line)) });
      sink.reportFinish("stop");
      sink.write(last);
    },
    writeFault() {},
  };
};

/** `passes`: the client's form and the upstream's bytes are forwarded unchanged. */
export const transcripts = (passes = true): Protocol<"dictation"> => ({
  id: "dictations",
  operationSpec: transcriptWork,
  server,
  client: passes ? { ...client, createPassthrough: relay } : client,
  headers: { request: ["accept"], response: ["x-seconds"] },
  zdrAllowedFields: [
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
