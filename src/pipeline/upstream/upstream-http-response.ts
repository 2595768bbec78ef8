// One request to an upstream, on undici's dispatch: no streams, no promises per chunk, back-pressure by pause and resume.
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { BOUNDS, type BoundName } from "../../lib/bounds.ts";
import { createFault, getFault } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { FailurePoint } from "../../model/call-retry.ts";
import type { HeadersIn } from "../../model/values.ts";
import { bodyFormOf } from "../../lib/media-type.ts";
import { attributeFault } from "../faults/fault-source.ts";
import type { EffectiveTimeouts } from "../targets/timeouts.ts";
import { toConnectionFault } from "../faults/connection-errors.ts";
import type { EndpointTransport } from "../exchange/mounted.ts";
import type { BodyChunks } from "./body-chunks.ts";
import type { TimerWheel, TimerEntry } from "../admission/timer-wheel.ts";

// Comments of an event stream, which providers send while an answer is not there yet: they are no byte of it.
const [LF, CR, COLON] = [10, 13, 58];
/** Reads the beginning of a stream, up to its first line that is neither blank nor a comment. */
export class LeadingComments {
  #inComment = false;

  /** Whether the stream has gone on to something else within this piece. Not called again after that. */
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
/** What may come before its taker is there. A head mostly brings the answer's first bytes along, and to stop the parser for them costs more than they do. */
const MAX_EARLY_BYTES = 65_536;

/** What takes an answer's bytes. */
export interface ResponseSink {
  onData(chunk: Buffer): void;
  /** Without an error: upstream ended its message well. */
  onEnd(error?: unknown): void;
}

const NO_CHUNKS: readonly Buffer[] = [];

/** Of a body in pieces undici does not know how long it is. */
const withContentLength = (headers: string[], length: number): string[] =>
  headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length")
    ? headers
    : [...headers, "content-length", String(length)];

const deliverChunks = (response: UpstreamHttpResponse): void => response.deliverIfReading();

/** One answer of a provider. A model that thinks may be silent for minutes; the operator sets how long is too long. */
export class UpstreamHttpResponse implements Dispatcher.DispatchHandler, TimerEntry {
  timerIndex = -1;
  status = 0;
  headers: HeadersIn = {};
  readonly #timerWheel: TimerWheel;
  #timeouts: EffectiveTimeouts;
  readonly #started: number;
  #idleDeadline: number;
  /** An event stream has sent nothing but comments. */
  #leadingComments: LeadingComments | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #sink: ResponseSink | undefined;
  /** What has come and was not handed over. */
  #pendingChunks: Buffer[] = [];
  #earlyBytes = 0;
  /** The client does not read. */
  #paused = false;
  #ended: { error?: unknown } | undefined;
  #abortReason: Error | undefined;
  /** Its last bytes could not be sent. */
  #isRequestCut = false;
  /** Its call, until there is a head: it is told how far it has come. */
  #pendingHeaders:
    | {
        readonly call: { failurePoint: FailurePoint };
        resolve(response: UpstreamHttpResponse): void;
        reject(error: unknown): void;
      }
    | undefined;

  /** `hinted`: the total is the client's own wish. */
  constructor(dog: TimerWheel, timeouts: EffectiveTimeouts) {
    this.#timerWheel = dog;
    this.#timeouts = timeouts;
    this.#started = performance.now();
    this.#idleDeadline = this.#started + timeouts.firstByteMs;
  }

  /** How far its call has come. Where bytes may have left and nothing came back, it is not known whether there is work to pay for. */
  get failurePoint(): FailurePoint {
    if (this.status > 0) return "rejected";
    if (this.#controller === undefined) return "unsent";
    return this.#isRequestCut ? "send_interrupted" : "no_response";
  }

  /** Resolves with itself when it has a head. */
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
          // undici takes anything that it can iterate over; its types do not say so.
          body: list.length > 1 ? (list as unknown as Readable) : (list[0] ?? null),
        },
        this,
      );
      // It ends with this request.
      if (call.usesNewConnection) dispatcher.close().catch(() => {});
    });
  }

  pipeTo(taker: ResponseSink): void {
    this.#sink = taker;
    this.deliver();
    if (this.#ended) taker.onEnd(this.#ended.error);
    else if (this.#earlyBytes > MAX_EARLY_BYTES && !this.#paused) this.#controller?.resume();
  }

  /** While the client does not read, nothing is read from upstream: its silence then is no fault. */
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
  /** Gives the rest of the answer this much time. */
  limitRemainingTime(ms: number): void {
    this.#timeouts = { ...this.#timeouts, totalMs: this.#timerWheel.now - this.#started + ms };
  }
  abort(reason: Error): void {
    this.#abortReason = reason;
    if (this.#controller) this.#controller.abort(reason);
    else this.onResponseError(undefined, reason);
  }

  onTick(now: number): void {
    const { totalMs, isClientLimit } = this.#timeouts;
    if (now > this.#started + totalMs) {
      if (!isClientLimit) return this.#timeOut("took longer than", totalMs);
      const late = "The provider took longer than this client waits.";
      this.abort(
        attributeFault(createFault("timeout", late, { code: "client_timeout" }), "caller"),
      );
      return;
    }
    const { firstByteMs, idleMs } = this.#timeouts;
    const began = this.status > 0 && !this.#leadingComments;
    if (!began && !this.#paused && now > this.#started + firstByteMs)
      return this.#timeOut("sent nothing for", firstByteMs);
    if (now > this.#idleDeadline) this.#timeOut("fell silent for", idleMs);
  }

  #timeOut(what: string, ms: number): void {
    this.abort(
      createFault("timeout", `The provider ${what} ${ms / 1000} s.`, { code: "upstream_timeout" }),
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortReason) controller.abort(this.#abortReason);
  }

  onResponseStart(c: Dispatcher.DispatchController, status: number, headers: HeadersIn): void {
    // Each is a view into the first read from the socket, which would be held for as long as the answer lasts.
    c.rawHeaders = null;
    if (status < 200) return;
    this.status = status;
    this.headers = headers;
    this.#idleDeadline = this.#timerWheel.now + this.#timeouts.idleMs;
    if (bodyFormOf(String(headers["content-type"] ?? "")) === "stream")
      this.#leadingComments = new LeadingComments();
    this.#takePendingHeaders()?.resolve(this);
  }

  /** It waits no longer. */
  #takePendingHeaders() {
    const head = this.#pendingHeaders;
    this.#pendingHeaders = undefined;
    if (head) head.call.failurePoint = this.failurePoint;
    return head;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // Bytes that were on their way when it was paused still come.
    if (!this.#paused) this.#idleDeadline = this.#timerWheel.now + this.#timeouts.idleMs;
    if (this.#leadingComments?.hasPassed(chunk)) this.#leadingComments = undefined;
    this.#pendingChunks.push(chunk);
    if (!this.#sink) {
      this.#earlyBytes += chunk.length;
      if (this.#earlyBytes > MAX_EARLY_BYTES) controller.pause();
    } else if (this.#pendingChunks.length === 1) process.nextTick(deliverChunks, this);
  }

  /** What comes for a client that does not read stays as it came: with the rest of its read, which the socket holds. */
  deliverIfReading(): void {
    if (!this.#paused) this.deliver();
  }

  /**
   * What one read of the socket brought goes on in one piece, however many chunks of HTTP it was: it is looked at
   * once and written once.
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

/** The beginning of an error's body. Its meaning is mostly in its head, so the rest is not waited for. */
export function readErrorBody(response: UpstreamHttpResponse, max: number): Promise<Buffer> {
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
        response.abort(createFault("canceled", "enough of it"));
      },
      onEnd: enough,
    });
  });
}

/** Counts what is kept, and throws where it is too much. */
interface ByteCounter {
  add(bytes: number): void;
}

/** So few bytes that they need no room of their own. */
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

/** The whole body of an answer that should be small: a token count, or what is asked for by id. */
export function readResponseBody(
  response: UpstreamHttpResponse,
  counter: ByteCounter,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    response.pipeTo({
      onData(chunk) {
        try {
          counter.add(chunk.length);
          chunks.push(chunk);
        } catch (problem) {
          // Said here too: an answer that has all come is not broken off any more.
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
