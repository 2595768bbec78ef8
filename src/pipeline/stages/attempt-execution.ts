// One call, from its hooks to its bill: prepared, reserved, sent, presented, closed. One reserve before it, one settle after it.
import { fail, createFault, getFault, type Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { FailurePoint } from "../../model/call-retry.ts";
import type { Usage } from "../../model/usage.ts";
import type { SyntheticResponse, RecordedResponse, UpstreamResponse } from "../../plugin/call.ts";
import type { AttemptResult } from "../../plugin/middleware.ts";
import type { ClientResponse } from "../response/client-response.ts";
import type { ResponseSource } from "../response/transcode.ts";
import {
  canReplay,
  HookProvidedResponse,
  ProviderResponse,
} from "../response/provider-response.ts";
import { sendWholeResponse, encodeSyntheticResponse } from "../response/synthetic-response.ts";
import { yieldForLargeBody } from "../../lib/yield.ts";
import { recordSentCall, type HostCall } from "../exchange/call.ts";
import { assertFiltersAvailable } from "../response/event-filters.ts";
import { clientKey } from "../exchange/client-retries.ts";
import { pinPolicy } from "../privacy/zero-retention.ts";
import { recordHookActivity } from "../hooks/hook-activity.ts";
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
import { recordFailure } from "../upstream/record-failure.ts";
import { encodeRequest, createResponseHeaders } from "../upstream/encode-request.ts";
import type { OutgoingRequest } from "../upstream/outgoing-request.ts";
import { checkBeforeEncoding } from "../upstream/outgoing-checks.ts";
import { toProviderFault } from "../upstream/plugin-errors.ts";
import { sendRequest } from "../upstream/send-request.ts";

/** The station that takes an answer to the client's last byte. */
export interface PresentStage {
  (call: HostCall, source: ResponseSource, answer: ClientResponse, tally: CallTally): Promise<void>;
}

/** What the client's head has said already, and the candidate that it said it of. */
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

  /** It was sent, and nothing of an answer is here: no content of a stream, no head of a whole response. */
  get isAwaitingContent(): boolean {
    const { sentAt, firstTokenMs, headersMs } = this.#tally;
    const nothing = firstTokenMs === undefined && (this.#call.stream || headersMs === undefined);
    return sentAt !== undefined && nothing && !this.#isClosed;
  }

  /** Resolves when the answer has left and is billed; rejects where another candidate may be tried. */
  async run(present: PresentStage): Promise<void> {
    const call = this.#call;
    const state = call.exchange["~"];
    try {
      const got = await this.#runHooksFrom(0);
      const reply = isReply(got) ? got : await this.#toReply(got, 0);
      if (reply instanceof HookProvidedResponse) return await this.#sendHookResult(reply.result);
      const source = this.#source ?? fail("internal", "A hook gave a reply that next() did not.");
      const upstream = "response" in source ? source.response : undefined;
      this.#response.begin(upstream, createResponseHeaders(call, reply.headers));
      await present(call, source, this.#response, this.#tally);
    } catch (problem) {
      await this.#close(getFault(problem) ?? { kind: "internal", message: "" });
      throw problem;
    }
    // What broke off after content is over for the client, and a failure all the same.
    if (state.fault) recordFailure(call, state.fault);
    else if (!call.hasReportedSuccess)
      state.gen.targetHealth.recordSuccess(
        call.candidate,
        call.startedAt,
        clientKey(call.exchange),
      );
  }

  /** The attempt hooks from this one on; the last one's `next()` asks the provider. */
  #runHooksFrom(from: number): Promise<AttemptResult> {
    const at = this.#nextApplicable(from);
    if (at < 0) return this.#callProviderOnce();
    const hook = this.#call.exchange["~"].frontend.hookChain.attempt[at]!;
    return hook.run(this.#call, () => this.#runInner(at + 1));
  }

  /** For a hook around others what they answer is a reply, whatever it was. */
  #runInner(from: number): Promise<UpstreamResponse> {
    if (this.#nextApplicable(from) < 0) return this.#callProviderOnce();
    return this.#runHooksFrom(from).then((got) => (isReply(got) ? got : this.#toReply(got, from)));
  }

  /** The place of the next attempt hook that has to do with this call; -1: none. */
  #nextApplicable(from: number): number {
    const call = this.#call;
    const { attempt } = call.exchange["~"].frontend.hookChain;
    for (let i = from; i < attempt.length; i++)
      if (attempt[i]!.appliesTo(call.exchange.model, call.provider)) return i;
    return -1;
  }

  /** Of the hook from this one on. A recording that does not fit is none: the provider is asked, if it was not. */
  #toReply(
    got: Exclude<AttemptResult, UpstreamResponse>,
    from: number,
  ): UpstreamResponse | Promise<UpstreamResponse> {
    const call = this.#call;
    if (typeof got !== "object" || got === null || !("response" in got || "body" in got))
      return fail("internal", "An attempt gave no answer.");
    if ("response" in got || canReplay(got, call)) {
      const { id } = call.exchange["~"].frontend.hookChain.attempt[this.#nextApplicable(from)]!;
      recordHookActivity(call.exchange, id, "attempt", "responded");
      return new HookProvidedResponse(got, this.#response, this.#tally);
    }
    call.exchange["~"].gen.log.warn(
      { request: call.exchange.id, recorded: [got.operation, got.protocol, got.stream] },
      "a recorded answer does not fit the request that it was given to, and was not replayed",
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
    const state = call.exchange["~"];
    pinPolicy(call);
    assertFiltersAvailable(call);
    const began = performance.now();
    const before = yieldForLargeBody(state.receivedBody!.inputBytes);
    if (before) await before;
    const out = this.#encode();
    const after = yieldForLargeBody(state.receivedBody!.inputBytes);
    if (after) await after;
    if (this.#statedTerms) assertSameTerms(call, this.#statedTerms);
    await reserveCall(call, out, this.#tally);
    state.gen.admissionQueue.recordOverhead(performance.now() - began);
    this.#onReserved();
    if (state.isDisconnected) fail("canceled", "The client went away.");
    if (call.cancelReason) throw call.cancelReason;
    this.#tally.sentAt = performance.now();
    recordSentCall(call);
    // Few heads leave before the provider's.
    this.#response.begin(undefined, () => createResponseHeaders(call, {}));
    if (!out) return this.#runNative();
    const { transport } = call.candidate["~"].endpoint;
    const response = await sendRequest(call, transport!, out);
    // It has taken the work on, whatever a hook thinks of its head.
    this.#tally.isAccepted = true;
    this.#tally.headersMs = Math.round(performance.now() - call.startedAt);
    this.#source = { response };
    return new ProviderResponse(response, this.#response, this.#tally);
  }

  /** What leaves; nothing for an endpoint that sends by itself. */
  #encode(): OutgoingRequest | null {
    const { endpoint } = this.#call.candidate["~"];
    if (endpoint.transport)
      return encodeRequest(this.#call, endpoint.protocol!, endpoint.transport.definition);
    checkBeforeEncoding(this.#call);
    return null;
  }

  /** The row is durable: what else has to know of the call is told. */
  #onReserved(): void {
    this.#isReserved = true;
    const call = this.#call;
    const { gen, receivedBody } = call.exchange["~"];
    if (call.info.retires !== undefined) gen.retiringModels.recordUse(call.id, call.info.retires);
    const record = receivedBody!.record;
    if (!record) return;
    new ProviderResponse({ status: 200, headers: {} }, this.#response, this.#tally)
      .recordResponse(record.maxBytes)
      .then((got) => got && record.onRecorded(got))
      .catch((err: unknown) =>
        gen.log.error(
          { request: call.exchange.id, err },
          "a frontend could not take a recorded answer",
        ),
      );
  }

  #runNative(): UpstreamResponse {
    const call = this.#call;
    const x = call.exchange;
    const { endpoint, credential } = call.candidate["~"];
    const native = endpoint.definition;
    if (!("run" in native)) return fail("internal", "An endpoint without a wire must run.");
    const said = x["~"].rewrittenRequest ?? x.request;
    const request = (
      call.outputCap === undefined ? said : x.operationSpec.withOutputCap!(said, call.outputCap)
    ) as never;
    // It sends by itself: until it says something, its provider has taken nothing on.
    call.failurePoint = "rejected";
    try {
      const events = native.run(request, call, credential.fields);
      this.#source = {
        events: this.#statedTerms ? this.#withStatedTerms(events, this.#statedTerms) : events,
      };
    } catch (problem) {
      throw toProviderFault(call, problem);
    }
    return new ProviderResponse({ status: 200, headers: {} }, this.#response, this.#tally);
  }

  /** It names its losses while it runs: until content leaves they must be those that the client was told. */
  async *#withStatedTerms(
    events: AsyncIterable<ModelEvent>,
    head: StatedTerms,
  ): AsyncGenerator<ModelEvent> {
    for await (const event of events) {
      if (!this.#response.isCommitted) assertSameTerms(this.#call, head);
      yield event;
    }
  }

  /** What a hook answered. A provider that was asked all the same is given up, and billed for what it did. */
  async #sendHookResult(given: RecordedResponse | SyntheticResponse): Promise<void> {
    const { exchange: x } = this.#call;
    if ("response" in given) {
      const usage = await this.#settleHookResult(given);
      const body = encodeSyntheticResponse(this.#call, given, usage);
      this.#response.begin(undefined, createResponseHeaders(this.#call, {}));
      return sendWholeResponse(this.#response, body);
    }
    x["~"].cached = true;
    this.#response.begin(undefined, createResponseHeaders(this.#call, {}));
    this.#response.setContentType(given.contentType);
    sendWholeResponse(this.#response, given.body);
    if (!this.#isReserved)
      this.#tally.markSettled(createUncalledRecord(this.#call), Promise.resolve());
    return this.#close(ANSWERED_BY_HOOK);
  }

  /** The row of an answer that a hook made, before the client has a byte of it; and the counts that stand on it. */
  async #settleHookResult({ response }: SyntheticResponse): Promise<Usage> {
    const call = this.#call;
    const state = call.exchange["~"];
    state.finishReason = response.finish.reason;
    if (this.#providerReply) {
      await this.#close(ANSWERED_BY_HOOK);
      if (this.#isReserved) return state.callRecords.at(-1)!.usage;
    }
    this.#isClosed = true;
    await reserveUnbilled(call);
    await waitForRow(settleHookResponse(this.#tally, response.finish.reason));
    return ZERO_USAGE;
  }

  /** Nothing goes on behind a call that is over, and what it reserved is settled. */
  async #close(failure: Fault): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#call.cancel(createFault("canceled", "given up"));
    await this.#providerReply?.catch(() => {});
    if (this.#isReserved) await waitForRow(settleCall(this.#tally, { fault: failure }));
  }
}

const ANSWERED_BY_HOOK: Fault = { kind: "canceled", message: "A hook answered." };
/** What a client is shown of a call that used nothing. */
const ZERO_USAGE: Usage = { input: 0, output: 0 };

const isReply = (got: AttemptResult): got is UpstreamResponse =>
  typeof got === "object" && got !== null && "headers" in got;

/** What its head states, or would state if it left now. */
export const statedTermsOf = ({ responseHeaders, candidate }: HostCall): StatedTerms => ({
  warnings: responseHeaders?.["x-tollgate-warnings"],
  candidate,
});

/** Whether this call has the warnings and the receipt that the head states. */
export function hasSameTerms(call: HostCall, head: StatedTerms): boolean {
  const policyKey = ({ provider, protocol, policy }: HostCandidate) =>
    JSON.stringify([provider, protocol, policy.retention, policy.basis, policy.verifiedAt]);
  return (
    call.warningsHeader === head.warnings &&
    (call.exchange.privacy === "off" || policyKey(call.candidate) === policyKey(head.candidate))
  );
}

/** The head has left: only a candidate of which it is true may answer: the same losses, and under privacy the same receipt. */
function assertSameTerms(call: HostCall, head: StatedTerms): void {
  if (!hasSameTerms(call, head))
    fail("unsupported", "Another provider would answer on other terms than those already told.", {
      code: "terms_already_sent",
    });
}
