// Tracks the usage and cost of one call. Every number that a client reads or that the ledger prices
// is calculated here.
import { estimateHold, type HoldRequest, type HoldEstimate } from "../../money/estimate.ts";
import type { FinishReason, ModelEvent, UsageReport } from "../../model/event.ts";
import { BOUNDS } from "../../lib/bounds.ts";
import type { Fault } from "../../model/error.ts";
import { FAILURE_POINTS, type FailurePoint } from "../../model/call-retry.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { Price } from "../../model/facts.ts";
import {
  inputTokens,
  outputTokens,
  UNITS,
  type Unit,
  type Usage,
  mergeUsage,
  PIECE_UNITS,
} from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { CallRecord, CallState } from "../../plugin/call.ts";
import type { StoreCommand, Settle } from "../../plugin/store/store.ts";
import { isLocalFault } from "../faults/fault-source.ts";
import { addProviderWait } from "../targets/timeouts.ts";
import { isPaidByClient } from "../exchange/client-credential.ts";
import type { HostCall } from "../exchange/call.ts";
import { type CatalogModels, largerCost, CallPricing, type PricedUsage } from "./call-pricing.ts";
import { outputHistoryKey } from "./price-terms.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";

// Whether a name that a provider reports with its counts is short enough to store.
const isShortEnough = (name: string | undefined): boolean =>
  name === undefined || name.length <= BOUNDS.responseId.max;
/** Removes names that are too long. Ledger rows contain these names as the provider wrote them. */
function dropLongNames(seen: UsageReport): UsageReport {
  const { model, tier, size, quality } = seen;
  if (isShortEnough(model) && isShortEnough(tier) && isShortEnough(size) && isShortEnough(quality))
    return seen;
  const kept = (name: string | undefined) => (isShortEnough(name) ? name : undefined);
  return {
    ...seen,
    model: kept(model),
    tier: kept(tier),
    size: kept(size),
    quality: kept(quality),
  };
}

/**
 * Bytes per token for responses without a usage report. Ordinary text has more than 3 bytes per
 * token, so the estimate is not too low. Text that is built to be expensive has fewer bytes per
 * token ("a b c" has 2), so its estimate is too low. Hard budgets are not exceeded, because their
 * reservations assume the largest possible number of tokens.
 */
const BYTES_PER_TOKEN = 3;
/**
 * Output that the provider may produce before its next report: this many seconds at the current
 * rate, and at least this many tokens. After a crash, a call is billed from the last report and
 * should not be billed for less than the provider charges.
 */
const UNREPORTED_OUTPUT = { seconds: 2.5, tokens: 256 };
/**
 * Upper bound on output that does not pass through the gateway, such as hidden reasoning or a
 * non-streaming response. It is limited by the request's output limit and by time, because no
 * provider generates tokens faster than this. The fastest providers advertise about 3,000 tokens
 * per second.
 */
const MAX_TOKENS_PER_SECOND = 4_000;
/** Time until the provider notices that its connection is closed, in seconds. */
const CANCEL_NOTICE_SECONDS = 0.5;
/** Largest plausible count. A larger count is an error of the provider. */
const MAX_COUNT = 100_000_000;
/**
 * Largest plausible cost in nanodollars: 1 million US dollars. If an amount exceeds what the ledger
 * can store, the ledger rejects the whole bill.
 */
const MAX_COST_NANO = 10n ** 15n;

export class CallTally {
  readonly call: HostCall;
  /**
   * Whether the provider has accepted the work. If the call fails after that, it is settled as
   * estimated and never as void.
   */
  isAccepted = false;
  /** Whether the finish event has arrived. Errors from the provider after it change nothing. */
  hasFinished = false;
  /**
   * Whether the gateway ended the response before the provider reported its usage. The provider may
   * have produced more than was received.
   */
  wasStoppedEarly = false;
  upstreamId: string | undefined;
  /** Bytes of text that passed through, for estimates. */
  textBytes = 0;
  /** Bytes of text that the provider sent, including text that an event hook removed. */
  receivedTextBytes = 0;
  /** All forwarded bytes. Used as the estimate if a relay does not report the amount of text. */
  forwardedBytes = 0;
  /** Whether content passed through a relay that does not measure text. */
  hasUnmeasuredContent = false;
  inputEstimate = 0;
  /** Usage derived from the messages of a socket, for providers that report none. */
  observedUsage: Usage | undefined;
  readonly pricing: CallPricing;
  holdNano: bigint | null = null;
  #holdRequest: HoldRequest | undefined;
  /** Maximum number of output tokens, as calculated for the reservation. */
  #maxOutput = Infinity;
  /**
   * Maximum number of output tokens if the request or the model's metadata contains it. Otherwise
   * unlimited.
   */
  #knownMaxOutput = Infinity;
  /** Whether the model may produce reasoning that is not part of the response. */
  mayHideReasoning = false;
  /** When the provider was called, on the process's monotonic clock. */
  sentAt: number | undefined;
  headersMs: number | undefined;
  firstTokenMs: number | undefined;
  /** The key and model under which the output size of this call is stored. */
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

  /** Stores the reservation and the values that it was calculated from. */
  setHold(ask: HoldRequest, held: HoldEstimate, shelf: CatalogModels): void {
    this.pricing.models = shelf;
    this.#holdRequest = ask;
    this.#maxOutput = held.maxOutput;
    if (held.maxOutput > 0 && (ask.output ?? ask.modelMaxOutput) !== undefined)
      this.#knownMaxOutput = held.maxOutput;
    this.holdNano = held.nano;
  }

  /** Records that the provider accepted the work. An ID that is too long is not stored. */
  recordAccepted(id: string | undefined): void {
    this.isAccepted = true;
    if (id !== undefined && id.length <= BOUNDS.responseId.max) this.upstreamId = id;
  }

  /**
   * Records a provider's event before any event hook sees it. The provider's output is billed even
   * if a hook removes it.
   */
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
      // The model produces reasoning, even if the request did not enable it.
      if (unit === "reasoning" && count > 0) this.mayHideReasoning = true;
      if (Number.isFinite(count) && count >= 0 && count <= MAX_COUNT) clean[unit] = count;
      else this.#hasImplausibleCount = true;
    }
    const report = dropLongNames(seen);
    const key = report.model ?? "";
    const before = this.#reports.get(key);
    if (!before && this.#reports.size >= BOUNDS.usageReports.max) failBoundExceeded("usageReports");
    const usage = before ? mergeReports(before.usage, clean) : clean;
    this.#reports.set(key, { ...before, ...report, usage });
    const cost = seen.costNano;
    if (cost !== undefined && cost >= 0n && cost <= MAX_COST_NANO) this.#upstreamCost = cost;
  }

  get failurePoint(): FailurePoint {
    if (this.firstTokenMs !== undefined && this.call.exchange.stream) return "content_sent";
    return this.isAccepted ? "response_started" : this.call.failurePoint;
  }

  /**
   * Returns the current usage, with estimates where the provider reported nothing. Clients receive
   * this value, and the bill is calculated from it.
   */
  usage(): { usage: Usage; estimated: boolean } {
    let usage: Usage | undefined;
    for (const seen of this.#reports.values())
      usage = usage ? addUsage(usage, seen.usage) : seen.usage;
    const { operationSpec } = this.call.exchange;
    const { price } = this.call.info;
    usage = addRequestCounts(usage ?? {}, this.#holdRequest?.exactUsage, price, operationSpec);
    const { protocol } = this.call.candidate.mounted.endpoint;
    const missing = assumeToolRuns(
      usage,
      this.#holdRequest?.tools,
      protocol?.client?.countedToolUnits,
    );
    if (missing) usage = { ...usage, ...missing };
    if (!this.#hasImplausibleCount && isComplete(usage, operationSpec, price))
      return { usage, estimated: missing !== undefined || this.#isImpossible(usage) };
    if (this.observedUsage) return { usage: this.observedUsage, estimated: true };
    const bytes =
      Math.max(this.textBytes, this.receivedTextBytes) ||
      (this.hasUnmeasuredContent ? this.forwardedBytes : 0);
    const guess = operationSpec.estimateMissingUsage({
      usage,
      inputTokens: this.inputEstimate,
      outputTokens: Math.ceil(bytes / BYTES_PER_TOKEN),
      n: this.call.exchange.state.body.received?.facts.n ?? 1,
      expectedUsage: this.#holdRequest?.expectedUsage ?? {},
    });
    return { usage: guess, estimated: true };
  }

  /**
   * Whether the usage exceeds the model's context window or output limit. Such a report is an error
   * of the provider or of the catalog.
   */
  #isImpossible(usage: Usage): boolean {
    const { context = Infinity } = this.call.info.limits ?? {};
    const most = context * (1 + (this.#holdRequest?.toolRuns ?? 0));
    return inputTokens(usage) > most || outputTokens(usage) > this.#knownMaxOutput;
  }

  /** Resolves to the call's record when its ledger row is durable. Never rejects. */
  whenSettled(): Promise<CallRecord> {
    const over = this.#settlement;
    if (over) return over.row.then(() => over.record);
    return (this.#settledPromise ??= Promise.withResolvers<CallRecord>()).promise;
  }

  /** Records the settlement of the call. */
  markSettled(record: CallRecord, row: Promise<void>): void {
    this.#settlement = { record, row };
    if (this.#settledPromise) void row.then(() => this.#settledPromise!.resolve(record));
  }

  /**
   * Returns the settle command and the record of the call. `cut`: whether the response was
   * truncated.
   */
  settle(of: {
    at: number;
    outcome: string;
    finish?: FinishReason | undefined;
    fault?: Fault | undefined;
    cut: boolean;
  }): { command: Settle & { at: number }; record: CallRecord } {
    // The provider did not fail. The gateway canceled the call, and the provider may have worked
    // until then.
    const wasGivenUp =
      of.fault?.kind === "canceled" || (of.fault !== undefined && isLocalFault(of.fault));
    const isVoid =
      of.cut &&
      !(wasGivenUp && this.call.accepted) &&
      FAILURE_POINTS[this.failurePoint].ledgerResult === "void";
    const counted = isVoid ? { usage: {}, estimated: false } : this.usage();
    const { estimated } = counted;
    let { usage } = counted;
    const mayHaveContinued = this.wasStoppedEarly || (of.cut && (this.isAccepted || wasGivenUp));
    const { nano, isExact } = this.#cost(usage, estimated);
    const isExternal = isPaidByClient(this.call.candidate);
    const priceNano = isVoid
      ? 0n
      : mayHaveContinued
        ? this.#costWithUnseenWork(usage, estimated, CANCEL_NOTICE_SECONDS)
        : nano;
    const costNano = isExternal ? 0n : priceNano;
    if (isExternal && priceNano) usage = { ...usage, list_nano_usd: Number(priceNano) };
    const state: CallState = isVoid
      ? "void"
      : isExternal
        ? "external"
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
      const { gen } = this.call.exchange.state;
      if (usage.output !== undefined) gen.outputHistory.record(this.historyKey, usage.output);
    }
    const parts = isExternal ? undefined : this.pricing.billParts(this.#reports);
    const record: CallRecord = {
      attemptId: this.call.attemptId,
      n: this.call.n,
      candidate: this.call.candidate,
      state,
      usage,
      costNano,
      startMs: this.call.startMs,
      ms,
      // Optional members are last, because V8 adds every member after a spread separately.
      ...(this.call.isHedge && { hedge: true }),
      ...(of.fault && { fault: of.fault }),
      ...(this.upstreamId !== undefined && { upstreamId: this.upstreamId }),
      ...(this.call.usesSocket && { transport: "websocket" }),
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

  /**
   * Returns the progress command, from which recovery after a crash settles the call. It contains
   * the current usage, and a cost that includes output that has not arrived.
   */
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
    return {
      do: "progress",
      at,
      attempt: this.call.attemptId,
      usage,
      costNano: isPaidByClient(this.call.candidate) ? 0n : costNano,
    };
  }

  /**
   * Returns the cost of a truncated call: the received usage, plus the output that the provider may
   * have produced without sending it. `ahead`: seconds for which the provider may have continued.
   */
  #costWithUnseenWork(usage: Usage, estimated: boolean, ahead: number): bigint | null {
    const seen = this.#cost(usage, estimated).nano ?? this.#heldCost;
    // A provider that completes the response after a disconnect has not billed the whole response
    // yet.
    if (this.call.candidate.mounted.provider.onDisconnect === "drain")
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
    // No tokens were reported, so the most expensive possible usage applies.
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

// Combines the counts of one call from its request and from the provider's reports, and checks
// whether they are complete.

/**
 * Whether a report contains all units by which this operation is measured, and a unit that the
 * price has a line for.
 */
const isComplete = (usage: Usage, { completeUnitSets }: OperationSpec, price?: Price): boolean =>
  completeUnitSets.some((units) => units.every((unit) => usage[unit] !== undefined)) &&
  (!price || hasPriceLine(usage, price));

/** Whether the price has a line for a reported unit. Every price covers a report of nothing. */
function hasPriceLine(usage: Usage, price: Price): boolean {
  let used = false;
  for (const unit of UNITS)
    if ((usage[unit] ?? 0) > 0) {
      if (pricesUnit(price, unit)) return true;
      used = true;
    }
  return !used;
}

const pricesUnit = ({ lines }: Price, unit: Unit): boolean =>
  lines.some((line) => line.unit === unit);

/**
 * Returns the larger of two cumulative reports, separately for input, output, and each independent
 * unit. A decreasing report is an error of the provider, not a discount.
 */
export function mergeReports(before: Usage, now: Usage): Usage {
  const merged: { -readonly [U in Unit]?: Opt<number> } = mergeUsage(before, now);
  for (const [units, sum] of [
    [INPUT_UNITS, inputTokens],
    [OUTPUT_UNITS, outputTokens],
  ] as const)
    if (sum(merged) < sum(before))
      for (const unit of units)
        if (before[unit] === undefined) delete merged[unit];
        else merged[unit] = before[unit];
  for (const unit of INDEPENDENT_UNITS)
    if ((before[unit] ?? 0) > (merged[unit] ?? 0)) merged[unit] = before[unit];
  return merged;
}

const OUTPUT_UNITS: readonly Unit[] = ["output", "audio_out", "image_out"];
const INDEPENDENT_UNITS: readonly Unit[] = ["reasoning", ...PIECE_UNITS];
const INPUT_UNITS: readonly Unit[] = UNITS.filter(
  (unit) => !OUTPUT_UNITS.includes(unit) && !INDEPENDENT_UNITS.includes(unit),
);

/**
 * Adds counts that follow from the request and that the provider did not report, if the price has a
 * rate for them. If the price is unknown, these counts are added too, so that only the cost of the
 * call is unknown.
 */
function addRequestCounts(
  usage: Usage,
  counts: Usage | undefined,
  price: Price | undefined,
  work: OperationSpec,
): Usage {
  if (!counts || (!price && isComplete(usage, work))) return usage;
  const both: { -readonly [U in Unit]?: Opt<number> } = { ...usage };
  for (const unit of UNITS)
    if (counts[unit] !== undefined && (!price || pricesUnit(price, unit)))
      both[unit] ??= counts[unit];
  return both;
}

/**
 * Returns one run for each requested hosted tool whose runs neither the provider nor the protocol
 * counts.
 */
function assumeToolRuns(
  usage: Usage,
  requestedTools: readonly Unit[] = [],
  countedTools: readonly Unit[] = [],
): Usage | undefined {
  // Most requests use no hosted tool.
  if (requestedTools.length === 0) return undefined;
  const missing = requestedTools.filter(
    (unit) => usage[unit] === undefined && !countedTools.includes(unit),
  );
  return missing.length > 0 ? Object.fromEntries(missing.map((unit) => [unit, 1])) : undefined;
}

const hasTokens = ({ usage }: { usage: Usage }): boolean =>
  inputTokens(usage) + outputTokens(usage) > 0;

function addUsage(a: Usage, b: Usage): Usage {
  const both: { -readonly [U in Unit]?: Opt<number> } = { ...a };
  for (const unit of UNITS)
    if (b[unit] !== undefined) both[unit] = (both[unit] ?? 0) + (b[unit] ?? 0);
  return both;
}
