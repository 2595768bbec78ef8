// What one call used and what it costs: every number that a client reads or the ledger prices comes from here.
import { estimateHold, type HoldRequest, type HoldEstimate } from "../../money/estimate.ts";
import type { FinishReason, ModelEvent, UsageReport } from "../../model/event.ts";
import { BOUNDS } from "../../lib/bounds.ts";
import type { Fault } from "../../model/error.ts";
import { FAILURE_POINTS, type FailurePoint } from "../../model/call-retry.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { Price } from "../../model/facts.ts";
import { inputTokens, outputTokens, UNITS, type Unit, type Usage } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { CallRecord, CallState } from "../../plugin/call.ts";
import type { StoreCommand, Settle } from "../../plugin/store/store.ts";
import { isLocalFault } from "../faults/fault-source.ts";
import { addProviderWait } from "../targets/timeouts.ts";
import type { HostCall } from "../exchange/call.ts";
import {
  addRequestCounts,
  hasTokens,
  isComplete,
  mergeReports,
  addUsage,
  assumeToolRuns,
} from "./usage-counts.ts";
import type { CatalogModels } from "./model-prices.ts";
import { largerCost, CallPricing, type PricedUsage } from "./call-pricing.ts";
import { outputHistoryKey } from "./price-terms.ts";

// The names that a provider reports its counts under.
const isShortEnough = (said: string | undefined): boolean =>
  said === undefined || said.length <= BOUNDS.responseId.max;
/** Names go into a ledger's row as the provider wrote them. A longer one is left out. */
function dropLongNames(seen: UsageReport): UsageReport {
  const { model, tier, size, quality } = seen;
  if (isShortEnough(model) && isShortEnough(tier) && isShortEnough(size) && isShortEnough(quality))
    return seen;
  const kept = (said: string | undefined) => (isShortEnough(said) ? said : undefined);
  return {
    ...seen,
    model: kept(model),
    tier: kept(tier),
    size: kept(size),
    quality: kept(quality),
  };
}

/**
 * For an answer that no upstream has counted. Ordinary text has more than three bytes a token, so the guess is not too low. Text
 * that is made to be dear has fewer ("a b c" has two), and is billed for less. A hard budget holds all the same, because its hold
 * counts every token that there may be.
 */
const BYTES_PER_TOKEN = 3;
/**
 * What upstream may make until its next report: so many seconds at its pace so far, and at least some hundred tokens. After a
 * crash a call is billed from the last report, and should not be billed for less than the provider will.
 */
const UNREPORTED_OUTPUT = { seconds: 2.5, tokens: 256 };
/**
 * Work that does not pass by here (hidden thought, an answer that comes whole) is bounded by the request's own limit, and by time:
 * no provider writes faster than this many tokens a second (the fastest advertise about 3,000).
 */
const MAX_TOKENS_PER_SECOND = 4_000;
/** Until upstream has noticed that its connection is closed. */
const CANCEL_NOTICE_SECONDS = 0.5;
/** Beyond this a count is a mistake of the provider's. */
const MAX_COUNT = 100_000_000;
/** And beyond a million dollars an amount; a ledger would refuse the whole bill for one that it cannot hold. */
const MAX_COST_NANO = 10n ** 15n;

export class CallTally {
  readonly call: HostCall;
  /** Upstream has taken the work on: from here a failure is estimated, never void. */
  isAccepted = false;
  /** The finish has been seen: whatever goes wrong upstream after it changes nothing. */
  hasFinished = false;
  /** It was ended here before upstream had counted it: upstream may have made more than has come by. */
  wasStoppedEarly = false;
  upstreamId: string | undefined;
  /** Text that came by, for estimates. */
  textBytes = 0;
  /** Text that upstream has sent, though a stage may have kept it from passing. */
  receivedTextBytes = 0;
  /** All that came by: the estimate of a relay that does not say how much of it is text. */
  forwardedBytes = 0;
  /** A relay that does not say so has seen content. */
  hasUnmeasuredContent = false;
  inputEstimate = 0;
  readonly pricing: CallPricing;
  holdNano: bigint | null = null;
  #holdRequest: HoldRequest | undefined;
  /** Output tokens that there can be at most. */
  #maxOutput = Infinity;
  /** The same where the request or the model's facts say so; otherwise without a bound. */
  #knownMaxOutput = Infinity;
  /** The model may think, and what it thinks need not pass by here. */
  mayHideReasoning = false;
  /** When the provider was asked, by the process's clock. */
  sentAt: number | undefined;
  headersMs: number | undefined;
  firstTokenMs: number | undefined;
  /** The key and model that this call's size is remembered for. */
  readonly historyKey: string;
  readonly #reports = new Map<string, UsageReport>();
  #hasImplausibleCount = false;
  #upstreamCost: bigint | undefined;
  #settlement: { readonly record: CallRecord; readonly row: Promise<void> } | undefined;
  #settledPromise: PromiseWithResolvers<CallRecord> | undefined;

  constructor(call: HostCall) {
    this.call = call;
    this.pricing = new CallPricing(call);
    this.historyKey = outputHistoryKey(call.exchange, call.id);
  }

  /** What was set aside, and why. */
  setHold(ask: HoldRequest, held: HoldEstimate, shelf: CatalogModels): void {
    this.pricing.models = shelf;
    this.#holdRequest = ask;
    this.#maxOutput = held.maxOutput;
    if (held.maxOutput > 0 && (ask.output ?? ask.modelMaxOutput) !== undefined)
      this.#knownMaxOutput = held.maxOutput;
    this.holdNano = held.nano;
  }

  /** Upstream has taken it on, under this id; a provider's id is a few words long. */
  recordAccepted(id: string | undefined): void {
    this.isAccepted = true;
    if (id !== undefined && id.length <= BOUNDS.responseId.max) this.upstreamId = id;
  }

  /** Before any stage: what upstream has made is billed, whatever becomes of it. */
  recordUpstreamEvent(event: ModelEvent): void {
    this.isAccepted = true;
    if (event.type === "delta") this.receivedTextBytes += Buffer.byteLength(event.text);
    else if (event.type === "usage") this.addReport(event);
  }

  addReport(seen: UsageReport): void {
    const clean: { -readonly [U in Unit]?: Opt<number> } = {};
    for (const unit of UNITS) {
      const count = seen.usage[unit];
      if (count === undefined) continue;
      // It thinks, whatever its request said.
      if (unit === "reasoning" && count > 0) this.mayHideReasoning = true;
      if (Number.isFinite(count) && count >= 0 && count <= MAX_COUNT) clean[unit] = count;
      else this.#hasImplausibleCount = true;
    }
    const said = dropLongNames(seen);
    const key = said.model ?? "";
    const before = this.#reports.get(key);
    if (!before && this.#reports.size >= BOUNDS.usageReports.max) failBoundExceeded("usageReports");
    const usage = before ? mergeReports(before.usage, clean) : clean;
    this.#reports.set(key, { ...before, ...said, usage });
    const cost = seen.costNano;
    if (cost !== undefined && cost >= 0n && cost <= MAX_COST_NANO) this.#upstreamCost = cost;
  }

  get failurePoint(): FailurePoint {
    if (this.firstTokenMs !== undefined && this.call.exchange.stream) return "content_sent";
    return this.isAccepted ? "response_started" : this.call.failurePoint;
  }

  /** Everything so far, estimates where upstream said nothing: the one value that is shown and priced. */
  usage(): { usage: Usage; estimated: boolean } {
    let usage: Usage | undefined;
    for (const seen of this.#reports.values())
      usage = usage ? addUsage(usage, seen.usage) : seen.usage;
    const { operationSpec } = this.call.exchange;
    const { price } = this.call.info;
    usage = addRequestCounts(usage ?? {}, this.#holdRequest?.exactUsage, price, operationSpec);
    const { protocol } = this.call.candidate["~"].endpoint;
    const missing = assumeToolRuns(
      usage,
      this.#holdRequest?.tools,
      protocol?.client?.countedToolUnits,
    );
    if (missing) usage = { ...usage, ...missing };
    if (!this.#hasImplausibleCount && isComplete(usage, operationSpec, price))
      return { usage, estimated: missing !== undefined || this.#isImpossible(usage) };
    const bytes =
      Math.max(this.textBytes, this.receivedTextBytes) ||
      (this.hasUnmeasuredContent ? this.forwardedBytes : 0);
    const guess = operationSpec.estimateMissingUsage({
      usage,
      inputTokens: this.inputEstimate,
      outputTokens: Math.ceil(bytes / BYTES_PER_TOKEN),
      n: this.call.exchange["~"].receivedBody?.facts.n ?? 1,
      expectedUsage: this.#holdRequest?.expectedUsage ?? {},
    });
    return { usage: guess, estimated: true };
  }

  /** More than the model reads, or may write: a mistake of the provider's, or of the catalog. */
  #isImpossible(usage: Usage): boolean {
    const { context = Infinity } = this.call.info.limits ?? {};
    const most = context * (1 + (this.#holdRequest?.toolRuns ?? 0));
    return inputTokens(usage) > most || outputTokens(usage) > this.#knownMaxOutput;
  }

  /** Resolves to its record when its row is durable; never rejects. */
  whenSettled(): Promise<CallRecord> {
    const over = this.#settlement;
    if (over) return over.row.then(() => over.record);
    return (this.#settledPromise ??= Promise.withResolvers<CallRecord>()).promise;
  }

  /** It is settled, by this row. */
  markSettled(record: CallRecord, row: Promise<void>): void {
    this.#settlement = { record, row };
    if (this.#settledPromise) void row.then(() => this.#settledPromise!.resolve(record));
  }

  /** The settle row and the record of this call. `cut`: the answer did not reach its end. */
  settle(of: {
    at: number;
    outcome: string;
    finish?: FinishReason | undefined;
    fault?: Fault | undefined;
    cut: boolean;
  }): { command: Settle & { at: number }; record: CallRecord } {
    // Upstream has not failed: it was given up, and may have worked until then.
    const wasGivenUp =
      of.fault?.kind === "canceled" || (of.fault !== undefined && isLocalFault(of.fault));
    const isVoid =
      of.cut &&
      !(wasGivenUp && this.call.accepted) &&
      FAILURE_POINTS[this.failurePoint].ledgerResult === "void";
    const { usage, estimated } = isVoid ? { usage: {}, estimated: false } : this.usage();
    const mayHaveContinued = this.wasStoppedEarly || (of.cut && (this.isAccepted || wasGivenUp));
    const { nano, isExact } = this.#cost(usage, estimated);
    const costNano = isVoid
      ? 0n
      : mayHaveContinued
        ? this.#costWithUnseenWork(usage, estimated, CANCEL_NOTICE_SECONDS)
        : nano;
    const state: CallState = isVoid
      ? "void"
      : of.cut || estimated
        ? "estimated"
        : costNano === null
          ? "unpriced"
          : isExact
            ? "exact"
            : "estimated";
    const now = performance.now();
    if (this.sentAt !== undefined) addProviderWait(this.call.exchange, this.sentAt, now);
    const ms = {
      ...(this.headersMs !== undefined && { headers: this.headersMs }),
      ...(this.firstTokenMs !== undefined && { firstToken: this.firstTokenMs }),
      total: Math.round(now - this.call.startedAt),
    };
    if (!isVoid && !of.cut && !estimated) {
      const { gen } = this.call.exchange["~"];
      if (usage.output !== undefined) gen.outputHistory.record(this.historyKey, usage.output);
    }
    const parts = this.pricing.billParts(this.#reports);
    const record: CallRecord = {
      attemptId: this.call.attemptId,
      n: this.call.n,
      candidate: this.call.candidate,
      state,
      usage,
      costNano,
      startMs: this.call.startMs,
      ms,
      // Optional members come last: after a spread, V8 adds each further member separately.
      ...(this.call.isHedge && { hedge: true }),
      ...(of.fault && { fault: of.fault }),
      ...(this.upstreamId !== undefined && { upstreamId: this.upstreamId }),
    };
    return {
      record,
      command: {
        do: "settle",
        at: of.at,
        attempt: this.call.attemptId,
        state,
        usage,
        costNano,
        outcome: of.outcome,
        ms,
        ...(of.finish && { finish: of.finish }),
        ...(this.upstreamId !== undefined && { upstreamId: this.upstreamId }),
        ...(this.#upstreamCost !== undefined && { upstreamCostNano: this.#upstreamCost }),
        ...(parts && { parts }),
      },
    };
  }

  /** What a crash now would be recovered from: the counts so far, and a price with room for what is on its way. */
  progress(at: number): Extract<StoreCommand, { do: "progress" }> & { at: number } {
    const { usage, estimated } = this.usage();
    const made = usage.output ?? 0;
    const since = performance.now() - this.call.startedAt - (this.firstTokenMs ?? 0);
    const tokensPerSecond = made / Math.max(0.1, since / 1_000);
    const output =
      made +
      Math.ceil(Math.max(UNREPORTED_OUTPUT.tokens, tokensPerSecond * UNREPORTED_OUTPUT.seconds));
    const costNano = this.call.exchange.operationSpec.generatesTokens
      ? this.#costWithUnseenWork({ ...usage, output }, estimated, UNREPORTED_OUTPUT.seconds)
      : this.holdNano;
    return { do: "progress", at, attempt: this.call.attemptId, usage, costNano };
  }

  /** Of a call that broke off: what was seen, by that guess, and what upstream may have made unseen. */
  #costWithUnseenWork(usage: Usage, estimated: boolean, ahead: number): bigint | null {
    const seen = this.#cost(usage, estimated).nano ?? this.#heldCost;
    // A provider that bills the rest anyway has not billed all of it yet.
    if (this.call.candidate["~"].provider.onDisconnect === "drain")
      return largerCost(seen, this.holdNano);
    if (
      (this.hasFinished && !this.wasStoppedEarly) ||
      !this.call.exchange.operationSpec.generatesTokens
    )
      return seen;
    if (!this.mayHideReasoning && this.call.stream) return seen;
    const seconds = (performance.now() - this.call.startedAt) / 1_000 + ahead;
    const output = Math.min(this.#maxOutput, Math.ceil(seconds * MAX_TOKENS_PER_SECOND));
    return largerCost(seen, this.#costOfUnseen(usage, output));
  }

  #costOfUnseen(usage: Usage, output: number): bigint | null {
    const made = usage.output ?? 0;
    if (output <= made) return null;
    // No tokens were reported: the dearest that it can have been.
    if (![...this.#reports.values()].some(hasTokens))
      return this.#holdRequest
        ? estimateHold({ ...this.#holdRequest, output, n: 1 }).nano
        : this.holdNano;
    return largerCost(
      this.pricing.cost({ ...usage, output }, this.#reports, true).nano,
      this.pricing.cost({ ...usage, output, reasoning: output - made }, this.#reports, true).nano,
    );
  }

  #cost(usage: Usage, estimated: boolean): PricedUsage {
    const { nano, isExact } = this.pricing.cost(usage, this.#reports, estimated);
    return { nano: nano === null && estimated ? this.#heldCost : nano, isExact };
  }

  get #heldCost(): bigint | null {
    return this.call.info.price ? this.holdNano : null;
  }

  get otherPrices(): readonly Price[] {
    return this.pricing.otherPrices(this.#reports);
  }
}
