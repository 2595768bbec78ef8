// Which candidate is called next for one request, and when. Those that are in no cooldown come in their order; then those that failed,
// are in no cooldown and may be called once more; then those in cooldown, the one that succeeds most often first. One that works again and
// still fails far more often than one in cooldown comes after it. A cooldown only orders candidates: the last one is always called, unless its provider said how long it refuses all requests of the account. Nothing here is
// made or counted where the first one answers.
import { ERRORS, type Fault } from "../../model/error.ts";
import { retryModeAfter, FAILURE_POINTS, type FailurePoint } from "../../model/call-retry.ts";
import type { HostCall } from "../exchange/call.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import type { RoutePlan } from "../stages/route.ts";
import type { CallReason, TargetStatus } from "../targets/target-status.ts";
import type { ScheduledAttempt } from "../exchange/scheduled-attempt.ts";
import { isLocalFault, isProviderFault } from "../faults/fault-source.ts";
import { rateLimitScope } from "../faults/rate-limit-scope.ts";
import { remainingMs } from "../targets/timeouts.ts";
import { clientKey, isClientRetry } from "../exchange/client-retries.ts";

/** Pauses are drawn between nothing and this, which doubles with each attempt. */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;
/** A provider that asks for a longer pause is not waited for. */
const MAX_RETRY_AFTER_MS = 5_000;
/** The first answer of a target that was away ends its rest for all. */
const RECOVERY_WAIT_MS = 200;
/** Endpoints that cannot say a request cost nothing upstream, and are work all the same. */
const MAX_UNSUPPORTED = 5;

/** What failed and may be asked once more. */
interface PendingRetry {
  readonly candidate: HostCandidate;
  /** The monotonic clock. */
  readonly notBefore: number;
}

export class AttemptScheduler {
  readonly #x: HostExchange;
  readonly #failoverOn: RoutePlan["failoverOn"];
  #candidates: readonly HostCandidate[];
  #otherEndpoints: readonly HostCandidate[];
  #nextIndex = 0;
  /** Calls that were begun. */
  count = 0;
  #unsupportedCount = 0;
  #coolingDown: HostCandidate[] | undefined;
  #pendingRetries: PendingRetry[] | undefined;
  #failed: HostCandidate[] | undefined;
  #firstCallAt: number | undefined;
  #isStuck = false;
  #hasDroppedAccountBound = false;
  #hasRechecked = false;
  #hasHedged = false;

  constructor(x: HostExchange, { candidates, otherEndpoints, failoverOn }: RoutePlan) {
    this.#x = x;
    this.#candidates = candidates;
    this.#otherEndpoints = otherEndpoints;
    this.#failoverOn = failoverOn;
  }

  /** Undefined: every provider refuses all requests of its account for now. */
  first(): ScheduledAttempt | undefined {
    this.#x["~"].gen.targetHealth.retryBudget(this.#client).addRequest(this.#now);
    return this.#nextHealthy() ?? this.#bestCoolingDown();
  }

  /** What is asked after this failure, if anything still may be. */
  nextAfter(
    { candidate, requestFirstCallAt }: HostCall,
    stage: FailurePoint,
    failure: Fault,
  ): ScheduledAttempt | undefined {
    this.#firstCallAt = requestFirstCallAt;
    (this.#failed ??= []).push(candidate);
    if (failure.kind === "unsupported") this.#unsupportedCount++;
    if (this.#isExhausted()) return undefined;
    if (this.#isAccountBoundError(candidate, stage, failure))
      return { ...this.#schedule(candidate, 0, false), omitsAccountBound: true };
    const isFree = FAILURE_POINTS[stage].isFree;
    const retryMode = this.#retryModeAfter(candidate, stage, failure);
    if (retryMode === "immediate" && (isFree || this.#spendRetry()))
      return this.#schedule(candidate, 0, true);
    if (retryMode !== undefined && retryMode !== "immediate") {
      const wait = backoffMs(this.count, failure);
      (this.#pendingRetries ??= []).push({ candidate, notBefore: this.#now + wait });
    }
    const canFailOver = this.#canFailOver(candidate, stage, failure);
    const attempt = canFailOver ? this.#nextOther() : this.#retryPending();
    this.#isStuck = !attempt && canFailOver;
    return attempt;
  }

  /**
   * The next candidate, to be called beside this call, which stays without content. It is in no cooldown, it costs the retry budget,
   * and a request has one such call at most.
   */
  hedge({ candidate, requestFirstCallAt }: HostCall): ScheduledAttempt | undefined {
    if (this.#hasHedged || this.#isExhausted()) return undefined;
    const { target } = candidate["~"];
    const at = this.#candidates.findIndex(
      ({ "~": of }, i) => i >= this.#nextIndex && of.target !== target && of.target.isHealthy,
    );
    if (at < 0 || !this.#spendRetry()) return undefined;
    this.#hasHedged = true;
    const other = this.#candidates[at]!;
    this.#candidates = this.#candidates.toSpliced(at, 1);
    return { ...this.#schedule(other, 0, false), firstCallAt: requestFirstCallAt, isHedge: true };
  }

  /** The next in their order that is well. */
  #nextHealthy(): ScheduledAttempt | undefined {
    for (; this.#nextIndex < this.#candidates.length; this.#nextIndex++) {
      const candidate = this.#candidates[this.#nextIndex]!;
      const { target } = candidate["~"];
      const pass = target.isHealthy ? "plain" : target.tryEnter(this.#now, this.#client);
      if (!pass || (pass === "plain" && this.#isWorse(candidate))) {
        (this.#coolingDown ??= []).push(candidate);
        this.#recordCooldown(candidate);
        continue;
      }
      this.#nextIndex++;
      if (this.count === 0 || this.#spendFallback(candidate))
        return this.#schedule(candidate, 0, false, pass);
      if (pass === "probe") target.releaseProbe(this.#client);
    }
    return undefined;
  }

  /** For the record of the request, where routing has not listed it. */
  #recordCooldown(candidate: HostCandidate): void {
    const state = this.#x["~"];
    const { coolingDown = [] } = state;
    if (coolingDown.some((one) => one.candidate === candidate)) return;
    const why = this.#statusOf(candidate)?.reason ?? "overloaded";
    state.coolingDown = [...coolingDown, { candidate, reason: why }];
  }

  #nextOther(): ScheduledAttempt | undefined {
    return (
      this.#nextHealthy() ??
      this.#retryPending((one) => one["~"].target.isHealthy) ??
      this.#bestCoolingDown((one) => this.#statusOf(one)?.state !== "retry_after") ??
      (this.#canRecheck ? undefined : this.#lastResort())
    );
  }

  #lastResort(): ScheduledAttempt | undefined {
    return this.#bestCoolingDown() ?? this.#retryPending();
  }

  /** What has failed, after its pause. */
  #retryPending(
    which: (candidate: HostCandidate) => boolean = () => true,
  ): ScheduledAttempt | undefined {
    const list = this.#pendingRetries?.filter(({ candidate }) => which(candidate)) ?? [];
    for (const one of list) {
      const { candidate, notBefore } = one;
      this.#pendingRetries = this.#pendingRetries!.filter((other) => other !== one);
      const wait = Math.max(0, notBefore - this.#now);
      if (wait < remainingMs(this.#x, candidate, this.#firstCallAt!) && this.#spendRetry())
        return this.#schedule(candidate, wait, true);
    }
    return undefined;
  }

  /** Of those in cooldown, the one that succeeds most often. The first call of a request is free; more cost the retry budget. */
  #bestCoolingDown(
    which: (candidate: HostCandidate) => boolean = () => true,
  ): ScheduledAttempt | undefined {
    const list =
      this.#coolingDown?.filter((one) => which(one) && !this.#statusOf(one)?.rejectsRequests) ?? [];
    const candidate = list
      .toSorted((a, b) => this.#scoreOf(b) - this.#scoreOf(a))
      .find((one) => this.count === 0 || this.#spendFallback(one));
    if (!candidate) return undefined;
    this.#coolingDown = this.#coolingDown!.filter((one) => one !== candidate);
    candidate["~"].target.recordForcedCall(this.#now);
    return this.#schedule(candidate, 0, false, "spare");
  }

  /** Whether a candidate that was skipped as in cooldown is far better. */
  #isWorse(candidate: HostCandidate): boolean {
    const rested = this.#coolingDown;
    return (
      rested !== undefined &&
      this.#x["~"].gen.targetHealth.isWorseThanAny(candidate, rested, this.#client)
    );
  }

  /** How good a candidate in cooldown is, compared with others. */
  #scoreOf(candidate: HostCandidate): number {
    return this.#x["~"].gen.targetHealth.scoreOf(candidate, this.#client);
  }

  get #now(): number {
    return this.#x["~"].gen.targetHealth.clock.now();
  }

  get #client(): string {
    return clientKey(this.#x);
  }

  /** Whether it is worth a moment to see what comes back. */
  get #canRecheck(): boolean {
    return !this.#hasRechecked && this.#coolingDown !== undefined && this.#coolingDown.length > 0;
  }

  /** How long it is worth waiting for what rests to come back by another request's answer; undefined: it is not, or was waited for. */
  get recoveryWaitMs(): number | undefined {
    return this.#isStuck && this.#canRecheck ? RECOVERY_WAIT_MS * (0.5 + Math.random()) : undefined;
  }

  /** Whether one that rested has come back meanwhile. */
  recheck(): ScheduledAttempt | undefined {
    this.#hasRechecked = true;
    this.#candidates = this.#coolingDown!.splice(0);
    this.#nextIndex = 0;
    return this.#nextHealthy() ?? this.#lastResort();
  }

  #statusOf(candidate: HostCandidate): TargetStatus | undefined {
    return this.#x["~"].gen.targetHealth.statusOf(candidate, this.#client);
  }

  #schedule(
    candidate: HostCandidate,
    waitMs: number,
    fresh: boolean,
    pass: CallReason = "plain",
  ): ScheduledAttempt {
    this.count++;
    return {
      candidate,
      reason: pass,
      waitMs,
      usesNewConnection: fresh,
      firstCallAt: this.#firstCallAt,
    };
  }

  #spendRetry(): boolean {
    return this.#x["~"].gen.targetHealth
      .retryBudget(this.#client)
      .takeRetry(isClientRetry(this.#x));
  }

  /** A target that is likely to answer has an allowance of its own. */
  #spendFallback({ "~": { target } }: HostCandidate): boolean {
    const likely = target.isHealthy || target.isLikelyToSucceed(this.#now, this.#client);
    return (
      (likely && this.#x["~"].gen.targetHealth.retryBudget(this.#client).takeFallback()) ||
      this.#spendRetry()
    );
  }

  /** It holds what another account has made, and says so: it may be asked once without that. */
  #isAccountBoundError(candidate: HostCandidate, stage: FailurePoint, failure: Fault): boolean {
    const codes = candidate["~"].endpoint.protocol?.client?.accountBound?.errorCodes;
    if (!codes?.includes(failure.code ?? "") || stage !== "rejected" || !isProviderFault(failure))
      return false;
    return (
      !this.#hasDroppedAccountBound &&
      (this.#hasDroppedAccountBound = this.#failuresAt(candidate) < this.#maxPerTarget)
    );
  }

  /** Calls that one request makes of one target. */
  get #maxPerTarget(): number {
    return this.#x["~"].gen.retries.perTarget;
  }

  #isExhausted(): boolean {
    const { total } = this.#x["~"].gen.retries;
    return this.#unsupportedCount > MAX_UNSUPPORTED || this.count - this.#unsupportedCount >= total;
  }

  #retryModeAfter(candidate: HostCandidate, stage: FailurePoint, failure: Fault) {
    const again = retryModeAfter(stage, failure.kind);
    if (again === undefined || isLocalFault(failure) || !isProviderFault(failure)) return undefined;
    if (this.#failuresAt(candidate) >= this.#maxPerTarget || rateLimitScope(failure) === "request")
      return undefined;
    const { retryAfterMs: told } = failure;
    if (told === undefined || told === null) return again === "retry_after" ? undefined : again;
    return told <= MAX_RETRY_AFTER_MS ? again : undefined;
  }

  #failuresAt(candidate: HostCandidate): number {
    const { target } = candidate["~"];
    return this.#failed!.filter((one) => one["~"].target === target).length;
  }

  /** Whether another may be tried after this failure; what one endpoint cannot say, the candidate's others may. */
  #canFailOver({ id, credential }: HostCandidate, stage: FailurePoint, failure: Fault): boolean {
    const unsupported = failure.kind === "unsupported";
    const next = ERRORS[failure.kind][1];
    if (next === "never" || !FAILURE_POINTS[stage].allowsFailover || isLocalFault(failure))
      return false;
    // Another candidate may have a larger window, at another price. It is tried where the operator wrote so and the provider said it.
    if (next === "opt_in" && !isProviderFault(failure)) return false;
    if (!unsupported && !this.#failoverOn.has(failure.kind)) return false;
    if (unsupported && this.#otherEndpoints.length > 0) {
      const alike = (one: HostCandidate) => one.id === id && one.credential === credential;
      this.#candidates = this.#candidates.toSpliced(
        this.#nextIndex,
        0,
        ...this.#otherEndpoints.filter(alike),
      );
      this.#otherEndpoints = this.#otherEndpoints.filter((other) => !alike(other));
    }
    return true;
  }
}

function backoffMs(tried: number, { retryAfterMs: told }: Fault): number {
  const drawn = Math.random() * Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (tried - 1));
  return (told ?? 0) + drawn;
}
