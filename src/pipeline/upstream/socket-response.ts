// The response to a request that was sent over a provider's WebSocket. Its messages are read as the
// events of a stream over HTTP, so every later stage treats both alike.
import { createFault } from "../../model/error.ts";
import type { FailurePoint } from "../../model/call-retry.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { ProviderMessage } from "../../plugin/socket.ts";
import type { TimerEntry, TimerWheel } from "../admission/timer-wheel.ts";
import type { EffectiveTimeouts } from "../targets/timeouts.ts";
import type { MessageReceiver, ResponseConnection } from "./connection-pool.ts";
import {
  MAX_EARLY_BYTES,
  overdueFault,
  type ResponseSink,
  type UpstreamReply,
} from "./upstream-http-response.ts";

export class SocketResponse implements UpstreamReply, MessageReceiver, TimerEntry {
  timerIndex = -1;
  status = 0;
  headers: HeadersIn = {};
  /** Whether the rejection concerns the connection only. */
  needsNewConnection = false;
  readonly #call: { failurePoint: FailurePoint };
  readonly #timerWheel: TimerWheel;
  #timeouts: EffectiveTimeouts;
  readonly #startedAt = performance.now();
  #idleDeadline: number;
  readonly #begun = Promise.withResolvers<void>();
  /** Undefined before the request is sent, and when the connection is free again. */
  #connection: ResponseConnection | undefined;
  #sink: ResponseSink | undefined;
  #pending: Buffer[] = [];
  /** Bytes that arrived before the response is read. */
  #earlyBytes = 0;
  #isPaused = false;
  #ended: { readonly problem?: unknown } | undefined;
  #hasDeliveredEnd = false;

  constructor(
    call: { failurePoint: FailurePoint },
    timerWheel: TimerWheel,
    timeouts: EffectiveTimeouts,
  ) {
    this.#call = call;
    this.#timerWheel = timerWheel;
    this.#timeouts = timeouts;
    this.#idleDeadline = this.#startedAt + timeouts.firstByteMs;
    // The response may fail before anything waits for it.
    this.#begun.promise.catch(() => {});
  }

  /** Resolves when the provider has accepted or rejected the request. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  get isOver(): boolean {
    return this.#ended !== undefined;
  }

  /** Called when the request is sent. */
  start(connection: ResponseConnection): void {
    this.#connection = connection;
    this.#call.failurePoint = "no_response";
    this.#timerWheel.add(this);
  }

  onMessage({ event, isLast, rejection, needsNewConnection }: ProviderMessage): void {
    if (this.#ended) return;
    if (this.#idleDeadline !== Infinity)
      this.#idleDeadline = this.#timerWheel.now + this.#timeouts.idleMs;
    if (rejection && this.status === 0) {
      this.needsNewConnection = needsNewConnection === true;
      this.#begin(rejection.status, { ...rejection.headers, "content-type": "application/json" });
      this.#pending.push(Buffer.from(JSON.stringify(rejection.body)));
      return this.#finish();
    }
    if (event !== undefined) {
      if (this.status === 0) this.#begin(200, { "content-type": "text/event-stream" });
      this.#push(Buffer.from(event));
    }
    if (isLast === true) return this.#finish();
    this.#deliver();
  }

  #push(chunk: Buffer): void {
    this.#pending.push(chunk);
    if (this.#sink) return;
    this.#earlyBytes += chunk.length;
    if (this.#earlyBytes <= MAX_EARLY_BYTES || this.#idleDeadline === Infinity) return;
    // The provider's silence until the response is read is not a failure.
    this.#idleDeadline = Infinity;
    this.#connection?.pause();
  }

  /** Called when the connection is closed before the response has ended. */
  onClosed(): void {
    this.#finish(
      createFault("upstream", "The provider closed the WebSocket before the response ended.", {
        code: "upstream_closed",
      }),
    );
  }

  pipeTo(sink: ResponseSink): void {
    this.#sink = sink;
    if (this.#earlyBytes > MAX_EARLY_BYTES && !this.#isPaused) this.resume();
    else this.#deliver();
  }

  pause(): void {
    this.#isPaused = true;
    this.#idleDeadline = Infinity;
    this.#connection?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#idleDeadline = this.#timerWheel.now + this.#timeouts.idleMs;
    this.#deliver();
    if (!this.#isPaused) this.#connection?.resume();
  }

  limitRemainingTime(ms: number): void {
    this.#timeouts = { ...this.#timeouts, totalMs: this.#timerWheel.now - this.#startedAt + ms };
  }

  abort(reason: Error): void {
    if (this.#ended) return;
    this.#connection?.terminate();
    this.#finish(reason);
  }

  onTick(now: number): void {
    const times = {
      startedAt: this.#startedAt,
      hasBegun: this.status > 0 || this.#isPaused,
      idleDeadline: this.#idleDeadline,
    };
    const fault = overdueFault(this.#timeouts, times, now);
    if (fault) this.abort(fault);
  }

  #begin(status: number, headers: HeadersIn): void {
    this.status = status;
    this.headers = headers;
    this.#call.failurePoint = "rejected";
    this.#begun.resolve();
  }

  #finish(problem?: unknown): void {
    if (this.#ended) return;
    this.#ended = problem === undefined ? {} : { problem };
    this.#timerWheel.remove(this);
    // The connection serves another request from here on.
    this.#connection?.resume();
    this.#connection = undefined;
    if (this.status === 0) this.#begun.reject(problem);
    this.#deliver();
  }

  #deliver(): void {
    const sink = this.#sink;
    if (!sink) return;
    while (this.#pending.length > 0 && !this.#isPaused) sink.onData(this.#pending.shift()!);
    if (!this.#ended || this.#hasDeliveredEnd) return;
    const { problem } = this.#ended;
    if (this.#pending.length > 0 && problem === undefined) return;
    this.#hasDeliveredEnd = true;
    sink.onEnd(problem);
  }
}
