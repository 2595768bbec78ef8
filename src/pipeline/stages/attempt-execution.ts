// Executes one call, from its hooks to its bill: prepare, reserve, send, present, close. Each call
// has one reserve row before it is sent and one settle row afterwards.
import { fail, createFault, getFault, type Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { FailurePoint } from "../../model/call-retry.ts";
import type { Usage } from "../../model/usage.ts";
import type { SyntheticResponse, UpstreamResponse } from "../../plugin/call.ts";
import type { AttemptResult } from "../../plugin/middleware.ts";
import type { ClientResponse } from "../response/client-response.ts";
import type { ResponseSource } from "../response/transcode.ts";
import {
  canReplay,
  HookProvidedResponse,
  ProviderResponse,
  sendWholeResponse,
  encodeSyntheticResponse,
} from "../response/provider-response.ts";
import { yieldForLargeBody } from "../../lib/yield.ts";
import { recordSentCall, type HostCall } from "../exchange/call.ts";
import { assertFiltersAvailable } from "../response/event-filters.ts";
import { clientKey } from "../exchange/client-retries.ts";
import { pinPolicy } from "../privacy/zero-retention.ts";
import { classifyAttemptResult, type HookReply } from "../hooks/hook-results.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import {
  waitForRow,
  settleCall,
  settleHookResponse,
  createUncalledRecord,
} from "../metering/settle-call.ts";
import { reserveUnbilled } from "../metering/charges.ts";
import { reserveCall } from "../metering/reserve-call.ts";
import { CallTally } from "../metering/call-tally.ts";
import { recordFailure, toProviderFault } from "../upstream/provider-failure.ts";
import { encodeRequest, createResponseHeaders } from "../upstream/encode-request.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import { checkBeforeEncoding } from "../upstream/outgoing-checks.ts";
import { receiveLineReply, sendRequest } from "../upstream/send-request.ts";

/** The stage that delivers a response up to the client's last byte. */
export interface PresentStage {
  (call: HostCall, source: ResponseSource, answer: ClientResponse, tally: CallTally): Promise<void>;
}

/** Terms that the client's headers have already stated, and the candidate that they describe. */
export interface StatedTerms {
  warnings: string | undefined;
  candidate: HostCandidate;
}

export class AttemptExecution {
  readonly #call: HostCall;
  readonly #response: ClientResponse;
  readonly #tally: CallTally;
  readonly #statedTerms: StatedTerms | undefined;
  #providerReply: Promise<UpstreamResponse> | undefined;
  #isReserved = false;
  #source: ResponseSource | undefined;
  #isClosed = false;

  constructor(call: HostCall, answer: ClientResponse, head: StatedTerms | undefined) {
    this.#call = call;
    this.#response = answer;
    this.#tally = new CallTally(call);
    this.#statedTerms = head;
  }

  get failurePoint(): FailurePoint {
    return this.#tally.failurePoint;
  }

  /**
   * Whether the call was sent and no response has arrived: no content of a stream, or no headers of
   * a non-streaming response.
   */
  get isAwaitingContent(): boolean {
    const { sentAt, firstTokenMs, headersMs } = this.#tally;
    const nothing = firstTokenMs === undefined && (this.#call.stream || headersMs === undefined);
    return sentAt !== undefined && nothing && !this.#isClosed;
  }

  /**
   * Runs the call. Resolves when the response is delivered and billed. Rejects if another candidate
   * may be tried.
   */
  async run(present: PresentStage): Promise<void> {
    const call = this.#call;
    const { gen, outcome } = call.exchange.state;
    try {
      // The result of a line has arrived, so no hook can replace it.
      const got = call.exchange.jobLine?.reply
        ? await this.#callProviderOnce()
        : await this.#runHooksFrom(0);
      const reply = got instanceof ProviderResponse ? got : await this.#toReply(got, 0);
      if (reply instanceof HookProvidedResponse) return await this.#sendHookReply(reply.given);
      const source =
        this.#source ?? fail("internal", "A hook returned a response that next() did not return.");
      const upstream = source.type === "http" ? source.response : undefined;
      this.#response.begin(upstream, createResponseHeaders(call, reply.headers));
      await present(call, source, this.#response, this.#tally);
    } catch (problem) {
      const staysOpen = call.exchange.jobLine?.isRepeatedAfter?.(problem);
      await this.#close(getFault(problem) ?? { kind: "internal", message: "" }, staysOpen);
      throw problem;
    }
    // The client's response has ended after a truncation, but the call still counts as a failure.
    if (outcome.fault) recordFailure(call, outcome.fault);
    else if (!call.hasReportedSuccess && !call.exchange.jobLine?.reply)
      gen.targetHealth.recordSuccess(call.candidate, call.startedAt, clientKey(call.exchange));
  }

  /** Runs the attempt hooks from this index on. The last hook's `next()` calls the provider. */
  #runHooksFrom(from: number): Promise<AttemptResult> {
    const at = this.#nextApplicable(from);
    if (at < 0) return this.#callProviderOnce();
    const hook = this.#call.exchange.state.frontend.hooks.lists.attempt[at]!;
    return hook.run(this.#call, () => this.#runInner(at + 1));
  }

  /** Runs the inner hooks. An outer hook receives their result as a reply, whatever its type. */
  #runInner(from: number): Promise<UpstreamResponse> {
    if (this.#nextApplicable(from) < 0) return this.#callProviderOnce();
    return this.#runHooksFrom(from).then((got) =>
      got instanceof ProviderResponse ? got : this.#toReply(got, from),
    );
  }

  /** Returns the index of the next attempt hook that applies to this call, or -1. */
  #nextApplicable(from: number): number {
    const call = this.#call;
    const { attempt } = call.exchange.state.frontend.hooks.lists;
    for (let i = from; i < attempt.length; i++)
      if (attempt[i]!.appliesTo(call.exchange.model, call.provider)) return i;
    return -1;
  }

  /**
   * Converts the result of the hooks from this index on to a reply. A recording that does not match
   * is ignored, and the provider is called unless it already was.
   */
  #toReply(got: AttemptResult, from: number): UpstreamResponse | Promise<UpstreamResponse> {
    const call = this.#call;
    const given = classifyAttemptResult(got);
    if (given.type === "upstream") return given.reply;
    if (given.type === "synthetic" || canReplay(given.recorded, call)) {
      const hook = call.exchange.state.frontend.hooks.lists.attempt[this.#nextApplicable(from)]!;
      hook.guard?.record(call.exchange, "responded");
      return new HookProvidedResponse(given, this.#response, this.#tally);
    }
    const { operation, protocol, stream } = given.recorded;
    call.exchange.state.gen.log.warn(
      { request: call.exchange.id, recorded: [operation, protocol, stream] },
      "recorded response does not fit request, not replayed",
    );
    return this.#providerReply ?? this.#callProviderOnce();
  }

  #callProviderOnce(): Promise<UpstreamResponse> {
    if (!this.#providerReply && !this.#isClosed)
      return (this.#providerReply = this.#callProvider());
    const why = this.#providerReply
      ? "twice: the host owns retries"
      : "after the hook has answered";
    return Promise.reject(createFault("internal", `next() ${why}.`));
  }

  async #callProvider(): Promise<UpstreamResponse> {
    const call = this.#call;
    const { gen, connection, body } = call.exchange.state;
    pinPolicy(call);
    assertFiltersAvailable(call);
    const began = performance.now();
    const before = yieldForLargeBody(body.received!.inputBytes);
    if (before) await before;
    const out = this.#encode();
    const after = yieldForLargeBody(body.received!.inputBytes);
    if (after) await after;
    if (this.#statedTerms) assertSameTerms(call, this.#statedTerms);
    const reply = call.exchange.jobLine?.reply;
    await reserveCall(call, out, this.#tally, { isRunning: reply !== undefined });
    gen.admissionQueue.recordOverhead(performance.now() - began);
    this.#onReserved();
    const { backgroundRequest } = call.exchange;
    if (backgroundRequest) await backgroundRequest.accept();
    if (connection.isDisconnected) fail("canceled", "The client disconnected.");
    if (call.cancelReason) throw call.cancelReason;
    this.#tally.sentAt = performance.now();
    recordSentCall(call);
    // Used for the rare responses whose headers are sent before the provider's arrive.
    this.#response.begin(undefined, () => createResponseHeaders(call, {}));
    if (!out) return this.#runNative();
    const { transport } = call.candidate.mounted.endpoint;
    const response = reply
      ? receiveLineReply(call, reply)
      : await sendRequest(call, transport!, out);
    // The provider has accepted the work, regardless of what a hook does with the response's
    // headers.
    this.#tally.isAccepted = true;
    this.#tally.headersMs = Math.round(performance.now() - call.startedAt);
    this.#source = { type: "http", response };
    return new ProviderResponse(response, this.#response, this.#tally);
  }

  /** Encodes the request. Returns null for an endpoint that sends requests itself. */
  #encode(): OutgoingRequest | null {
    const { endpoint } = this.#call.candidate.mounted;
    if (endpoint.transport)
      return encodeRequest(this.#call, endpoint.protocol!, endpoint.transport.definition);
    checkBeforeEncoding(this.#call);
    return null;
  }

  /** Notifies other parts of the gateway when the reserve row is durable. */
  #onReserved(): void {
    this.#isReserved = true;
    const call = this.#call;
    const { gen, body } = call.exchange.state;
    if (call.info.retires !== undefined) gen.retiringModels.recordUse(call.id, call.info.retires);
    const record = body.received!.record;
    if (!record) return;
    new ProviderResponse({ status: 200, headers: {} }, this.#response, this.#tally)
      .recordResponse(record.maxBytes)
      .then((got) => got && record.onRecorded(got))
      .catch((err: unknown) =>
        gen.log.error({ request: call.exchange.id, err }, "frontend rejected recorded response"),
      );
  }

  #runNative(): UpstreamResponse {
    const call = this.#call;
    const x = call.exchange;
    const { endpoint, credential } = call.candidate.mounted;
    const native = endpoint.definition;
    if (!("run" in native))
      return fail("internal", "An endpoint without a protocol must implement run.");
    const uncapped = x.state.body.rewritten ?? x.request;
    const request = (
      call.outputCap === undefined
        ? uncapped
        : x.operationSpec.withOutputCap!(uncapped, call.outputCap)
    ) as never;
    // The endpoint sends requests itself. The provider has accepted nothing until the endpoint
    // reports otherwise.
    call.failurePoint = "rejected";
    try {
      const events = native.run(request, call, credential.fields);
      this.#source = {
        type: "events",
        events: this.#statedTerms ? this.#withStatedTerms(events, this.#statedTerms) : events,
      };
    } catch (problem) {
      throw toProviderFault(call, problem);
    }
    return new ProviderResponse({ status: 200, headers: {} }, this.#response, this.#tally);
  }

  /**
   * Checks the terms repeatedly while a native endpoint runs, because it can report losses at any
   * time. Until content is sent, they must match the terms that the client has received.
   */
  async *#withStatedTerms(
    events: AsyncIterable<ModelEvent>,
    head: StatedTerms,
  ): AsyncGenerator<ModelEvent> {
    for await (const event of events) {
      if (!this.#response.isCommitted) assertSameTerms(this.#call, head);
      yield event;
    }
  }

  /**
   * Sends the response that a hook provided. If the provider was called as well, its call is
   * canceled and billed for the work done.
   */
  async #sendHookReply(given: HookReply): Promise<void> {
    const { exchange: x } = this.#call;
    if (x.backgroundRequest) await x.backgroundRequest.accept();
    if (given.type === "synthetic") {
      const usage = await this.#settleSynthetic(given.synthetic);
      const body = encodeSyntheticResponse(this.#call, given.synthetic, usage);
      this.#response.begin(undefined, createResponseHeaders(this.#call, {}));
      return sendWholeResponse(this.#response, body);
    }
    x.state.outcome.cached = true;
    this.#response.begin(undefined, createResponseHeaders(this.#call, {}));
    this.#response.setContentType(given.recorded.contentType);
    sendWholeResponse(this.#response, given.recorded.body);
    if (!this.#isReserved)
      this.#tally.markSettled(createUncalledRecord(this.#call), Promise.resolve());
    return this.#close(ANSWERED_BY_HOOK);
  }

  /**
   * Writes the ledger row of a response that a hook made, before any byte is sent to the client.
   * Returns the usage in that row.
   */
  async #settleSynthetic({ response }: SyntheticResponse): Promise<Usage> {
    const call = this.#call;
    const { outcome, billing } = call.exchange.state;
    outcome.finish = response.finish.reason;
    if (this.#providerReply) {
      await this.#close(ANSWERED_BY_HOOK);
      if (this.#isReserved) return billing.records.at(-1)!.usage;
    }
    this.#isClosed = true;
    await reserveUnbilled(call);
    await waitForRow(settleHookResponse(this.#tally, response.finish.reason));
    return ZERO_USAGE;
  }

  /** Cancels everything that still runs for the call, and settles its reservation. */
  async #close(failure: Fault, staysOpen = false): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#call.cancel(createFault("canceled", "given up"));
    await this.#providerReply?.catch(() => {});
    if (this.#isReserved && !staysOpen)
      await waitForRow(settleCall(this.#tally, { fault: failure }));
  }
}

const ANSWERED_BY_HOOK: Fault = { kind: "canceled", message: "A hook returned the response." };
/** Usage in the client's response for a call that used nothing. */
const ZERO_USAGE: Usage = { input: 0, output: 0 };

/** Returns the terms that the call's headers contain, or would contain if they were sent now. */
export const statedTermsOf = ({ responseHeaders, candidate }: HostCall): StatedTerms => ({
  warnings: responseHeaders?.["x-tollgate-warnings"],
  candidate,
});

/** Whether this call has the warnings and the policy receipt that the headers state. */
export function hasSameTerms(call: HostCall, head: StatedTerms): boolean {
  const policyKey = ({ provider, protocol, policy }: HostCandidate) =>
    JSON.stringify([provider, protocol, policy.retention, policy.basis, policy.verifiedAt]);
  return (
    call.warningsHeader === head.warnings &&
    (call.exchange.privacy === "off" || policyKey(call.candidate) === policyKey(head.candidate))
  );
}

/**
 * Throws if the response headers already sent do not apply to this call. After they are sent, only
 * a candidate with the same losses may answer. Under privacy, the candidate must also have the same
 * receipt.
 */
function assertSameTerms(call: HostCall, head: StatedTerms): void {
  if (!hasSameTerms(call, head))
    fail(
      "unsupported",
      "Another provider would respond with headers that differ from those already sent.",
      {
        code: "terms_already_sent",
      },
    );
}
