// The half of the speech protocol that faces providers.
import { BOUNDS } from "../../lib/bounds.ts";
import { matchesGlob } from "../../lib/glob.ts";
import { bodyFormOf } from "../../lib/media-type.ts";
import { fail, type Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { SpeechRequest } from "../../model/operations/audio-requests.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, HeadersIn } from "../../model/values.ts";
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
import { asObject, omitUndefined, parseObject, asText } from "../json-values.ts";
import { createConvertingPassthrough, FinalUsagePassthrough } from "../passthrough.ts";
import { createEventDecoder } from "../sse/index.ts";
import { createEncoder } from "./server.ts";
import { ID, type SpeechDialect, STREAM_FORMAT, usageOf, mimeOf, wantsEvents } from "./spec.ts";
import { isUtf8 } from "node:buffer";

/** Encodes a request in this protocol. */
export const encodeRequest = (r: SpeechRequest, of: Pick<CallContext, "model">): Body =>
  omitUndefined({
    model: of.model,
    input: r.input,
    voice: r.voice,
    instructions: r.instructions,
    response_format: r.format,
    speed: r.speed,
    ...asObject(r.ext[ID]),
  });

/**
 * Applies the dialect in both modes. If a model reports usage only in events, the gateway requests
 * events and still sends the client the form that it requested.
 */
export function prepare(out: Outgoing, of: CallContext, { events }: SpeechDialect): void {
  if (events) {
    const speaks = events.some((pattern) => matchesGlob(pattern, of.model));
    const requested = out.get(STREAM_FORMAT);
    if (speaks && requested !== "sse") out.set(STREAM_FORMAT, "sse");
    else if (!speaks && requested !== undefined) out.remove(STREAM_FORMAT);
  }
}

/** Parses a provider's response, which is raw audio or events that contain audio. */
const isEvents = (headers: HeadersIn): boolean => bodyFormOf(headers["content-type"]) === "stream";

/** Throws because the response contained no audio. */
const failNoAudio = (): never =>
  fail("upstream", "The provider returned no audio.", { code: "bad_answer" });

/**
 * Parses one event: a piece of audio, or the end with its usage. Unknown events return an empty
 * object. Throws if the event is an error.
 */
function parseAudioEvent(data: string): { sound?: string; over?: Usage } {
  const event = parseObject(data);
  if (!event)
    return fail("upstream", "The provider sent an event that is not valid JSON.", {
      code: "bad_event",
    });
  if (event["error"] !== undefined && event["error"] !== null) return throwParsedError(event);
  switch (event["type"]) {
    case "error":
      return throwParsedError(event);
    case "speech.audio.delta":
      return { sound: asText(event["audio"]) ?? failNoAudio() };
    case "speech.audio.done":
      return { over: usageOf(asObject(event["usage"])) };
    default:
      return {};
  }
}

/** Decodes a backend's audio into events, one item per piece. */
type Emit = (event: ModelEvent) => void;

/**
 * Size of one piece of audio, in bytes. Pieces have a fixed size, so that the output does not
 * depend on how the network split the bytes.
 */
const CHUNK_BYTES = 4096;

export const createDecoder = (
  emit: Emit,
  _of: CallContext | undefined,
  headers: HeadersIn,
): Decoder =>
  isEvents(headers) ? createAudioEventDecoder(emit) : createAudioDecoder(emit, headers);

function createAudioEventDecoder(emit: Emit): Decoder {
  let index = 0;
  let over = false;
  emit({ type: "start" });
  const events = createEventDecoder(
    (_event, data) => {
      if (over || data === "[DONE]") return;
      const { sound, over: usage } = parseAudioEvent(data);
      if (sound !== undefined)
        emit({ type: "item", index: index++, item: { bytes: Buffer.from(sound, "base64") } });
      if (!usage) return;
      if (index === 0) failNoAudio();
      over = true;
      emit({ type: "usage", usage });
      emit({ type: "finish", reason: "stop" });
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

/** Decodes raw audio. Only the end of the connection marks the end of the audio. */
function createAudioDecoder(emit: Emit, headers: HeadersIn): Decoder {
  if (/^text\//i.test(headers["content-type"] ?? ""))
    fail("upstream", "The provider returned text instead of audio.", {
      code: "bad_content_type",
    });
  let index = 0;
  let held: Buffer[] = [];
  let size = 0;
  emit({ type: "start" });
  const give = (all: boolean): void => {
    const bytes = Buffer.concat(held);
    let at = 0;
    for (; at + CHUNK_BYTES <= bytes.length || (all && at < bytes.length); at += CHUNK_BYTES)
      emit({ type: "item", index: index++, item: { bytes: bytes.subarray(at, at + CHUNK_BYTES) } });
    held = at < bytes.length ? [bytes.subarray(at)] : [];
    size = Math.max(0, bytes.length - at);
  };
  const sound = createAudioDetector((bytes) => {
    held.push(bytes);
    size += bytes.length;
    if (size >= CHUNK_BYTES) give(false);
  });
  return {
    push: (chunk) => sound.push(chunk),
    end() {
      sound.end();
      give(true);
      if (index === 0) failNoAudio();
      emit({ type: "finish", reason: "stop" });
    },
  };
}

/** Decodes a non-streaming response: an error with status 200, or the content of a stream. */
const OPEN = 123;

const IN_EVENTS = /^\s*(?:data|event):/;

export function decodeResponse(
  body: Buffer,
  emit: (event: ModelEvent) => void,
  _of: CallContext | undefined,
  headers: HeadersIn,
): void {
  const events = IN_EVENTS.test(body.toString("latin1", 0, 16));
  const json = body[0] === OPEN ? parseObject(body.toString()) : undefined;
  if (!events && (json || bodyFormOf(headers["content-type"]) === "document")) {
    if (json?.["error"]) throwParsedError(json);
    fail("upstream", "The provider returned JSON instead of audio.", {
      code: "bad_answer",
    });
  }
  const decoder = createDecoder(
    emit,
    undefined,
    events ? { "content-type": "text/event-stream" } : {},
  );
  decoder.push(body);
  decoder.end();
}

/**
 * Passthrough mode: forwards audio or events unchanged if the client requested that form, and
 * converts them otherwise. The last piece is held back until usage is settled. Audio without its
 * last piece is incomplete.
 */
export function createPassthrough(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  const events = isEvents(headers);
  if (events !== wantsEvents(to.body)) return convertFormat(sink, to, headers);
  return events ? new AudioEventPassthrough(sink, to) : passAudio(sink, to, headers);
}

function passAudio(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  const type = headers["content-type"];
  if (/^text\//i.test(type ?? ""))
    fail("upstream", "The provider returned text instead of audio.", {
      code: "bad_content_type",
    });
  sink.setContentType(type ?? mimeOf(to.body));
  let last: Buffer | undefined;
  const sound = createAudioDetector((bytes) => {
    sink.reportContent(0);
    if (last) sink.write(last);
    last = bytes;
  });
  return {
    isBetweenEvents: false,
    push(chunk) {
      if (chunk.length > 0) sound.push(chunk);
    },
    end() {
      sound.end();
      if (!last) return failNoAudio();
      sink.reportFinish("stop");
      return sink.write(last);
    },
    // An audio stream cannot express an error.
    writeFault() {},
  };
}

class AudioEventPassthrough extends FinalUsagePassthrough {
  readonly #to: ResponseContext;
  #sounded = false;

  constructor(sink: PassthroughSink, to: ResponseContext) {
    super(sink);
    this.#to = to;
  }

  protected read(data: string): Usage | undefined {
    const { sound, over: usage } = parseAudioEvent(data);
    if (sound !== undefined) {
      this.#sounded = true;
      this.sink.reportContent(0);
    }
    if (usage && !this.#sounded) failNoAudio();
    return usage;
  }

  writeFault(fault: Fault): void {
    encoderFor(this.sink, this.#to).writeFault(fault);
  }
}

const encoderFor = (sink: PassthroughSink, to: ResponseContext): Encoder =>
  createEncoder((piece) => sink.write(Buffer.from(piece as string)), to);

function convertFormat(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  sink.setContentType(mimeOf(to.body));
  return createConvertingPassthrough(sink, encoderFor(sink, to), (emit) =>
    createDecoder(emit, undefined, headers),
  );
}

// Distinguishes audio from text by its bytes and ignores the declared type. Some backends send an
// error with status 200 and the type `audio/mpeg`.

/** Maximum size of an error text, in bytes. No known error is longer. */
const MAX_TEXT_BYTES = 64 * 1024;

const isSpace = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13);

const isControl = (byte: number): boolean => byte < 32 && !isSpace(byte);

/** Whether a byte begins JSON or an HTML page. */
const isTextStart = (byte: number): boolean => byte === 0x7b || byte === 0x3c;

interface AudioDetector {
  push(chunk: Buffer): void;
  end(): void;
}

/**
 * Forwards audio as it arrives. A response that begins like JSON or HTML is held back until a byte
 * that no text contains. Audio has such a byte within its first few bytes, and text has none up to
 * its end.
 */
function createAudioDetector(pass: (sound: Buffer) => void): AudioDetector {
  let held: Buffer[] | undefined = [];
  let size = 0;
  let opened = false;
  const isSound = (chunk: Buffer): boolean => {
    for (const byte of chunk)
      if (opened ? isControl(byte) : !isSpace(byte)) {
        if (opened || !isTextStart(byte)) return true;
        opened = true;
      }
    return false;
  };
  const over = (bytes: Buffer): void =>
    opened && isUtf8(bytes) ? failTextResponse(bytes) : pass(bytes);
  return {
    push(chunk) {
      if (!held) return pass(chunk);
      held.push(chunk);
      size += chunk.length;
      const known = isSound(chunk);
      if (!known && size <= MAX_TEXT_BYTES) return;
      const bytes = Buffer.concat(held);
      held = undefined;
      if (known) pass(bytes);
      else over(bytes);
    },
    end() {
      if (held && size > 0) over(Buffer.concat(held));
      held = undefined;
    },
  };
}

function failTextResponse(bytes: Buffer): never {
  const json = parseObject(bytes.toString());
  if (asObject(json?.["error"])) throwParsedError(json!);
  return fail("upstream", "The provider returned text instead of audio.", {
    code: "bad_answer",
  });
}
