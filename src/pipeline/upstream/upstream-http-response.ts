// One request to a provider, on undici's dispatch API. The dispatch API needs no streams and no
// promise per chunk, and applies back-pressure by pause and resume.
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { BOUNDS, type BoundName } from "../../lib/bounds.ts";
import { createFault, getFault } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { FailurePoint } from "../../model/call-retry.ts";
import type { HeadersIn } from "../../model/values.ts";
import { bodyFormOf } from "../../lib/media-type.ts";
import { attributeFault, toConnectionFault } from "../faults/fault-source.ts";
import type { EffectiveTimeouts } from "../targets/timeouts.ts";
import type { EndpointTransport } from "../exchange/mounted.ts";
import type { BodyChunks } from "./outgoing-request.ts";
import type { TimerWheel, TimerEntry } from "../admission/timer-wheel.ts";

// Characters of comments in an event stream. Providers send comments while a response is not ready.
// They are not part of the response.
const [LF, CR, COLON] = [10, 13, 58];
/** Reads the beginning of a stream, up to its first line that is neither blank nor a comment. */
export class LeadingComments {
  #inComment = false;

  /** Whether the comments end within this chunk. Not called again after it has returned true. */
  hasPassed(chunk: Buffer): boolean {
    for (let at = 0; at < chunk.length; at++) {
      if (chunk[at] === LF || chunk[at] === CR) this.#inComment = false;
      else if (!this.#inComment && chunk[at] !== COLON) return true;
      else this.#inComment = true;
    }
    return false;
  }
}

const ERROR_BODY_TIMEOUT_MS = 5_000;
/**
 * Bytes that may arrive before the sink is attached. Headers usually arrive together with the first
 * bytes of the body, and pausing the parser for them costs more than keeping them.
 */
export const MAX_EARLY_BYTES = 65_536;

/** Receives the bytes of a response. */
export interface ResponseSink {
  onData(chunk: Buffer): void;
  /** Called at the end. If there is no error, the provider's message ended correctly. */
  onEnd(error?: unknown): void;
}

/** The response of a provider, whatever connection it arrives on. */
export interface UpstreamReply {
  readonly status: number;
  readonly headers: HeadersIn;
  /** Delivers the body to the sink, from its beginning. */
  pipeTo(sink: ResponseSink): void;
  /** Stops reading while the client does not read. */
  pause(): void;
  resume(): void;
  /** Limits the time for the rest of the response. */
  limitRemainingTime(ms: number): void;
  abort(reason: Error): void;
}

/** The times of a response, by the monotonic clock in milliseconds. */
interface ResponseTimes {
  readonly startedAt: number;
  /** Whether the response has begun, or reading is paused. */
  readonly hasBegun: boolean;
  readonly idleDeadline: number;
}

const timedOut = (what: string, ms: number): Error =>
  createFault("timeout", `The provider ${what} ${ms / 1000} s.`, { code: "upstream_timeout" });

/** Returns the fault of a response that exceeds one of its timeouts. */
export function overdueFault(
  { firstByteMs, idleMs, totalMs, isClientLimit }: EffectiveTimeouts,
  { startedAt, hasBegun, idleDeadline }: ResponseTimes,
  now: number,
): Error | undefined {
  if (now > startedAt + totalMs) {
    if (!isClientLimit) return timedOut("took longer than", totalMs);
    const late = "The provider did not respond within this client's time limit.";
    return attributeFault(
      createFault("timeout", late, { code: "client_timeout" }),
      "caller",
    ) as Error;
  }
  if (!hasBegun && now > startedAt + firstByteMs)
    return timedOut("did not respond within", firstByteMs);
  return now > idleDeadline ? timedOut("sent no data for", idleMs) : undefined;
}

const NO_CHUNKS: readonly Buffer[] = [];

/** Adds the content length, because undici does not know the length of a body in chunks. */
const withContentLength = (headers: string[], length: number): string[] =>
  headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length")
    ? headers
    : [...headers, "content-length", String(length)];

const deliverChunks = (response: UpstreamHttpResponse): void => response.deliverIfReading();

/**
 * One response of a provider. A reasoning model may be silent for minutes. The operator configures
 * the limit.
 */
export class UpstreamHttpResponse implements Dispatcher.DispatchHandler, TimerEntry, UpstreamReply {
  timerIndex = -1;
  status = 0;
  headers: HeadersIn = {};
  readonly #timerWheel: TimerWheel;
  #timeouts: EffectiveTimeouts;
  readonly #started: number;
  #idleDeadline: number;
  /** Set while an event stream has sent only comments. */
  #leadingComments: LeadingComments | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #sink: ResponseSink | undefined;
  /** Received chunks that were not delivered yet. */
  #pendingChunks: Buffer[] = [];
  #earlyBytes = 0;
  /** Whether the client does not read. */
  #paused = false;
  #ended: { error?: unknown } | undefined;
  #abortReason: Error | undefined;
  /** Whether the connection broke while the request was being sent. */
  #isRequestCut = false;
  /** The call that waits for headers, which is updated with its progress. */
  #pendingHeaders:
    | {
        readonly call: { failurePoint: FailurePoint };
        resolve(response: UpstreamHttpResponse): void;
        reject(error: unknown): void;
      }
    | undefined;

  /** `timeouts.isClientLimit`: whether the total comes from the client. */
  constructor(dog: TimerWheel, timeouts: EffectiveTimeouts) {
    this.#timerWheel = dog;
    this.#timeouts = timeouts;
    this.#started = performance.now();
    this.#idleDeadline = this.#started + timeouts.firstByteMs;
  }

  /**
   * How far the call has progressed. If bytes may have been sent and no response arrived, it is
   * unknown whether the provider will bill work.
   */
  get failurePoint(): FailurePoint {
    if (this.status > 0) return "rejected";
    if (this.#controller === undefined) return "unsent";
    return this.#isRequestCut ? "send_interrupted" : "no_response";
  }

  /** Sends the request. Resolves with this object when headers arrive. */
  dispatch(
    call: { failurePoint: FailurePoint; readonly usesNewConnection: boolean },
    wire: EndpointTransport,
    of: { method: string; path: string; headers: string[]; body: BodyChunks | null },
  ): Promise<UpstreamHttpResponse> {
    return new Promise((resolve, reject) => {
      this.#pendingHeaders = { call, resolve, reject };
      this.#timerWheel.add(this);
      const dispatcher = call.usesNewConnection ? wire.openConnection() : wire.pool;
      const list = of.body?.chunks ?? NO_CHUNKS;
      dispatcher.dispatch(
        {
          method: of.method as Dispatcher.HttpMethod,
          path: of.path,
          headers: list.length > 1 ? withContentLength(of.headers, of.body!.length) : of.headers,
          // undici accepts any iterable, although its types do not allow it.
          body: list.length > 1 ? (list as unknown as Readable) : (list[0] ?? null),
        },
        this,
      );
      // The connection closes when this request ends.
      if (call.usesNewConnection) dispatcher.close().catch(() => {});
    });
  }

  pipeTo(taker: ResponseSink): void {
    this.#sink = taker;
    this.deliver();
    if (this.#ended) taker.onEnd(this.#ended.error);
    else if (this.#earlyBytes > MAX_EARLY_BYTES && !this.#paused) this.#controller?.resume();
  }

  /**
   * Stops reading from the provider while the client does not read. The provider's silence during
   * that time is not a failure.
   */
  pause(): void {
    this.#paused = true;
    this.#idleDeadline = Infinity;
    this.#controller?.pause();
  }
  resume(): void {
    this.#paused = false;
    this.#idleDeadline = this.#timerWheel.now + this.#timeouts.idleMs;
    this.deliver();
    if (!this.#paused) this.#controller?.resume();
  }
  /** Limits the time for the rest of the response. */
  limitRemainingTime(ms: number): void {
    this.#timeouts = { ...this.#timeouts, totalMs: this.#timerWheel.now - this.#started + ms };
  }
  abort(reason: Error): void {
    this.#abortReason = reason;
    if (this.#controller) this.#controller.abort(reason);
    else this.onResponseError(undefined, reason);
  }

  onTick(now: number): void {
    const hasBegun = (this.status > 0 && !this.#leadingComments) || this.#paused;
    const times = { startedAt: this.#started, hasBegun, idleDeadline: this.#idleDeadline };
    const fault = overdueFault(this.#timeouts, times, now);
    if (fault) this.abort(fault);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortReason) controller.abort(this.#abortReason);
  }

  onResponseStart(c: Dispatcher.DispatchController, status: number, headers: HeadersIn): void {
    // The raw headers are views into the first read from the socket, which would stay in memory
    // until the response ends.
    c.rawHeaders = null;
    if (status < 200) return;
    this.status = status;
    this.headers = headers;
    this.#idleDeadline = this.#timerWheel.now + this.#timeouts.idleMs;
    if (bodyFormOf(String(headers["content-type"] ?? "")) === "stream")
      this.#leadingComments = new LeadingComments();
    this.#takePendingHeaders()?.resolve(this);
  }

  /** Returns the waiting call and stops waiting. */
  #takePendingHeaders() {
    const head = this.#pendingHeaders;
    this.#pendingHeaders = undefined;
    if (head) head.call.failurePoint = this.failurePoint;
    return head;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // Bytes that were in flight when reading was paused still arrive.
    if (!this.#paused) this.#idleDeadline = this.#timerWheel.now + this.#timeouts.idleMs;
    if (this.#leadingComments?.hasPassed(chunk)) this.#leadingComments = undefined;
    this.#pendingChunks.push(chunk);
    if (!this.#sink) {
      this.#earlyBytes += chunk.length;
      if (this.#earlyBytes > MAX_EARLY_BYTES) controller.pause();
    } else if (this.#pendingChunks.length === 1) process.nextTick(deliverChunks, this);
  }

  /**
   * Delivers chunks only while the client reads. Otherwise, the chunks are kept as received. The
   * socket keeps the rest of their read in memory anyway.
   */
  deliverIfReading(): void {
    if (!this.#paused) this.deliver();
  }

  /**
   * Delivers all data from one read of the socket in one piece, regardless of the number of HTTP
   * chunks in it. The piece is then processed and written once.
   */
  deliver(): void {
    const came = this.#pendingChunks;
    if (came.length === 0 || !this.#sink) return;
    this.#sink.onData(came.length === 1 ? came.pop()! : Buffer.concat(came.splice(0)));
  }

  onResponseEnd(): void {
    this.#finish();
  }

  onResponseError(_c: Dispatcher.DispatchController | undefined, cause: Error): void {
    this.#isRequestCut = (cause as { code?: string }).code === "EPIPE";
    const problem = getFault(cause) ? cause : toConnectionFault(cause);
    this.#takePendingHeaders()?.reject(problem);
    this.#finish(problem);
  }

  #finish(problem?: unknown): void {
    if (this.#ended) return;
    this.#timerWheel.remove(this);
    this.#ended = problem === undefined ? {} : { error: problem };
    this.deliver();
    this.#sink?.onEnd(problem);
  }
}

/**
 * Reads the beginning of an error's body. The meaning is usually at the start, so the gateway does
 * not wait for the rest.
 */
export function readErrorBody(response: UpstreamReply, max: number): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const enough = () => resolve(Buffer.concat(chunks).subarray(0, max));
    response.limitRemainingTime(ERROR_BODY_TIMEOUT_MS);
    response.pipeTo({
      onData(chunk) {
        chunks.push(chunk);
        if ((size += chunk.length) < max) return;
        enough();
        response.abort(createFault("canceled", "response no longer needed"));
      },
      onEnd: enough,
    });
  });
}

/** Counts bytes that are kept in memory, and throws if there are too many. */
interface ByteCounter {
  add(bytes: number): void;
}

/** Counts bytes up to a bound that is small enough not to need a memory reservation. */
export class BoundedByteCounter implements ByteCounter {
  readonly #bound: BoundName;
  #size = 0;

  constructor(bound: BoundName) {
    this.#bound = bound;
  }

  add(bytes: number): void {
    this.#size += bytes;
    if (this.#size > BOUNDS[this.#bound].max) failBoundExceeded(this.#bound);
  }
}

/**
 * Reads the complete body of a response that should be small: a token count, or the result of a
 * by-ID operation.
 */
export function readResponseBody(response: UpstreamReply, counter: ByteCounter): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    response.pipeTo({
      onData(chunk) {
        try {
          counter.add(chunk.length);
          chunks.push(chunk);
        } catch (problem) {
          // The promise is rejected here too, because aborting a response that has already arrived
          // completely has no effect.
          reject(problem as Error);
          response.abort(problem as Error);
        }
      },
      onEnd(problem) {
        if (problem !== undefined) reject(problem);
        else resolve(Buffer.concat(chunks));
      },
    });
  });
}
