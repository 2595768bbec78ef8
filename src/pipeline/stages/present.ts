import { wallClock } from "../../lib/time/wall-clock.ts";
import { bodyFormOf } from "../../lib/media-type.ts";
import { fail, createFault, getFault, type Fault } from "../../model/error.ts";
import type { FinishReason, ModelEvent } from "../../model/event.ts";
import type { ClientResponse } from "../response/client-response.ts";
import { waitForRow, SETTLE_TIMEOUT_MS, settleCall } from "../metering/settle-call.ts";
import { attributeFault } from "../faults/fault-source.ts";
import {
  toClientAccountFault,
  toClientFault,
  validateEvents,
} from "../upstream/provider-failure.ts";
import { timeoutsFor } from "../targets/timeouts.ts";
import type { HostCall } from "../exchange/call.ts";
import {
  longestHoldingFilter,
  type Transcoder,
  type TranscoderSink,
} from "../response/event-filters.ts";
import { createHookTimeout, type HookFailurePolicy } from "../hooks/hook-guard.ts";
import {
  logInternalError,
  createPassthroughTranscoder,
  createTranslatingTranscoder,
  createTruncatedError,
  createEventWriter,
  type ResponseSource,
} from "../response/transcode.ts";
import type { UpstreamReply, ResponseSink } from "../upstream/upstream-http-response.ts";
import type { CallTally } from "../metering/call-tally.ts";
import type { TimerEntry } from "../admission/timer-wheel.ts";
import { clientKey } from "../exchange/client-retries.ts";

// The first token of a call provides the latency of its target, and shows that the target works
// again.
/** Records the time of the first token. Called for each piece of content. */
function recordFirstToken(call: HostCall, tally: CallTally): void {
  if (tally.firstTokenMs !== undefined) return;
  const now = performance.now();
  tally.firstTokenMs = Math.round(now - call.startedAt);
  call.latency?.recordFirstToken(now, now - call.startedAt);
  call.latency = undefined;
  // Reports the success of a probe or spare call immediately. Other requests then do not have to
  // wait for the end of this response.
  if (call.reason === "plain") return;
  call.hasReportedSuccess = true;
  const { exchange: x } = call;
  x.state.gen.targetHealth.recordSuccess(call.candidate, call.startedAt, clientKey(x));
}

/**
 * Time in milliseconds that a provider has to end its message after the final event, so that its
 * connection can be reused.
 */
const LINGER_MS = 5_000;
/**
 * Interval in milliseconds at which a stream reports its progress, so that recovery after a crash
 * is based on real counts.
 */
const PROGRESS_MS = 1_000;
/**
 * Time in milliseconds for which the response is read after the client disconnects, if the provider
 * bills the rest anyway.
 */
const DRAIN_MS = 60_000;
const CLIENT_DISCONNECTED = "The client disconnected.";

/**
 * Delivers the response of one call, from the provider's first byte to the client's last. Resolves
 * when everything is sent and billed. Rejects if the call failed before any content was sent, so
 * that another candidate may be tried.
 */
export function present(
  call: HostCall,
  source: ResponseSource,
  answer: ClientResponse,
  tally: CallTally,
): Promise<void> {
  return new Promise((resolve, reject) => {
    new Presentation(call, answer, tally, resolve, reject).start(source);
  });
}

class Presentation implements ResponseSink, TimerEntry, TranscoderSink {
  timerIndex = -1;
  readonly response: ClientResponse;
  readonly tally: CallTally;
  readonly #call: HostCall;
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;
  #transcoder: Transcoder | undefined;
  #response: UpstreamReply | undefined;
  #state: ResponseState = STREAMING;
  #deadline = Infinity;
  /** The event hook that may still hold back the end of the response. */
  #holdingFilter: HookFailurePolicy | undefined;
  #progressAt = performance.now();

  constructor(
    call: HostCall,
    answer: ClientResponse,
    tally: CallTally,
    resolve: () => void,
    reject: (error: unknown) => void,
  ) {
    this.#call = call;
    this.response = answer;
    this.tally = tally;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(source: ResponseSource): void {
    const x = this.#call.exchange;
    x.state.connection.disconnectListeners.push(() => this.#onDisconnect());
    if (x.state.connection.isDisconnected) return this.#onDisconnect();
    this.response.writer = this;
    if (x.stream) x.state.gen.timerWheel.add(this);
    if (source.type === "events") {
      this.#setDeadline(timeoutsFor(this.#call).totalMs); // A native endpoint has no other timer.
      return void this.#consumeEvents(source.events);
    }
    this.#response = source.response;
    try {
      this.#transcoder = this.#createTranscoder(source.response);
      source.response.pipeTo(this);
    } catch (problem) {
      this.#failFrom(problem, "answer");
    }
  }

  /**
   * Creates the transcoder. If the provider sends a complete response although a stream was
   * requested, or a stream although none was requested, the response is handled in the received
   * form.
   */
  #createTranscoder(response: UpstreamReply): Transcoder {
    const call = this.#call;
    const protocol = call.candidate.mounted.endpoint.protocol!;
    const mime = String(response.headers["content-type"] ?? "");
    const form = bodyFormOf(mime);
    if (response.headers["content-encoding"] && response.headers["content-encoding"] !== "identity")
      fail(
        "upstream",
        "The provider sent a compressed response, although the gateway did not accept one.",
        {
          code: "bad_encoding",
        },
      );
    if (/^text\/html/i.test(mime))
      fail("upstream", "The provider returned a web page. Check its base_url.", {
        code: "bad_content_type",
      });
    const stream = form === undefined ? call.stream : form === "stream";
    if (call.mode === "passthrough" && stream === call.stream)
      return createPassthroughTranscoder(call, this, response.headers);
    return createTranslatingTranscoder(call, this, { protocol, headers: response.headers, stream });
  }

  async #consumeEvents(events: AsyncIterable<ModelEvent>): Promise<void> {
    const { emit, writeFault: failed } = createEventWriter(this.#call, this);
    this.#transcoder = { push() {}, end() {}, writeFault: failed, isBetweenEvents: true };
    try {
      let finished = false;
      for await (const event of validateEvents(this.#call, events)) {
        const room = this.response.whenWritable();
        if (room) await room;
        if (this.#state.isOver) break;
        finished ||= event.type === "finish";
        emit(event);
      }
      if (this.#state.isOver) return;
      if (!finished) throw createTruncatedError();
      this.#advance("upstream");
      this.#awaitFilters();
    } catch (problem) {
      this.onEnd(problem);
    } finally {
      this.#call.releaseFetchBodies();
    }
  }

  #failFrom(problem: unknown, who: "target" | "answer"): void {
    const fault = attributeFault(problem, who, this.#call.provider);
    this.onError(toClientAccountFault(this.#call, fault));
  }

  onData(chunk: Buffer): void {
    if (!this.#state.awaitsUpstream) return;
    // Node collects everything that is written in one turn and sends it together. An additional
    // cork would make each event a system call.
    try {
      this.#transcoder!.push(chunk);
    } catch (problem) {
      this.#failFrom(problem, "answer");
    }
  }

  onStoppedEarly(): void {
    this.tally.wasStoppedEarly = true;
    if (!this.#state.isOver) this.#advance("upstream");
    this.#response?.abort(createFault("canceled", "stop sequence reached"));
    this.#awaitFilters();
  }

  onEnd(problem?: unknown): void {
    if (this.#state.isOver || this.tally.wasStoppedEarly) return;
    if (problem !== undefined && !this.tally.hasFinished) return this.#failFrom(problem, "target");
    this.#advance("upstream");
    if (this.#state.awaitsEnd && problem === undefined) {
      try {
        this.#transcoder!.end();
      } catch (thrown) {
        return this.#failFrom(thrown, "answer");
      }
    }
    if (this.#state.isFinishing && this.#state.awaitsEnd) this.#advance("end");
    this.#awaitFilters();
  }

  /** Waits for event hooks. A hook may delay the end of a response by up to its timeout. */
  #awaitFilters(): void {
    if (this.#state.isOver || this.tally.hasFinished) return;
    this.#holdingFilter = longestHoldingFilter(this.#call);
    if (this.#holdingFilter) this.#setDeadline(this.#holdingFilter.timeoutMs);
  }

  onContent(): void {
    if (this.#state.isOver) return;
    recordFirstToken(this.#call, this.tally);
    if (!this.response.isCommitted && this.#call.exchange.stream) this.response.commit();
  }

  get isBetweenEvents(): boolean {
    return this.#transcoder?.isBetweenEvents ?? true;
  }

  get isOver(): boolean {
    return this.#state.isOver;
  }

  onFinishing(reason: FinishReason): void {
    if (this.#state.isFinishing || this.#state.isOver) return;
    this.#advance("finish");
    this.tally.hasFinished = true;
    this.onContent();
    this.response.holdUntilSettled();
    this.#call.exchange.state.outcome.finish = reason;
    const row = settleCall(this.tally, { finish: reason });
    this.#setDeadline(SETTLE_TIMEOUT_MS);
    void row.then(() => this.#onRowDurable());
  }

  onFinished(): void {
    if (!this.#state.isOver) this.#advance("end");
  }

  stopWith({ kind, message, ...more }: Fault): void {
    if (!this.#state.isOver) this.onError(createFault(kind, message, more));
  }

  onTick(now: number): void {
    if (!this.#state.isFinishing && now - this.#progressAt > PROGRESS_MS && this.tally.isAccepted) {
      this.#progressAt = now;
      this.#call.exchange.state.gen.ledger.progress(this.tally.progress(wallClock()));
    }
    if (now < this.#deadline) return;
    if (this.#state.awaitsRow) return this.#onRowDurable();
    if (this.#call.exchange.state.connection.isDisconnected)
      return this.onError(createFault("canceled", CLIENT_DISCONNECTED));
    if (this.#holdingFilter)
      return this.tally.hasFinished
        ? undefined
        : this.onError(createHookTimeout(this.#holdingFilter, "event"));
    this.#failFrom(
      createFault("timeout", "The provider exceeded the time limit.", { code: "upstream_timeout" }),
      "target",
    );
  }

  /** The row is durable, or the client has waited for it long enough. */
  #onRowDurable(): void {
    if (!this.#state.awaitsRow) return;
    this.response.onSettled();
    this.#advance("row");
    if (this.#state.awaitsUpstream) this.#setDeadline(LINGER_MS);
  }

  /**
   * Handles an error. Before content, another candidate may be tried. After content, the stream
   * ends with an error in the client's protocol, and the ledger row records the part that was sent.
   */
  onError(problem: unknown): void {
    if (this.#state.isOver) return;
    const x = this.#call.exchange;
    if (this.#state.isFinishing) {
      this.#advance("give_up");
      return this.#response?.abort(createFault("canceled", "given up"));
    }
    // The state changes before the provider's response is aborted, because the abort immediately
    // reports another error to this object.
    this.#advance("fail");
    this.#response?.abort(createFault("canceled", "given up"));
    if (!this.response.isCommitted || !x.stream || x.state.connection.isDisconnected)
      return this.#reject(problem);
    const failure = getFault(problem) ?? logInternalError(this.#call, problem);
    x.state.outcome.fault = failure;
    const row = settleCall(this.tally, { fault: failure });
    this.#call.cancel(createFault("canceled", "given up"));
    const errorSent = waitForRow(row).then(() =>
      this.#sendError(toClientFault(x.state.gen, failure)),
    );
    errorSent.then(this.#resolve, this.#reject);
  }

  #sendError(failure: Fault): void {
    try {
      this.response.failWith(() => this.#transcoder?.writeFault(failure));
    } catch (problem) {
      logInternalError(this.#call, problem);
    }
  }

  #onDisconnect(): void {
    if (this.#state.isOver) return;
    this.response.mute();
    if (this.#state.isFinishing) return;
    if (this.#call.candidate.mounted.provider.onDisconnect === "drain" && this.tally.isAccepted)
      return this.#setDeadline(DRAIN_MS);
    this.onError(createFault("canceled", CLIENT_DISCONNECTED));
  }

  #setDeadline(ms: number): void {
    const { timerWheel } = this.#call.exchange.state.gen;
    timerWheel.add(this);
    this.#deadline = performance.now() + ms;
  }

  #advance(event: ResponseEvent): void {
    this.#state = this.#state.after(event);
    if (!this.#state.isOver) return;
    this.#call.exchange.state.gen.timerWheel.remove(this);
    if (this.#state.name === "failed") return;
    this.response.end();
    this.#resolve();
  }
}

// The states of one call's response, from the provider's first byte to the client's last. If a
// failure occurs before the finish event, the call is rejected, so that another candidate may serve
// the request or the client receives an error. After the finish event, the response is complete
// when the ledger row is durable, the client's end is written, and the provider's message has ended,
// in any order. Each state after the finish event is named after
// the conditions that are not yet met.

/**
 * Event of a response.
 *
 * - `finish`: the finish event arrived, and the ledger row is being written
 * - `row`: the row is durable, or the client has waited for it long enough
 * - `end`: all data for the client is written
 * - `upstream`: the provider's message has ended
 * - `give_up`: an error after the finish event; the response then only waits for the row
 * - `fail`: an error before the finish event
 */
export type ResponseEvent = "finish" | "row" | "end" | "upstream" | "give_up" | "fail";

type Transitions = { readonly [E in ResponseEvent]?: StateName };

const TRANSITIONS = {
  streaming: { finish: "row+end+upstream", upstream: "held", fail: "failed" },
  /** The provider's message has ended, but a hook or an image delays the finish event. */
  held: { finish: "row+end", upstream: "held", fail: "failed" },
  "row+end+upstream": {
    row: "end+upstream",
    end: "row+upstream",
    upstream: "row+end",
    give_up: "row",
  },
  "row+end": { row: "end", end: "row", upstream: "row+end", give_up: "row" },
  "row+upstream": { row: "upstream", end: "row+upstream", upstream: "row", give_up: "row" },
  "end+upstream": { end: "upstream", upstream: "end", give_up: "complete" },
  row: { row: "complete", end: "row", upstream: "row", give_up: "row" },
  end: { end: "complete", upstream: "end", give_up: "complete" },
  upstream: { end: "upstream", upstream: "complete", give_up: "complete" },
  complete: {},
  failed: {},
} as const satisfies { readonly [name: string]: { readonly [E in ResponseEvent]?: string } };

type StateName = keyof typeof TRANSITIONS;

/**
 * One state of a response. All responses share the state objects, so reading a state is not a cache
 * miss.
 */
export class ResponseState {
  readonly name: StateName;
  /** Whether later events of the response are ignored. */
  readonly isOver: boolean;
  /** Whether the finish event has arrived and the response has not ended. */
  readonly isFinishing: boolean;
  readonly awaitsRow: boolean;
  /** Whether the end of the response still has to be written to the client. */
  readonly awaitsEnd: boolean;
  /** Whether more of the provider's message may come. */
  readonly awaitsUpstream: boolean;

  constructor(name: StateName) {
    const parts = name.split("+");
    this.name = name;
    this.isOver = name === "complete" || name === "failed";
    this.isFinishing = !this.isOver && name !== "streaming" && name !== "held";
    this.awaitsRow = parts.includes("row");
    this.awaitsEnd = parts.includes("end") || name === "streaming" || name === "held";
    this.awaitsUpstream = parts.includes("upstream") || name === "streaming";
  }

  /** Returns the state after the event. Throws if the event is impossible in this state. */
  after(event: ResponseEvent): ResponseState {
    const transitions: Transitions = TRANSITIONS[this.name];
    const next = transitions[event];
    if (next === undefined)
      throw new Error(`Impossible event of a response: ${event} in the state ${this.name}.`);
    return STATES[next];
  }
}
const STATES = Object.fromEntries(
  Object.keys(TRANSITIONS).map((name) => [name, new ResponseState(name as StateName)]),
) as { readonly [N in StateName]: ResponseState };

/** The initial state of every response. */
export const STREAMING = STATES.streaming;
