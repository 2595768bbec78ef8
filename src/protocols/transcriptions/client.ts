// The half of the transcription protocol that faces providers.
import { BOUNDS } from "../../lib/bounds.ts";
import { matchesGlob } from "../../lib/glob.ts";
import { bodyFormOf } from "../../lib/media-type.ts";
import { fail, type Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { TranscriptRequest, TranscriptItem } from "../../model/operations/audio-requests.ts";
import { collectResponse } from "../../model/response-collector.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, HeadersIn, Json, JsonObject } from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type {
  CallContext,
  Decoder,
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
  Encoder,
} from "../../plugin/protocol.ts";
import { throwParsedError, failTruncated } from "../failure/parse-error.ts";
import {
  asObject,
  omitUndefined,
  asText,
  isObject,
  asList,
  asNumber,
  asObjects,
  parseObject,
} from "../json-values.ts";
import {
  createResponsePassthrough,
  openaiFaultBody,
  createConvertingPassthrough,
  FinalUsagePassthrough,
} from "../passthrough.ts";
import { createEventDecoder } from "../sse/index.ts";
import { timesIn, encodeResponse as written, createEncoder } from "./server.ts";
import {
  ID,
  type TranscriptDialect,
  RESPONSE_FORMAT,
  isTextFormat,
  TIMESTAMP_GRANULARITIES,
  usageOf,
  formatIn,
  TEXT,
} from "./spec.ts";

/**
 * Encodes a request in this protocol. Only JSON contains the timestamps for captions and the usage
 * counts for text. The gateway therefore requests JSON and writes the format that the client
 * requested.
 */
export const encodeRequest = (
  r: TranscriptRequest,
  of: Pick<CallContext, "model" | "stream">,
): Body =>
  omitUndefined({
    model: of.model,
    file: r.file,
    language: r.language,
    prompt: r.prompt,
    temperature: r.temperature,
    response_format: r.format,
    timestamp_granularities: r.granularities.length > 0 ? r.granularities : undefined,
    ...(of.stream && { stream: true }),
    ...asObject(r.ext[ID]),
  });

// Applies the dialect in both modes. If a model does not support the requested format, the gateway
// requests a supported one with the necessary data and converts the response.

/** For each format, the formats that contain all data it needs. */
const FORMAT_SOURCES: { readonly [format: string]: readonly string[] } = {
  text: ["json", "verbose_json"],
  srt: ["verbose_json", "diarized_json"],
  vtt: ["verbose_json", "diarized_json"],
};

export function prepare(out: Outgoing, of: CallContext, dialect: TranscriptDialect): void {
  const wanted = asText(out.get(RESPONSE_FORMAT)) ?? "json";
  if (dialect.formats === false) adaptGranularities(out, wanted);
  else adaptFormat(out, of, wanted, dialect.formats);
}

function adaptFormat(
  out: Outgoing,
  of: CallContext,
  wanted: string,
  formats: Exclude<TranscriptDialect["formats"], false>,
): void {
  const known = formats?.find((one) =>
    one.of.some((pattern) => matchesGlob(pattern, of.model)),
  )?.formats;
  const sent =
    wanted === "text" && countsInJson(of) && (known ?? ["json"]).includes("json")
      ? "json"
      : !known || known.includes(wanted)
        ? wanted
        : Object.hasOwn(FORMAT_SOURCES, wanted)
          ? FORMAT_SOURCES[wanted]!.find((format) => known.includes(format))
          : undefined;
  if (sent === undefined)
    fail(
      "unsupported",
      `${of.model} does not support the response format ${wanted}. It supports ${known!.join(", ")}.`,
      {
        param: RESPONSE_FORMAT,
        code: "unsupported_format",
      },
    );
  if (sent !== wanted) out.set(RESPONSE_FORMAT, sent);
}

/**
 * Whether JSON is requested in place of text to get usage counts. Plain text carries no counts, so
 * this is necessary unless the price is per second.
 */
const countsInJson = ({ info: { price } }: CallContext): boolean =>
  price !== undefined && !price.lines.some(({ unit }) => unit === "seconds");

/**
 * Requests timestamps if the client's format needs them. Such backends return timestamps only on
 * request.
 */
function adaptGranularities(out: Outgoing, wanted: string): void {
  if (out.get(RESPONSE_FORMAT) !== undefined) out.remove(RESPONSE_FORMAT);
  const timed = isTextFormat(wanted) ? wanted !== "text" : wanted !== "json";
  if (timed && timesIn(out.get(TIMESTAMP_GRANULARITIES)).length === 0)
    out.set(TIMESTAMP_GRANULARITIES, ["segment"]);
}

/** Parses a provider's response: JSON in several forms, or plain text. */
const failNoText = (): never =>
  fail("upstream", "The provider returned no text.", { code: "bad_answer" });

export interface Transcript {
  readonly text: string;
  readonly items: readonly TranscriptItem[];
  readonly usage: Usage;
  readonly logprobs?: readonly Json[];
}

/**
 * Parses a response body. Captions and plain text are accepted as they are. Throws if a body is
 * declared as JSON but is not, or if it begins like JSON and is truncated.
 */
function parseTranscriptBody(
  body: Buffer,
  headers: HeadersIn,
): Transcript & { readonly json: boolean } {
  const plain = /^text\//i.test(headers["content-type"] ?? "");
  const words = body.toString();
  const parsedJson = /^\s*\{/.test(words) ? parseObject(words) : undefined;
  if (parsedJson && !(plain && asText(parsedJson["text"]) === undefined))
    return { ...parseTranscript(parsedJson), json: true };
  if (!plain && /^\s*(?:\{|$)/.test(words)) failNoText();
  if (bodyFormOf(headers["content-type"]) === "document")
    return { text: unquoteText(words), items: [], usage: {}, json: false };
  return { text: words, items: [], usage: {}, json: false };
}

/** Returns the text of a JSON string, which is how some backends send plain text. */
function unquoteText(body: string): string {
  try {
    return asText(JSON.parse(body)) ?? failNoText();
  } catch {
    return failNoText();
  }
}

function parseTranscript(response: JsonObject): Transcript {
  if (
    isObject(response["error"]) ||
    (asText(response["text"]) === undefined && response["error"] !== undefined)
  )
    throwParsedError(response);
  const words = asText(response["text"]) ?? failNoText();
  const logprobs = asList(response["logprobs"]);
  return {
    text: words,
    items: parseItems(response),
    usage: countsOf(response),
    ...(logprobs.length > 0 && { logprobs }),
  };
}

/**
 * Returns the usage. If a backend reports only the duration, the duration is billed, rounded up to
 * whole seconds.
 */
function countsOf(response: JsonObject): Usage {
  const usage = usageOf(asObject(response["usage"]));
  const duration =
    asNumber(response["duration"]) ?? Number(asText(response["duration"]) ?? Number.NaN);
  return Object.keys(usage).length > 0 || !(duration >= 0)
    ? usage
    : { seconds: Math.ceil(duration) };
}

/** Members that describe the whole transcript. */
const ABOUT = ["task", "language", "duration", "languages"] as const;

function parseItems(response: JsonObject): TranscriptItem[] {
  const about: Record<string, Json> = {};
  for (const name of ABOUT)
    if (response[name] !== undefined && response[name] !== null) about[name] = response[name];
  return [
    ...asObjects(response["segments"]).flatMap((one) => segmentOf(one) ?? []),
    ...asObjects(response["words"]).flatMap((one): TranscriptItem[] => {
      const [start, end, word] = [
        asNumber(one["start"]),
        asNumber(one["end"]),
        asText(one["word"]),
      ];
      return start === undefined || end === undefined || word === undefined
        ? []
        : [{ type: "word", start, end, text: word }];
    }),
    // These facts are last, because a stream reports them at its end.
    ...(Object.keys(about).length > 0 ? [{ type: "transcript" as const, raw: about }] : []),
  ];
}

function segmentOf({
  type: _,
  start,
  end,
  text: words,
  ...fields
}: JsonObject): TranscriptItem | undefined {
  const [from, to, spoken] = [asNumber(start), asNumber(end), asText(words)];
  if (from === undefined || to === undefined || spoken === undefined) return undefined;
  return { type: "segment", start: from, end: to, text: spoken, raw: fields };
}

/** Emits the usage and the finish event. */
function emitEnd(emit: (event: ModelEvent) => void, usage: Usage): void {
  if (Object.keys(usage).length > 0) emit({ type: "usage", usage });
  emit({ type: "finish", reason: "stop" });
}

/** Decodes a non-streaming response into events. */
export const decodeResponse = (
  body: Buffer,
  emit: (event: ModelEvent) => void,
  _of: CallContext | undefined,
  headers: HeadersIn,
): void => emitTranscript(parseTranscriptBody(body, headers), emit);

function emitTranscript(
  { text, items, usage, logprobs }: Transcript,
  emit: (event: ModelEvent) => void,
): void {
  emit({ type: "start" });
  emit({ type: "open", index: 0, block: { type: "text" } });
  if (text !== "") emit({ type: "delta", index: 0, text, ...(logprobs && { logprobs }) });
  emit({ type: "close", index: 0 });
  items.forEach((item, index) => emit({ type: "item", index, item }));
  emitEnd(emit, usage);
}

/**
 * Decodes a backend's stream into events: one text block and its segments. Backends without
 * streaming return one whole response, which is decoded too.
 */
type Emit = (event: ModelEvent) => void;

export const createDecoder = (
  emit: Emit,
  _of: CallContext | undefined,
  headers: HeadersIn,
): Decoder =>
  bodyFormOf(headers["content-type"]) === "stream"
    ? createTranscriptEventDecoder(emit)
    : createResponseDecoder(emit, headers);

function createResponseDecoder(emit: Emit, headers: HeadersIn): Decoder {
  const held: Buffer[] = [];
  return {
    push: (chunk) => void held.push(chunk),
    end: () => decodeResponse(Buffer.concat(held), emit, undefined, headers),
  };
}

/**
 * A parsed stream event. Its type is recognized by the end of the event name, because vendors use
 * different prefixes.
 */
export type TranscriptEvent =
  | { readonly what: "delta"; readonly words: string; readonly fields: JsonObject }
  | { readonly what: "segment" | "done" | "other"; readonly fields: JsonObject };

function parseTranscriptEvent(data: string): TranscriptEvent {
  const event = parseObject(data);
  if (!event)
    return fail("upstream", "The provider sent an event that is not valid JSON.", {
      code: "bad_event",
    });
  if ((event["error"] !== undefined && event["error"] !== null) || event["type"] === "error")
    return throwParsedError(event);
  const type = asText(event["type"]) ?? "";
  if (type.endsWith(".delta"))
    return {
      what: "delta",
      words: asText(event["delta"]) ?? asText(event["text"]) ?? "",
      fields: event,
    };
  if (type.endsWith(".segment")) return { what: "segment", fields: event };
  return { what: type.endsWith(".done") ? "done" : "other", fields: event };
}

function createTranscriptEventDecoder(emit: Emit): Decoder {
  let over = false;
  let spoken = false;
  let index = 0;
  let segments = 0;
  emit({ type: "start" });
  emit({ type: "open", index: 0, block: { type: "text" } });
  const item = (one: TranscriptItem): void => emit({ type: "item", index: index++, item: one });
  const done = (event: JsonObject): void => {
    over = true;
    const { text: words, items, usage } = parseTranscript(event);
    if (!spoken && words !== "") emit({ type: "delta", index: 0, text: words });
    emit({ type: "close", index: 0 });
    for (const one of items) if (one.type !== "segment" || segments === 0) item(one);
    emitEnd(emit, usage);
  };
  const events = createEventDecoder(
    (_event, data) => {
      if (over || data === "[DONE]") return;
      const one = parseTranscriptEvent(data);
      if (one.what === "delta" && one.words !== "") {
        spoken = true;
        const logprobs = asList(one.fields["logprobs"]);
        emit({
          type: "delta",
          index: 0,
          text: one.words,
          ...(logprobs.length > 0 && { logprobs }),
        });
      } else if (one.what === "segment") {
        const segment = segmentOf(one.fields);
        if (segment) {
          segments++;
          item(segment);
        }
      } else if (one.what === "done") done(one.fields);
    },
    { maxLineBytes: BOUNDS.event.max },
  );
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      if (!over) failTruncated();
    },
  };
}

// Passthrough mode: forwards a backend's bytes if they have the format that the client requested,
// and encodes them again otherwise.

/**
 * Creates the stream. `foreign` means that the backend has its own JSON format, which clients do
 * not understand.
 */
export function createPassthrough(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
  foreign: boolean,
): PassthroughStream {
  if (!to.stream) return passResponse(sink, to, headers, foreign);
  const events = bodyFormOf(headers["content-type"]) === "stream";
  return events && !foreign
    ? new TranscriptEventPassthrough(sink, to)
    : convertFormat(sink, to, headers);
}

function passResponse(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
  foreign: boolean,
): PassthroughStream {
  return createResponsePassthrough(
    sink,
    (body) => {
      const { json, ...transcript } = parseTranscriptBody(body, headers);
      const plain = isTextFormat(formatIn(to.body));
      sink.reportUsage({ type: "usage", usage: transcript.usage });
      sink.reportContent(Buffer.byteLength(transcript.text));
      const passes = json !== plain && !(json && foreign);
      if (passes) {
        sink.setContentType(headers["content-type"] ?? (plain ? TEXT : "application/json"));
        sink.reportFinish("stop");
        return sink.write(body);
      }
      const events: ModelEvent[] = [];
      emitTranscript(transcript, (event) => void events.push(event));
      const answer = collectResponse(events);
      // The response is encoded before usage is settled, because encoding fails if the requested
      // format cannot express the response.
      const anew = written(answer, to);
      sink.setContentType(plain ? TEXT : "application/json");
      const usage = { ...transcript.usage, ...sink.reportFinish("stop") };
      return sink.write(
        Buffer.isBuffer(anew)
          ? anew
          : Buffer.from(JSON.stringify(written({ ...answer, usage }, to))),
      );
    },
    openaiFaultBody(to),
  );
}

class TranscriptEventPassthrough extends FinalUsagePassthrough {
  readonly #to: ResponseContext;

  constructor(sink: PassthroughSink, to: ResponseContext) {
    super(sink);
    this.#to = to;
  }

  protected read(data: string): Usage | undefined {
    const one = parseTranscriptEvent(data);
    if (one.what === "delta" && one.words !== "")
      this.sink.reportContent(Buffer.byteLength(one.words));
    else if (one.what === "segment") this.sink.reportContent(0);
    return one.what === "done" ? parseTranscript(one.fields).usage : undefined;
  }

  writeFault(fault: Fault): void {
    encoderFor(this.sink, this.#to).writeFault(fault);
  }
}

const encoderFor = (sink: PassthroughSink, to: ResponseContext): Encoder =>
  createEncoder((piece) => sink.write(Buffer.from(piece)), to);

const convertFormat = (
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream =>
  createConvertingPassthrough(sink, encoderFor(sink, to), (emit) =>
    createDecoder(emit, undefined, headers),
  );
