// Passthrough with watch hooks. The response is decoded in parallel, and its bytes are forwarded
// after the hooks have seen their events.
import { bodyFormOf } from "../../lib/media-type.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import type { HostCall } from "../exchange/call.ts";
import { attributeFault } from "../faults/fault-source.ts";
import { BufferedBytes } from "./buffered-bytes.ts";
import type { Transcoder, TranscoderSink, EventWatchers } from "./event-filters.ts";

const NEWLINE = 0x0a;

/**
 * Forwards a stream of events or lines line by line, because an incomplete line cannot be decoded
 * for the hooks.
 */
export class ObservedPassthrough implements Transcoder {
  readonly #sink: TranscoderSink;
  readonly #transcoder: Transcoder;
  readonly #observer: Decoder;
  readonly #isLineBased: boolean;
  readonly #buffered: BufferedBytes;
  #partialLine: Buffer[] = [];

  constructor(
    call: HostCall,
    sink: TranscoderSink,
    lane: Transcoder,
    of: { readonly watching: EventWatchers; readonly headers: HeadersIn },
  ) {
    this.#sink = sink;
    this.#transcoder = lane;
    this.#isLineBased = bodyFormOf(String(of.headers["content-type"] ?? "")) === "stream";
    this.#buffered = new BufferedBytes(call);
    const client = call.candidate.mounted.endpoint.protocol!.client!;
    const decoder = client.createDecoder((event) => of.watching.observe(event), call, of.headers);
    this.#observer = new ObservingDecoder(call, sink, of.watching, decoder);
  }

  push(chunk: Buffer): void {
    if (!this.#isLineBased) return this.#forward(chunk);
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      const whole = [...this.#partialLine, chunk.subarray(0, end)];
      this.#partialLine = [];
      this.#buffered.reset();
      this.#forward(whole.length === 1 ? whole[0]! : Buffer.concat(whole));
    }
    if (end === chunk.length) return;
    this.#partialLine.push(chunk.subarray(end));
    this.#buffered.add(chunk.length - end);
  }

  end(): void {
    if (this.#partialLine.length > 0) this.#forward(Buffer.concat(this.#partialLine));
    this.#observer.end();
    if (!this.#sink.isOver) this.#transcoder.end();
  }

  writeFault(...of: Parameters<Transcoder["writeFault"]>): void {
    this.#transcoder.writeFault(...of);
  }

  get isBetweenEvents(): boolean {
    return this.#transcoder.isBetweenEvents;
  }

  #forward(bytes: Buffer): void {
    this.#observer.push(bytes);
    if (!this.#sink.isOver) this.#transcoder.push(bytes);
  }
}

/** Shows a complete response to the hooks before any of it is forwarded. */
export function observeWhole(
  call: HostCall,
  sink: TranscoderSink,
  body: Buffer,
  of: { readonly watching: EventWatchers; readonly headers: HeadersIn },
): void {
  const client = call.candidate.mounted.endpoint.protocol!.client!;
  try {
    client.decodeResponse(body, (event) => of.watching.observe(event), call, of.headers);
  } catch (problem) {
    handleUndecodable(call, sink, of.watching, problem);
  }
}

/**
 * Handles a response that cannot be decoded, and therefore not be shown to the hooks. The response
 * is forwarded only if every watch hook may be skipped.
 */
function handleUndecodable(
  call: HostCall,
  sink: TranscoderSink,
  { isRequired }: EventWatchers,
  problem: unknown,
): void {
  if (sink.isOver) return;
  if (isRequired) return sink.onError(attributeFault(problem, "answer", call.provider));
  const { gen } = call.exchange.state;
  gen.log.warn(
    { request: call.exchange.id, provider: call.provider, err: problem },
    "response not readable by observing hooks, forwarded unchanged",
  );
}

/** Decodes events for the hooks. After a failure, it does not decode any more. */
class ObservingDecoder implements Decoder {
  readonly #call: HostCall;
  readonly #sink: TranscoderSink;
  readonly #watchers: EventWatchers;
  #decoder: Decoder | undefined;

  constructor(call: HostCall, sink: TranscoderSink, watching: EventWatchers, decoder: Decoder) {
    this.#call = call;
    this.#sink = sink;
    this.#watchers = watching;
    this.#decoder = decoder;
  }

  push(bytes: Buffer): void {
    try {
      this.#decoder?.push(bytes);
    } catch (problem) {
      this.#decoder = undefined;
      handleUndecodable(this.#call, this.#sink, this.#watchers, problem);
    }
  }

  /** The transcoder that forwards the bytes decides whether the response is complete. */
  end(): void {
    try {
      this.#decoder?.end();
    } catch {
      this.#decoder = undefined;
    }
  }
}
