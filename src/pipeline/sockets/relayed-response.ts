// One response of a relayed WebSocket. It is a separate request with its own permit, record, and
// ledger rows. The meter of the socket reports the data that the messages contain.
import { isPromise } from "../../lib/is-promise.ts";
import { nextRequestId } from "../../lib/request-id.ts";
import { ERRORS, getFault, type Fault } from "../../model/error.ts";
import type { FinishReason, ModelEvent, UsageReport } from "../../model/event.ts";
import type { Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import type { MeteredResponse, ResponseStart } from "../../plugin/socket.ts";
import { HostCall, recordSentCall } from "../exchange/call.ts";
import { HostExchange } from "../exchange/exchange.ts";
import { VirtualResponse } from "../exchange/virtual-connection.ts";
import type { HostCandidate, MountedSocket } from "../exchange/mounted.ts";
import { runSequentially } from "../hooks/hook-runner.ts";
import { CallTally } from "../metering/call-tally.ts";
import { reserveCall } from "../metering/reserve-call.ts";
import { settleCall, waitForRow } from "../metering/settle-call.ts";
import { pinPolicy } from "../privacy/zero-retention.ts";
import {
  assertFiltersAvailable,
  createEventWatchers,
  type EventWatchers,
  type FilterSink,
} from "../response/event-filters.ts";
import type { Resolution } from "../routing/resolution.ts";
import { admit } from "../stages/admit.ts";
import { settle } from "../stages/settle.ts";

/** Properties that all responses of a connection have in common. */
export interface RelayTarget {
  /** The handshake, which was admitted. */
  readonly handshake: HostExchange;
  readonly socket: MountedSocket;
  readonly candidate: HostCandidate;
  readonly resolution: Resolution;
  /** Model name as the client wrote it. */
  readonly model: string;
  /** Settings that the client's credential determines. */
  readonly session: Opt<JsonObject>;
}

/** Notifications to the connection. */
export interface ResponseOwner {
  /**
   * Called when the response is refused. `isRunning`: the provider has already begun the response.
   */
  onRefused(response: RelayedResponse, fault: Fault, isRunning: boolean): void;
  /** A watch hook stops the response. */
  onStopped(response: RelayedResponse, fault: Fault): void;
  /** The response has ended, and is being settled: `settled` is set. */
  onEnding(response: RelayedResponse): void;
  /** The response was settled or refused, and occupies nothing any more. */
  onEnded(response: RelayedResponse): void;
}

export class RelayedResponse implements MeteredResponse {
  state: "reserving" | "running" | "ended" = "reserving";
  /** Resolves when the response is reserved or refused. Never rejects. */
  reserved: Promise<void> = Promise.resolve();
  /** Whether the provider knows of the response. */
  isSent = false;
  /** Fault with which the response was refused. */
  refusal: Fault | undefined;
  /** Resolves when the settle row is durable. Never rejects. Undefined: the response has not ended. */
  settled: Promise<void> | undefined;
  readonly #x: HostExchange;
  readonly #call: HostCall;
  readonly #tally: CallTally;
  readonly #owner: ResponseOwner;
  readonly #target: RelayTarget;
  readonly #start: ResponseStart;
  /** Settles the response as soon as the reserve row is durable. */
  #end: (() => Promise<void>) | undefined;
  #watchers: EventWatchers | undefined;
  /** Events of the message that began the response, which is held until the response is reserved. */
  #early: ModelEvent[] | undefined = [];
  #wasStopped = false;

  constructor(target: RelayTarget, start: ResponseStart, owner: ResponseOwner) {
    this.#start = start;
    this.#owner = owner;
    this.#target = target;
    this.#x = createExchange(target, start);
    const candidate =
      start.model === undefined ? target.candidate : otherModel(target, start.model);
    this.#call = new HostCall(this.#x, candidate, 1);
    this.#call.usesSocket = true;
    this.#tally = new CallTally(this.#call);
    this.#x.state.calls.last = this.#call;
  }

  get exchange(): HostExchange {
    return this.#x;
  }

  /** Reserves the response. `isRequested`: a message of the client requests the response. */
  begin(isRequested: boolean): void {
    this.isSent = !isRequested;
    this.reserved = this.#reserve(isRequested);
  }

  reportStart(id: string): void {
    this.#tally.recordAccepted(id);
  }

  reportContent(bytes = 0): void {
    this.#tally.textBytes += bytes;
    this.#tally.firstTokenMs ??= Math.round(performance.now() - this.#call.startedAt);
  }

  reportEstimate(usage: Usage): void {
    this.#tally.observedUsage = usage;
  }

  reportEvent(event: ModelEvent): void {
    if (this.#early) this.#early.push(event);
    else this.#watchers?.observe(event);
  }

  reportUsage(seen: UsageReport): void {
    this.#tally.addReport(seen);
  }

  reportFinish(reason: FinishReason): void {
    this.#tally.hasFinished = true;
    this.#x.state.outcome.finish = reason;
    this.#finish(() => settleCall(this.#tally, { finish: reason }));
  }

  reportFailure(fault: Fault): void {
    this.#x.state.outcome.fault ??= fault;
    this.#finish(() => settleCall(this.#tally, { fault }));
  }

  /** Ends a response that is still open when its connection is cut. */
  cut(fault: Fault): void {
    if (this.state === "ended") return;
    // The provider may have begun a forwarded response, even if it has not reported this.
    this.#tally.isAccepted ||= this.isSent;
    this.reportFailure(fault);
  }

  async #reserve(isRequested: boolean): Promise<void> {
    const x = this.#x;
    try {
      await this.#admit();
      if (isRequested) {
        const { permit } = x.state.admission;
        permit.assertNotOverloaded();
        const queued = permit.acquire();
        if (queued) await queued;
      }
      await this.#inspect();
      pinPolicy(this.#call);
      assertFiltersAvailable(this.#call);
      this.#watchers = createEventWatchers(this.#call, this.#sink);
      await reserveCall(this.#call, null, this.#tally);
    } catch (problem) {
      const fault = getFault(problem) ?? this.#unexpected(problem);
      this.refusal = fault;
      x.state.outcome.fault = fault;
      if (isRequested) return this.#refuse();
      // The provider has begun the response, so it is billed although it was refused.
      await reserveCall(this.#call, null, this.#tally, { isRunning: true }).catch(
        (error: unknown) =>
          x.state.gen.log.error({ request: x.id, err: error }, "running response not reserved"),
      );
      this.#owner.onRefused(this, fault, true);
    }
    // All output of the model is relayed, so no output is hidden.
    this.#tally.mayHideReasoning = false;
    this.#tally.sentAt = performance.now();
    recordSentCall(this.#call);
    this.#replayEarly();
    if (this.state === "reserving") this.state = "running";
    this.#settleIfEnded();
  }

  /** Passes on the events that arrived before the hooks were ready. */
  #replayEarly(): void {
    for (const event of this.#early ?? []) this.#watchers?.observe(event);
    this.#early = undefined;
  }

  /** Admits the response as a request, because the key may have changed since the handshake. */
  async #admit(): Promise<void> {
    const { handshake } = this.#target;
    try {
      const admitting = admit(this.#x);
      if (isPromise(admitting)) await admitting;
    } finally {
      // A running response is billed to the key, even if the key has been revoked.
      if (!this.#x.identity) this.#x.identify(handshake.identity!);
    }
    if (handshake.privacy !== "off") this.#x.requirePrivacy(handshake.privacy);
    this.#x.addLabel("session", handshake.id);
  }

  async #inspect(): Promise<void> {
    const { request } = this.#start;
    if (!request) return;
    const { frontend, body } = this.#x.state;
    body.rewritten = request;
    await runSequentially(frontend.hooks.lists.inspect, this.#x.model, (hook) =>
      hook.run(request, this.#x),
    );
  }

  #unexpected(err: unknown): Fault {
    this.#x.state.gen.log.error({ request: this.#x.id, err }, "socket response failed");
    return { kind: "internal", message: "" };
  }

  #refuse(): void {
    this.state = "ended";
    this.#close();
    this.#owner.onRefused(this, this.refusal!, false);
  }

  #finish(end: () => Promise<void>): void {
    if (this.state === "ended") return;
    const wasReserving = this.state === "reserving";
    this.state = "ended";
    const { promise, resolve } = Promise.withResolvers<void>();
    this.settled = promise;
    this.#owner.onEnding(this);
    this.#end = async () => {
      await waitForRow(end());
      this.#close();
      resolve();
    };
    if (!wasReserving) this.#settleIfEnded();
  }

  #settleIfEnded(): void {
    const end = this.#end;
    this.#end = undefined;
    if (end) void end();
  }

  /** Writes the request record and releases what the response occupied. */
  #close(): void {
    const x = this.#x;
    const { connection, outcome } = x.state;
    if (outcome.fault) connection.res.statusCode = ERRORS[outcome.fault.kind][0];
    connection.res.end();
    const settling = settle(x);
    const release = () => {
      x.state.admission.permit.onPipelineEnd();
      x.state.admission.permit.onResponseEnd();
      this.#owner.onEnded(this);
    };
    if (settling) void settling.then(release, release);
    else release();
  }

  /** The part of a response that watch hooks use. */
  get #sink(): FilterSink {
    const isOver = () => this.#wasStopped || (this.state === "ended" && !this.#early);
    const stop = (fault: Fault) => {
      if (isOver()) return;
      this.#wasStopped = true;
      this.#x.state.outcome.fault = fault;
      this.#owner.onStopped(this, fault);
    };
    return {
      tally: this.#tally,
      get isOver() {
        return isOver();
      },
      stopWith: stop,
      onError: (problem) => stop(getFault(problem) ?? this.#unexpected(problem)),
    };
  }
}

/** Creates the request of a response, with the identity and privacy of the handshake. */
function createExchange(target: RelayTarget, start: ResponseStart): HostExchange {
  const { handshake, socket, model, resolution } = target;
  const { req } = handshake.state.connection;
  const { action } = socket.route as { action: string };
  const x = new HostExchange({
    id: nextRequestId(),
    gen: handshake.state.gen,
    route: {
      frontend: socket.frontend,
      route: { method: "GET", path: socket.path, actionType: "generate", action },
      path: socket.path,
    },
    req,
    res: new Discard().asServerResponse,
    params: handshake.params,
    session: handshake,
    receive: (exchange) => Promise.resolve(exchange),
  });
  x.state.routing.resolution = resolution;
  x.state.body.received = {
    raw: NO_BYTES,
    inputBytes: start.inputBytes ?? 0,
    spans: null,
    multipart: undefined,
    body: { model },
    facts: { references: [], ...(start.facts ?? { features: [] }) },
    model,
    pinnedTarget: undefined,
    stream: true,
    actionType: "generate",
    action,
    originalBody: {},
    edits: undefined,
    record: undefined,
    answer: undefined,
    background: undefined,
    continues: undefined,
  };
  return x;
}

const NO_BYTES = Buffer.alloc(0);

/** The HTTP response of a response of a socket. Nothing is written to it. */
class Discard extends VirtualResponse {
  override headersSent = true;
  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
  }
}

/** Returns the candidate for another model of the same provider, such as one that transcribes. */
export function otherModel({ candidate, handshake }: RelayTarget, model: string): HostCandidate {
  const { gen } = handshake.state;
  const found = gen.catalog.entriesOf(candidate.provider).get(model);
  return {
    ...candidate,
    id: `${candidate.provider}/${model}`,
    model,
    info: found?.info ?? { model, operation: candidate.info.operation },
  };
}
