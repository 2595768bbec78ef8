// Converts a provider's response to the client's: it relays the bytes, or decodes the events and
// encodes them again.
import { BOUNDS } from "../../lib/bounds.ts";
import { createFault, type Fault } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { FinishReason, ModelResponse, ModelEvent, UsageReport } from "../../model/event.ts";
import { createResponseCollector } from "../../model/response-collector.ts";
import type { Usage } from "../../model/usage.ts";
import type { HeadersIn, Body } from "../../model/values.ts";
import type {
  Protocol,
  PassthroughStream,
  PassthroughSink,
  ResponseContext,
} from "../../plugin/protocol.ts";
import { nanoToDecimal } from "../../money/decimal.ts";
import type { ClientResponse } from "./client-response.ts";
import { sendsCostInUsage, totalCost } from "./diagnostic-headers.ts";
import type { HostCall } from "../exchange/call.ts";
import {
  type Transcoder,
  type TranscoderSink,
  createFilterChain,
  createEventWatchers,
} from "./event-filters.ts";
import { BufferedBytes, bufferedSizeOf } from "./buffered-bytes.ts";
import { convertImages, fetchStreamedImages } from "./images.ts";
import { createStopFilter } from "./stop-sequences.ts";
import { observeWhole, ObservedPassthrough } from "./observed-passthrough.ts";
import type { UpstreamReply } from "../upstream/upstream-http-response.ts";
import type { CallTally } from "../metering/call-tally.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { ModelInfo } from "../../model/facts.ts";

/** The source of a call's response. */
export type ResponseSource =
  | { type: "http"; response: UpstreamReply }
  | { type: "events"; events: AsyncIterable<ModelEvent> };

/**
 * Factor by which a relay's output bytes are multiplied when they are subtracted from its input
 * bytes, because the relay may have replaced a name by a shorter name.
 */
const RELAY_OUTPUT_FACTOR = 1.5;

/**
 * Creates a transcoder for passthrough mode. The same buffers are forwarded, and the codec reads
 * them as they pass.
 */
export function createPassthroughTranscoder(
  call: HostCall,
  sink: TranscoderSink,
  headers: HeadersIn,
): Transcoder {
  const decoder = new PassthroughTranscoder(call, sink, headers);
  const watchers = createEventWatchers(call, sink);
  if (!watchers)
    return call.exchange.stream
      ? decoder
      : collectWhole(call, sink, decoder, (body) => decoder.pushWhole(body));
  const of = { watching: watchers, headers };
  if (call.exchange.stream) return new ObservedPassthrough(call, sink, decoder, of);
  return collectWhole(call, sink, decoder, (body) => {
    observeWhole(call, sink, body, of);
    if (!sink.isOver) decoder.pushWhole(body);
  });
}

/**
 * Combines both ends of a relay in one object. With a thousand streams, each object that an event
 * touches is a cache miss of the processor.
 */
class PassthroughTranscoder implements Transcoder, PassthroughSink {
  readonly #passthrough: PassthroughStream;
  readonly #sink: TranscoderSink;
  readonly #response: ClientResponse;
  readonly #tally: CallTally;
  readonly #buffered: BufferedBytes;

  constructor(call: HostCall, sink: TranscoderSink, headers: HeadersIn) {
    this.#sink = sink;
    this.#buffered = new BufferedBytes(call);
    this.#response = sink.response;
    this.#tally = sink.tally;
    const client = call.candidate.mounted.endpoint.protocol!.client!;
    this.#passthrough = client.createPassthrough!(this, createResponseContext(call), headers);
  }

  /** Bytes that a relay has received and not forwarded count as buffered. */
  push(chunk: Buffer): void {
    this.#buffered.add(chunk.length);
    this.#passthrough.push(chunk);
  }
  pushWhole(body: Buffer): void {
    this.#passthrough.push(body);
  }
  end(): void {
    this.#passthrough.end();
    if (!this.#tally.hasFinished) throw createTruncatedError();
    this.#sink.onFinished();
  }
  get isBetweenEvents(): boolean {
    return this.#passthrough.isBetweenEvents;
  }
  writeFault(fault: Fault): void {
    this.#passthrough.writeFault(fault);
  }

  setContentType(mime: string): void {
    this.#response.setContentType(mime);
  }
  write(chunk: Buffer): void {
    this.#tally.forwardedBytes += chunk.length;
    this.#buffered.add(-RELAY_OUTPUT_FACTOR * chunk.length);
    this.#response.write(chunk);
  }
  reportContent(bytes?: number): void {
    if (bytes === undefined) this.#tally.hasUnmeasuredContent = true;
    else this.#tally.textBytes += bytes;
    if (!this.#response.isCommitted) this.#sink.onContent();
  }
  reportStart(id: string): void {
    this.#tally.recordAccepted(id);
  }
  reportUsage(seen: UsageReport): void {
    this.#tally.addReport(seen);
  }
  reportFinish(reason: FinishReason): Usage {
    this.#sink.onFinishing(reason);
    return this.#tally.usage().usage;
  }
}

/**
 * Creates a transcoder for translated mode: provider's bytes → events → event hooks → client's
 * protocol.
 */
export function createTranslatingTranscoder(
  call: HostCall,
  sink: TranscoderSink,
  source: { protocol: Protocol; headers: HeadersIn; stream: boolean },
): Transcoder {
  const { emit, writeFault: failed, batch } = createEventWriter(call, sink, source.stream);
  const client = source.protocol.client!;
  let finished = false;
  const assertFinished = () => {
    if (!finished) throw createTruncatedError();
  };
  if (!source.stream) {
    const decoder = { push() {}, end: assertFinished, writeFault: failed, isBetweenEvents: true };
    const onDecoded = (event: ModelEvent) => {
      finished ||= event.type === "finish";
      emit(event);
    };
    return collectWhole(call, sink, decoder, (body) =>
      client.decodeResponse(body, onDecoded, call, source.headers),
    );
  }
  // A decoder keeps bytes that produce no event: an incomplete event, or a complete response where
  // a stream was expected.
  const undecodedBytes = new BufferedBytes(call);
  const onEvent = (event: ModelEvent) => {
    undecodedBytes.reset();
    finished ||= event.type === "finish";
    emit(event);
  };
  const decoder = client.createDecoder(onEvent, call, source.headers);
  return {
    push(chunk) {
      undecodedBytes.add(chunk.length);
      batch(() => decoder.push(chunk));
    },
    end() {
      decoder.end();
      assertFinished();
    },
    writeFault: failed,
    isBetweenEvents: true,
  };
}

interface ClientEventWriter {
  emit(event: ModelEvent): void;
  writeFault(fault: Fault): void;
  /** Runs `work` and combines all its output in one write. */
  batch(work: () => void): void;
}

/**
 * Creates the end of the event pipeline: events pass through the hooks and are written in the
 * client's protocol.
 */
export function createEventWriter(
  call: HostCall,
  sink: TranscoderSink,
  stream = true,
): ClientEventWriter {
  const x = call.exchange;
  const { response, tally } = sink;
  const server = x.state.frontend.server!;
  const context = createResponseContext(call);
  const batcher = new WriteBatcher(response);
  const encoder = x.stream
    ? server.createEncoder((piece) => batcher.write(piece), context)
    : undefined;
  const folded = encoder ? undefined : createResponseCollector();
  const buffered = new BufferedBytes(call);
  let events = 0;
  let blocks = 0;
  const writeEvent = (event: ModelEvent): void => {
    if (sink.isOver) return undefined;
    if (++events > BOUNDS.events.max) failBoundExceeded("events");
    // A protocol that encodes a response again may have to repeat the complete response at its end.
    buffered.add(bufferedSizeOf(event));
    switch (event.type) {
      case "usage":
        return tally.addReport(event);
      case "start":
        tally.recordAccepted(event.id);
        if (!encoder) break;
        encoder.writeEvent(event);
        // Some protocols send counts at the start, and clients show them. An estimate is sent until
        // the provider's own counts arrive.
        return encoder.writeEvent({ type: "usage", usage: { input: tally.inputEstimate } });
      case "open":
        if (++blocks > BOUNDS.blocks.max) failBoundExceeded("blocks");
        break;
      case "delta":
        tally.textBytes += Buffer.byteLength(event.text);
        sink.onContent();
        break;
      case "item":
      case "media":
        sink.onContent();
        break;
      case "finish": {
        if (encoder) {
          tally.hasFinished = true;
          // Content before the finish event is sent to the client and not held back.
          batcher.flush();
          sink.onFinishing(event.reason);
          const { usage } = tally.usage();
          // If the input was not counted, the estimate that was sent at the start is reset to 0.
          const counted = usage.output === undefined ? usage : { input: 0, ...usage };
          encoder.writeEvent({ type: "usage", usage: counted });
          encoder.writeEvent(event);
          batcher.flush();
          return sink.onFinished();
        }
        folded!.event(event);
        const whole = folded!.answer();
        const writeWhole = (modelResponse: ModelResponse) => {
          if (sink.isOver) return;
          // If the client's protocol cannot represent a response, this is an error, and another
          // candidate may serve the request. The response is therefore encoded before it is
          // committed.
          const settled = { ...modelResponse, usage: tally.usage().usage };
          let body = server.encodeResponse(settled, context);
          sink.onFinishing(event.reason);
          // The cost is known only now.
          if (context.includesCost) body = server.encodeResponse(settled, context);
          response.write(Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)));
          sink.onFinished();
        };
        const converting = convertImages(call, whole);
        if (!converting) return writeWhole(whole);
        tally.hasFinished = true;
        return void converting.then(writeWhole).catch((problem: unknown) => sink.onError(problem));
      }
    }
    if (encoder) encoder.writeEvent(event);
    else folded!.event(event);
  };
  const filter = createFilterPipeline(
    call,
    sink,
    encoder ? fetchStreamedImages(call, writeEvent, sink) : writeEvent,
    stream,
  );
  return {
    emit(event) {
      if (!sink.isOver) tally.recordUpstreamEvent(event);
      filter(event);
    },
    writeFault(fault) {
      encoder?.writeFault(fault);
      batcher.flush();
    },
    batch: (work) => batcher.batch(work),
  };
}

/**
 * Creates the pipeline of filters: stop sequences that the provider did not receive, then the
 * hooks.
 */
function createFilterPipeline(
  call: HostCall,
  sink: TranscoderSink,
  last: (event: ModelEvent) => void,
  stream: boolean,
): (event: ModelEvent) => void {
  const hooked = createFilterChain(call, sink, last);
  if (!call.emulatedStopSequences) return hooked;
  const ended = () => stream && sink.onStoppedEarly();
  return createStopFilter(hooked, {
    sequences: call.emulatedStopSequences,
    isWhole: !stream,
    onStopped: ended,
  });
}

function collectWhole(
  call: HostCall,
  sink: TranscoderSink,
  decoder: Transcoder,
  take: (body: Buffer) => void,
): Transcoder {
  const buffered = new BufferedBytes(call);
  const chunks: Buffer[] = [];
  return {
    push(chunk) {
      buffered.add(chunk.length);
      chunks.push(chunk);
    },
    end() {
      take(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
      if (!sink.isOver) decoder.end();
    },
    writeFault: (fault) => decoder.writeFault(fault),
    isBetweenEvents: true,
  };
}

/**
 * Creates the error for a response that ended without a finish event. Otherwise the client would
 * wait forever.
 */
export const createTruncatedError = (): Error =>
  createFault("upstream", "The provider's response ended before it was complete.", {
    code: "truncated",
  });

/** Logs an error that is not a fault, and returns a fault with a fixed message for the client. */
export function logInternalError(call: HostCall, problem: unknown): Fault {
  const x = call.exchange;
  x.state.gen.log.error(
    { request: x.id, provider: call.provider, err: problem },
    "unexpected error",
  );
  return {
    kind: "internal",
    message: "Internal error. See the gateway log for this request ID.",
  };
}

// The context of a call for a codec that writes a response.
export function createResponseContext(call: HostCall): ResponseContext {
  return new CallResponseContext(call);
}

class CallResponseContext implements ResponseContext {
  readonly id: string;
  readonly model: string;
  readonly created = Math.floor(wallClock() / 1000);
  readonly stream: boolean;
  readonly body: Body;
  readonly info: ModelInfo;
  readonly includesCost: boolean;
  readonly #call: HostCall;

  constructor(call: HostCall) {
    const x = call.exchange;
    this.id = x.id;
    this.model = call.id;
    this.stream = x.stream;
    this.body = x.body;
    this.info = call.info;
    this.includesCost = sendsCostInUsage(x.state);
    this.#call = call;
  }

  // Methods are used instead of closures in fields, because closures would keep the call in memory
  // (`finished-requests.test.ts`).
  /** Parsed only when read, because few protocols use it and parsing is expensive. */
  get query(): URLSearchParams {
    return this.#call.exchange.query;
  }
  reportLoss(field: string, how: "dropped" | "approximated", code?: string): void {
    this.#call.reportLoss(field, how, code);
  }
  costUsd(): number | null {
    const cost = totalCost(this.#call.exchange.state.billing);
    return cost === null ? null : Number(nanoToDecimal(cost));
  }
}

// Batches the events from one read of a provider's response into one write. Each write is a
// separate chunk on the connection, which costs the client work too.
class WriteBatcher {
  readonly #response: ClientResponse;
  #text = "";
  #isBatching = false;

  constructor(answer: ClientResponse) {
    this.#response = answer;
  }

  write(piece: string | Buffer): void {
    if (this.#isBatching && typeof piece === "string") {
      this.#text += piece;
      return;
    }
    this.flush();
    this.#response.write(piece);
  }

  /**
   * Runs `work` and writes everything that it produced. If `work` throws, the data written before
   * the error is still sent.
   */
  batch(work: () => void): void {
    this.#isBatching = true;
    try {
      work();
    } finally {
      this.#isBatching = false;
      this.flush();
    }
  }

  flush(): void {
    if (this.#text === "") return;
    const text = this.#text;
    this.#text = "";
    this.#response.write(text);
  }
}
