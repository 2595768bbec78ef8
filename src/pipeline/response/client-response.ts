// The client's side of an exchange. It decides which data is sent to the client, and when. Nothing
// is sent before the first token, because another candidate may still serve the request until then.
// Nothing is sent after the finish until the bill is durable.
import type { ServerResponse } from "node:http";
import { fail } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { ConnectionState, ExchangeState } from "../exchange/exchange-state.ts";
import {
  createCostTrailer,
  createDiagnosticHeaders,
  sendsCostTrailer,
} from "./diagnostic-headers.ts";
import type { UpstreamReply } from "../upstream/upstream-http-response.ts";
import type { TimerWheel, TimerEntry } from "../admission/timer-wheel.ts";
import type { ServerHalf } from "../../plugin/protocol.ts";

const OPEN_AFTER_MS = 10_000;
const OPEN_AFTER_BYTES = 64 * 1024;
const COMMIT_AFTER_BYTES = 1024 * 1024;
const uncork = (res: ServerResponse): void => res.uncork();
const CONTENT_TYPE = /^[\x21-\x7e][\x20-\x7e]{0,255}$/;
/**
 * Unsent bytes beyond which the provider's response is paused. Node's own high-water mark would
 * allow each stalled client to keep one more read of the provider's response in memory.
 */
const MAX_PENDING_WRITE_BYTES = 16 * 1024;

export class ClientResponse implements TimerEntry {
  timerIndex = -1;
  /**
   * Whether content has been sent or is about to be sent. After that, no other candidate can serve
   * the request.
   */
  isCommitted = false;
  writer: ResponseWriter | undefined;
  /**
   * The other response of a hedge, which owns the client's headers and pings until this response
   * has content.
   */
  readonly #lead: ClientResponse | undefined;
  #race: ResponseRace | undefined;
  #recordings: Recordings | undefined;
  // Fields that a write needs are copied from the exchange to this object. With a thousand streams,
  // each indirection is a cache miss of the processor.
  readonly #stream: boolean;
  readonly #res: ServerResponse;
  readonly #timerWheel: TimerWheel;
  readonly #state: ExchangeState;
  readonly #connection: ConnectionState;
  readonly #pings: Pings;
  readonly #closesOnError: boolean;
  /** The content type of the client's protocol. A relay or a cache may set another one. */
  readonly #defaultContentType: string;
  #contentType: string;
  #upstream: Parameters<ClientResponse["begin"]>[0];
  #drainWaiters: (() => void)[] = [];
  #headers: HeadersOut | (() => HeadersOut) = {};
  #buffered: (Buffer | string)[] = [];
  #bufferedBytes = 0;
  #isAwaitingSettlement = false;
  #isMuted = false;
  /** Whether the headers announced a trailer with the cost. */
  #hasCostTrailer = false;
  #blockedSince: number | undefined;
  #lastWrite = performance.now();
  readonly #startedAt = performance.now();

  constructor(x: HostExchange, lead?: ClientResponse) {
    this.#lead = lead;
    this.#stream = x.stream;
    this.#state = x.state;
    this.#connection = x.state.connection;
    this.#res = this.#connection.res;
    this.#timerWheel = this.#state.gen.timerWheel;
    const { server } = this.#state.frontend;
    this.#pings = lead ? lead.#pings : x.stream && server ? new Pings(server) : NO_PINGS;
    this.#closesOnError = server?.closeOnError === true;
    this.#contentType = this.#defaultContentType =
      server?.contentType?.(x) ??
      (x.stream ? "text/event-stream; charset=utf-8" : "application/json");
    if (!lead) this.#timerWheel.add(this);
  }

  get hasSentHeaders(): boolean {
    return this.#res.headersSent;
  }

  setRace(race: ResponseRace | undefined): void {
    this.#race = race;
  }

  /** Makes this response the response that the client receives. */
  #win(): void {
    const race = this.#race;
    if (!race) return;
    this.#race = undefined;
    race.onWinner(this);
    if (this.#lead) this.#timerWheel.add(this);
  }

  /** Starts the response of a call and discards buffered data of an earlier call. */
  begin(
    upstream: Pick<UpstreamReply, "pause" | "resume"> | undefined,
    headers: HeadersOut | (() => HeadersOut),
  ): void {
    this.#upstream = upstream;
    this.#headers = headers;
    if (!this.hasSentHeaders) this.#contentType = this.#defaultContentType;
    else if (this.#lead) this.#contentType = this.#lead.#contentType;
    this.#buffered = [];
    this.#bufferedBytes = 0;
    this.#isAwaitingSettlement = false;
    this.#recordings?.restart();
  }

  get contentType(): string {
    return this.#contentType;
  }

  /** Sets the content type. Throws if the headers have already been sent with another one. */
  setContentType(mime: string): void {
    if (mime === this.#contentType) return;
    if (this.hasSentHeaders || !CONTENT_TYPE.test(mime))
      fail("upstream", "The provider's response has a content type that cannot be forwarded.", {
        code: "bad_content_type",
      });
    // A relay takes the content type from the provider's headers.
    this.#contentType = this.#state.gen.mask(mime);
  }

  commit(): void {
    if (this.isCommitted) return;
    this.#win();
    this.isCommitted = true;
    if (this.#stream) {
      this.#sendHeaders();
      if (!this.#isAwaitingSettlement) this.#flush();
    }
  }

  /** Buffers everything until `onSettled` is called. */
  holdUntilSettled(): void {
    this.#win();
    this.#isAwaitingSettlement = true;
  }

  onSettled(): void {
    this.#isAwaitingSettlement = false;
    if (!this.#stream) return;
    this.#flush();
    if (this.#blockedSince === undefined) this.#upstream?.resume();
  }

  write(chunk: Buffer | string): void {
    if (this.#isMuted) return;
    this.#recordings?.copy(chunk);
    if (this.isCommitted && !this.#isAwaitingSettlement && this.#stream)
      return this.#writeEvent(chunk);
    this.#buffered.push(chunk);
    this.#bufferedBytes += chunk.length;
    if (this.#stream && !this.isCommitted) {
      if (this.#bufferedBytes > COMMIT_AFTER_BYTES) this.commit();
      else if (this.#bufferedBytes > OPEN_AFTER_BYTES) this.#sendHeaders();
    }
    if (this.#isAwaitingSettlement && this.#bufferedBytes > COMMIT_AFTER_BYTES)
      this.#upstream?.pause();
  }

  /**
   * Resolves when the client reads again. For an endpoint that produces the response itself and has
   * no provider response to pause.
   */
  whenWritable(): Promise<void> | undefined {
    if (this.#blockedSince === undefined || this.#isMuted) return undefined;
    return new Promise((resolve) => this.#drainWaiters.push(resolve));
  }

  /** Ends the response: sends buffered data and frees the connection. */
  end(): void {
    this.#win();
    this.#timerWheel.remove(this);
    this.#recordings?.end(!this.#isMuted);
    const res = this.#res;
    if (this.#isMuted || res.destroyed) return;
    if (this.#stream) {
      this.#sendHeaders();
      this.#flush();
      if (this.#hasCostTrailer) res.addTrailers(createCostTrailer(this.#state));
      res.end();
      return;
    }
    const whole = concatChunks(this.#buffered);
    this.#writeHead(whole.length);
    this.#connection.bytesOut += whole.length;
    res.end(whole);
  }

  /**
   * Ends a response that failed after its headers were sent. `writeError` writes the protocol's
   * error, and the stream ends in the way that its clients treat as a failure. If `writeError`
   * throws, the connection is closed without an error message.
   */
  failWith(writeError: () => void): void {
    try {
      writeError();
      if (this.#closesOnError) this.#closeAbruptly();
      else this.end();
    } catch (problem) {
      this.mute();
      this.#res.destroy();
      throw problem;
    }
  }

  /**
   * Sends buffered data, then closes the connection abruptly. A stream that ended cleanly would
   * look complete.
   */
  #closeAbruptly(): void {
    this.#timerWheel.remove(this);
    this.#recordings?.end(false);
    const res = this.#res;
    if (this.#isMuted || res.destroyed) return;
    this.#sendHeaders();
    this.#flush();
    this.#isMuted = true;
    res.write("", () => res.destroy());
  }

  /** Stops all output, because the client disconnected or must not receive more. */
  mute(): void {
    this.#isMuted = true;
    this.#race = undefined;
    this.#buffered = [];
    this.#notifyWritable();
    this.#recordings?.end(false);
    this.#timerWheel.remove(this);
  }

  /**
   * Resolves to the response as sent to the client, once it is settled. Resolves to null if it was
   * truncated or is larger than `max` bytes.
   */
  record(max: number): Promise<Buffer[] | null> {
    return (this.#recordings ??= new Recordings()).add(max);
  }

  /** Discards a response of which nothing was sent. The error response is written separately. */
  abandon(): void {
    this.#recordings?.end(false);
    this.#timerWheel.remove(this);
  }

  onTick(now: number): void {
    if (this.#isMuted) return;
    if (
      this.#blockedSince !== undefined &&
      now - this.#blockedSince > this.#state.gen.writeTimeoutMs
    )
      return void this.#res.destroy();
    if (!this.#stream || !this.#pings.isSupported) return;
    if (!this.hasSentHeaders && now - this.#startedAt > OPEN_AFTER_MS) this.#sendHeaders();
    if (
      this.hasSentHeaders &&
      !this.#isAwaitingSettlement &&
      now - this.#lastWrite > this.#state.gen.pingIntervalMs
    ) {
      if (!this.isCommitted || (this.writer?.isBetweenEvents ?? true))
        this.#writeRaw(this.#pings.next());
    }
  }

  #sendHeaders(): void {
    if (this.hasSentHeaders) return;
    if (this.#lead && !this.isCommitted) return this.commit();
    if (!this.#lead) this.#race?.onOpening();
    this.#writeHead();
  }

  #writeHead(length?: number): void {
    const res = this.#res;
    if (res.headersSent) return;
    const list: string[] = ["content-type", this.#contentType];
    if (length === undefined) list.push("cache-control", "no-cache", "x-accel-buffering", "no");
    else list.push("content-length", String(length));
    const headers = typeof this.#headers === "function" ? this.#headers() : this.#headers;
    for (const name in headers) {
      const value = headers[name];
      if (value !== undefined) list.push(name, value);
    }
    Object.freeze(headers);
    for (const [name, value] of createDiagnosticHeaders(this.#state, length !== undefined))
      list.push(name, value);
    if (length === undefined && sendsCostTrailer(this.#state)) {
      this.#hasCostTrailer = true;
      list.push("trailer", "x-tollgate-cost");
    }
    const { outcome } = this.#state;
    if (outcome.headers) for (const [name, value] of outcome.headers) list.push(name, value);
    res.writeHead(200, list);
    if (length !== undefined) return;
    // More data usually follows in the same turn and is sent together with the headers.
    res.cork();
    res.flushHeaders();
    process.nextTick(uncork, res);
  }

  #flush(): void {
    const held = this.#buffered;
    if (held.length === 0) return;
    this.#buffered = [];
    this.#bufferedBytes = 0;
    this.#res.cork();
    for (const chunk of held) this.#writeEvent(chunk);
    this.#res.uncork();
  }

  #writeEvent(chunk: Buffer | string): void {
    this.#writeRaw(this.#pings.isOpen ? this.#pings.stripOpening(chunk) : chunk);
  }

  #writeRaw(chunk: Buffer | string): void {
    const res = this.#res;
    this.#connection.bytesOut += chunk.length;
    this.#lastWrite = this.#timerWheel.now;
    const room = res.write(chunk);
    if (this.#blockedSince !== undefined || (room && res.writableLength < MAX_PENDING_WRITE_BYTES))
      return;
    this.#blockedSince = performance.now();
    this.#upstream?.pause();
    const go = (problem?: unknown) => {
      if (problem) return;
      this.#blockedSince = undefined;
      this.#upstream?.resume();
      this.#notifyWritable();
    };
    // While Node's buffer is below its high-water mark, Node emits no `drain` event.
    if (room) res.write("", go);
    else res.once("drain", go);
  }

  #notifyWritable(): void {
    for (const go of this.#drainWaiters.splice(0)) go();
  }
}

/** Pings that are written while a stream is silent. See `ServerHalf.ping` in src/plugin/protocol.ts. */
export class Pings {
  readonly #ping: string;
  /** Prefix that the first ping of a silence writes. The next event then omits it. */
  readonly #opening: string;
  #isOpen = false;

  constructor({ ping, pingPrefix = "" }: Pick<ServerHalf<"chat">, "ping" | "pingPrefix">) {
    this.#ping = ping;
    this.#opening = pingPrefix;
  }

  /** Whether this protocol has pings. */
  get isSupported(): boolean {
    return this.#ping !== "";
  }

  /** Returns the text of the next ping. */
  next(): string {
    if (this.#isOpen || this.#opening === "") return this.#ping;
    this.#isOpen = true;
    return this.#opening + this.#ping;
  }

  /** Whether a prefix was written, so that `stripOpening` must be called for the next event. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Returns the event without the prefix that a ping has already written. */
  stripOpening(event: Buffer | string): Buffer | string {
    this.#isOpen = false;
    const { length } = this.#opening;
    if (typeof event === "string")
      return event.startsWith(this.#opening) ? event.slice(length) : event;
    const opens = event.subarray(0, length).equals(Buffer.from(this.#opening));
    return opens ? event.subarray(length) : event;
  }
}

/**
 * Used for non-streaming responses. No ping is written for such responses, so all of them share
 * this object.
 */
const NO_PINGS = new Pings({ ping: "" });

interface Recording {
  readonly max: number;
  size: number;
  parts: Buffer[];
  resolve(parts: Buffer[] | null): void;
}

/** Joins the chunks of a response. */
function concatChunks(pieces: readonly (Buffer | string)[]): Buffer {
  const [first] = pieces;
  if (pieces.length === 1 && Buffer.isBuffer(first)) return first;
  return Buffer.concat(pieces.map((one) => (typeof one === "string" ? Buffer.from(one) : one)));
}

class Recordings {
  readonly #all: Recording[] = [];

  /**
   * Resolves to the complete response. Resolves to null if it was truncated or is larger than `max`
   * bytes.
   */
  add(max: number): Promise<Buffer[] | null> {
    return new Promise((done) => this.#all.push({ max, size: 0, parts: [], resolve: done }));
  }

  /** Discards the copies because another call starts to respond. */
  restart(): void {
    for (const one of this.#all) {
      one.parts = [];
      one.size = 0;
    }
  }

  copy(chunk: Buffer | string): void {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    for (const one of this.#all) {
      one.size += bytes.length;
      if (one.size <= one.max) one.parts.push(bytes);
      else one.parts = [];
    }
  }

  /** Ends the recordings. `isComplete`: whether the complete response was received. */
  end(isComplete: boolean): void {
    for (const one of this.#all) one.resolve(isComplete && one.size <= one.max ? one.parts : null);
  }
}

/** A race of two responses for one client. Only one of them is sent. */
export interface ResponseRace {
  /** Called with the chosen response, before its first byte is sent. */
  onWinner(by: object): void;
  /** Called before the headers of the first response are sent. */
  onOpening(): void;
}

/** The code that writes a response. */
interface ResponseWriter {
  /** Whether a ping may be written at this position. */
  readonly isBetweenEvents: boolean;
  /** Called when the call must end with this error. */
  onError(problem: unknown): void;
}
