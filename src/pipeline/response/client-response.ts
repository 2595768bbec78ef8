// The client's side of an exchange: what may leave, and when. Two gates: nothing leaves before the first content
// (until then another candidate may still answer), and nothing leaves after the finish until the bill is durable.
import type { ServerResponse } from "node:http";
import { fail } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { ExchangeState, HostExchange } from "../exchange/exchange.ts";
import type { ResponseRace, ResponseWriter } from "./response-race.ts";
import { createDiagnosticHeaders } from "./diagnostic-headers.ts";
import { NO_PINGS, Pings } from "./pings.ts";
import type { UpstreamHttpResponse } from "../upstream/upstream-http-response.ts";
import { concatChunks, Recordings } from "./recordings.ts";
import type { TimerWheel, TimerEntry } from "../admission/timer-wheel.ts";

const OPEN_AFTER_MS = 10_000;
const OPEN_AFTER_BYTES = 64 * 1024;
const COMMIT_AFTER_BYTES = 1024 * 1024;
const uncork = (res: ServerResponse): void => res.uncork();
const CONTENT_TYPE = /^[\x21-\x7e][\x20-\x7e]{0,255}$/;
const PING_EVERY_MS = 15_000;
/** So much waits for a client to read, and no more is asked for: Node's own mark lets each stalled client hold one read more of upstream. */
const MAX_PENDING_WRITE_BYTES = 16 * 1024;

export class ClientResponse implements TimerEntry {
  timerIndex = -1;
  /** Content has left, or is about to: no other candidate after it. */
  isCommitted = false;
  writer: ResponseWriter | undefined;
  /** Of a hedge: the answer that the client's head and pings belong to until this one has content. */
  readonly #lead: ClientResponse | undefined;
  #race: ResponseRace | undefined;
  #recordings: Recordings | undefined;
  // What a write needs stands here and not behind the exchange: with a thousand streams, each hop is a miss of the processor's cache.
  readonly #stream: boolean;
  readonly #res: ServerResponse;
  readonly #timerWheel: TimerWheel;
  readonly #state: ExchangeState;
  readonly #pings: Pings;
  readonly #closesOnError: boolean;
  /** What the protocol says that it writes; a relay, and a cache, may know better. */
  readonly #defaultContentType: string;
  #contentType: string;
  #upstream: Parameters<ClientResponse["begin"]>[0];
  #drainWaiters: (() => void)[] = [];
  #headers: HeadersOut | (() => HeadersOut) = {};
  #buffered: (Buffer | string)[] = [];
  #bufferedBytes = 0;
  #isAwaitingSettlement = false;
  #isMuted = false;
  #blockedSince: number | undefined;
  #lastWrite = performance.now();
  readonly #startedAt = performance.now();

  constructor(x: HostExchange, lead?: ClientResponse) {
    this.#lead = lead;
    this.#stream = x.stream;
    this.#state = x["~"];
    this.#res = this.#state.res;
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

  /** From here on the client's answer is this one. */
  #win(): void {
    const race = this.#race;
    if (!race) return;
    this.#race = undefined;
    race.onWinner(this);
    if (this.#lead) this.#timerWheel.add(this);
  }

  /** A call begins to answer: what an earlier one left behind is forgotten. */
  begin(
    upstream: Pick<UpstreamHttpResponse, "pause" | "resume"> | undefined,
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

  /** What has left cannot be said in another way. */
  setContentType(mime: string): void {
    if (mime === this.#contentType) return;
    if (this.hasSentHeaders || !CONTENT_TYPE.test(mime))
      fail("upstream", `The provider's answer is of a type that cannot be passed on.`, {
        code: "bad_content_type",
      });
    // A relay takes it from the head of an upstream.
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

  /** From here on, everything waits for `settled`. */
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

  /** For an endpoint that makes the answer here and has no upstream to pause: resolves when the client reads again. */
  whenWritable(): Promise<void> | undefined {
    if (this.#blockedSince === undefined || this.#isMuted) return undefined;
    return new Promise((resolve) => this.#drainWaiters.push(resolve));
  }

  /** The answer is over: what is held leaves, and with it the connection is free. */
  end(): void {
    this.#win();
    this.#timerWheel.remove(this);
    this.#recordings?.end(!this.#isMuted);
    const res = this.#res;
    if (this.#isMuted || res.destroyed) return;
    if (this.#stream) {
      this.#sendHeaders();
      this.#flush();
      res.end();
      return;
    }
    const whole = concatChunks(this.#buffered);
    this.#writeHead(whole.length);
    this.#state.bytesOut += whole.length;
    res.end(whole);
  }

  /**
   * The answer has failed after its head was sent: `say` writes the protocol's error, and the stream ends in the way that its
   * clients take for a failure. If `say` throws, the connection breaks without a word.
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

  /** What is held leaves, and then the connection breaks: what ends well would look whole. */
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

  /** The client has gone, or must not hear more: nothing leaves any longer. */
  mute(): void {
    this.#isMuted = true;
    this.#race = undefined;
    this.#buffered = [];
    this.#notifyWritable();
    this.#recordings?.end(false);
    this.#timerWheel.remove(this);
  }

  /** What the client gets, once it is settled; null when it was cut or is larger than `max`. */
  record(max: number): Promise<Buffer[] | null> {
    return (this.#recordings ??= new Recordings()).add(max);
  }

  /** Given up before anything left: the refusal writes the answer. */
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
      now - this.#lastWrite > PING_EVERY_MS
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
    const state = this.#state;
    if (state.res.headersSent) return;
    const list: string[] = ["content-type", this.#contentType];
    if (length === undefined) list.push("cache-control", "no-cache", "x-accel-buffering", "no");
    else list.push("content-length", String(length));
    const headers = typeof this.#headers === "function" ? this.#headers() : this.#headers;
    for (const name in headers) {
      const value = headers[name];
      if (value !== undefined) list.push(name, value);
    }
    Object.freeze(headers);
    for (const [name, value] of createDiagnosticHeaders(state, length !== undefined))
      list.push(name, value);
    if (state.responseHeaders)
      for (const [name, value] of state.responseHeaders) list.push(name, value);
    state.res.writeHead(200, list);
    if (length !== undefined) return;
    // Nearly always something follows in this turn, and leaves with it.
    state.res.cork();
    state.res.flushHeaders();
    process.nextTick(uncork, state.res);
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
    this.#state.bytesOut += chunk.length;
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
    // Where Node sees room enough, it says nothing when there is more.
    if (room) res.write("", go);
    else res.once("drain", go);
  }

  #notifyWritable(): void {
    for (const go of this.#drainWaiters.splice(0)) go();
  }
}
