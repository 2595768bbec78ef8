// Decides which candidate is called next for one request, and when. Candidates that are not in
// cooldown are called first, in their order. Next are failed candidates that are not in cooldown
// and may be retried. Candidates in cooldown are last, with the highest success rate first. A
// recovered candidate that still fails much more often than a candidate in cooldown is called after
// that candidate. A cooldown affects only the order. The last candidate is always called, unless
// its provider sent a time until which it rejects all requests of the account. If the first
// candidate responds, the scheduler allocates and counts nothing.
import { ERRORS, type Fault } from "../../model/error.ts";
import { retryModeAfter, FAILURE_POINTS, type FailurePoint } from "../../model/call-retry.ts";
import type { HostCall, ScheduledAttempt } from "../exchange/call.ts";
import { isPaidByClient } from "../exchange/client-credential.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import type { RoutePlan } from "../stages/route.ts";
import type { CallReason, TargetStatus } from "../targets/target-status.ts";
import { isLocalFault, isProviderFault } from "../faults/fault-source.ts";
import { rateLimitScope } from "../faults/rate-limits.ts";
import { remainingMs } from "../targets/timeouts.ts";
import { clientKey, isClientRetry } from "../exchange/client-retries.ts";

/**
 * Upper bound of the first backoff, in milliseconds. A backoff is random between 0 and the bound,
 * which doubles with each attempt.
 */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;
/**
 * Maximum retry time for which a request waits, in milliseconds. If a provider sends a longer
 * delay, the request does not wait.
 */
const MAX_RETRY_AFTER_MS = 5_000;
/**
 * Time in milliseconds to wait for a target in cooldown to recover. Its first success for any
 * request ends the cooldown for all.
 */
const RECOVERY_WAIT_MS = 200;
/**
 * Maximum number of endpoints that reject a request as unsupported. These attempts cost nothing at
 * the provider but take time.
 */
const MAX_UNSUPPORTED = 5;

/** A failed candidate that may be retried. */
interface PendingRetry {
  readonly candidate: HostCandidate;
  /** Earliest time of the retry, on the monotonic clock. */
  readonly notBefore: number;
}

export class AttemptScheduler {
  readonly #x: HostExchange;
  readonly #failoverOn: RoutePlan["failoverOn"];
  #candidates: readonly HostCandidate[];
  #otherEndpoints: readonly HostCandidate[];
  #nextIndex = 0;
  /** Number of calls that were started. */
  count = 0;
  /** Number of the first call within the request. */
  readonly #firstCall: number;
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
    this.#firstCall = x.state.billing.downgrade?.firstCall ?? 1;
  }

  /** Number of the last call within the request. The ledger identifies a call by it. */
  get callNumber(): number {
    return this.#firstCall + this.count - 1;
  }

  /**
   * Returns the first attempt. Returns undefined if every provider currently rejects all requests
   * of its account.
   */
  first(): ScheduledAttempt | undefined {
    this.#x.state.gen.targetHealth.retryBudget(this.#client).addRequest(this.#now);
    return this.#nextHealthy() ?? this.#bestCoolingDown();
  }

  /** Returns the next attempt after a failure, or undefined if no further attempt is allowed. */
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
   * Returns a hedge: a call to the next candidate, in parallel with a call that has not returned
   * content. The candidate must not be in cooldown. A hedge uses the retry budget, and a request
   * has at most one hedge.
   */
  hedge({ candidate, requestFirstCallAt }: HostCall): ScheduledAttempt | undefined {
    if (this.#hasHedged || this.#isExhausted()) return undefined;
    const { target } = candidate.mounted;
    const at = this.#candidates.findIndex(
      (one, i) =>
        i >= this.#nextIndex &&
        one.mounted.target !== target &&
        one.mounted.target.isHealthy &&
        !isPaidByClient(one),
    );
    if (at < 0 || !this.#spendRetry()) return undefined;
    this.#hasHedged = true;
    const other = this.#candidates[at]!;
    this.#candidates = this.#candidates.toSpliced(at, 1);
    return { ...this.#schedule(other, 0, false), firstCallAt: requestFirstCallAt, isHedge: true };
  }

  /** Returns the next healthy candidate in their order. */
  #nextHealthy(): ScheduledAttempt | undefined {
    for (; this.#nextIndex < this.#candidates.length; this.#nextIndex++) {
      const candidate = this.#candidates[this.#nextIndex]!;
      if (this.#isSpent(candidate)) continue;
      const { target } = candidate.mounted;
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

  /** Records a candidate in cooldown for the request's record, if routing has not listed it. */
  #recordCooldown(candidate: HostCandidate): void {
    const { routing } = this.#x.state;
    const { coolingDown = [] } = routing;
    if (coolingDown.some((one) => one.candidate === candidate)) return;
    const why = this.#statusOf(candidate)?.reason ?? "overloaded";
    routing.coolingDown = [...coolingDown, { candidate, reason: why }];
  }

  #nextOther(): ScheduledAttempt | undefined {
    return (
      this.#nextHealthy() ??
      this.#retryPending((one) => one.mounted.target.isHealthy) ??
      this.#bestCoolingDown((one) => this.#statusOf(one)?.state !== "retry_after") ??
      (this.#canRecheck ? undefined : this.#lastResort())
    );
  }

  #lastResort(): ScheduledAttempt | undefined {
    return this.#bestCoolingDown() ?? this.#retryPending();
  }

  /** Schedules a retry of a failed candidate after its backoff. */
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

  /**
   * Returns the candidate in cooldown with the highest score. The first call of a request is free.
   * Further calls use the retry budget.
   */
  #bestCoolingDown(
    which: (candidate: HostCandidate) => boolean = () => true,
  ): ScheduledAttempt | undefined {
    const list =
      this.#coolingDown?.filter(
        (one) => which(one) && !this.#statusOf(one)?.rejectsRequests && !this.#isSpent(one),
      ) ?? [];
    const candidate = list
      .toSorted((a, b) => this.#scoreOf(b) - this.#scoreOf(a))
      .find((one) => this.count === 0 || this.#spendFallback(one));
    if (!candidate) return undefined;
    this.#coolingDown = this.#coolingDown!.filter((one) => one !== candidate);
    candidate.mounted.target.recordForcedCall(this.#now);
    return this.#schedule(candidate, 0, false, "spare");
  }

  /**
   * Whether a candidate that was skipped because of its cooldown should be called before the given
   * candidate. Candidates in cooldown are usually last. However, a candidate that has just left its
   * cooldown may still fail. If nearly all its recent calls failed, and a skipped candidate fails
   * only sometimes, the skipped candidate is more likely to succeed. The two are compared by their
   * scores (`scoreOf` in target-health.ts), with a margin, so that small differences do not change
   * the order. A healthy candidate is never worse. If no candidate was skipped, nothing is
   * compared.
   */
  #isWorse(candidate: HostCandidate): boolean {
    const rested = this.#coolingDown;
    return (
      rested !== undefined &&
      this.#x.state.gen.targetHealth.isWorseThanAny(candidate, rested, this.#client)
    );
  }

  /** Returns the score of a candidate in cooldown, for comparison with others. */
  #scoreOf(candidate: HostCandidate): number {
    return this.#x.state.gen.targetHealth.scoreOf(candidate, this.#client);
  }

  get #now(): number {
    return this.#x.state.gen.targetHealth.clock.now();
  }

  get #client(): string {
    return clientKey(this.#x);
  }

  /** Whether to wait for candidates in cooldown to recover. They are checked again only once. */
  get #canRecheck(): boolean {
    return !this.#hasRechecked && this.#coolingDown !== undefined && this.#coolingDown.length > 0;
  }

  /**
   * Time to wait for a candidate in cooldown to recover through another request's success, in
   * milliseconds. Undefined if the request should not wait or has already waited.
   */
  get recoveryWaitMs(): number | undefined {
    return this.#isStuck && this.#canRecheck ? RECOVERY_WAIT_MS * (0.5 + Math.random()) : undefined;
  }

  /** Returns a candidate that has recovered during the wait, or else the last resort. */
  recheck(): ScheduledAttempt | undefined {
    this.#hasRechecked = true;
    this.#candidates = this.#coolingDown!.splice(0);
    this.#nextIndex = 0;
    return this.#nextHealthy() ?? this.#lastResort();
  }

  #statusOf(candidate: HostCandidate): TargetStatus | undefined {
    return this.#x.state.gen.targetHealth.statusOf(candidate, this.#client);
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
    return this.#x.state.gen.targetHealth
      .retryBudget(this.#client)
      .takeRetry(isClientRetry(this.#x));
  }

  /**
   * Takes one fallback call from the retry budget. A target that is likely to answer has a separate
   * allowance.
   */
  #spendFallback({ mounted: { target } }: HostCandidate): boolean {
    const likely = target.isHealthy || target.isLikelyToSucceed(this.#now, this.#client);
    return (
      (likely && this.#x.state.gen.targetHealth.retryBudget(this.#client).takeFallback()) ||
      this.#spendRetry()
    );
  }

  /**
   * Whether the request failed because it contains content that only another account can read,
   * according to the provider. The request may then be sent once without that content.
   */
  #isAccountBoundError(candidate: HostCandidate, stage: FailurePoint, failure: Fault): boolean {
    const codes = candidate.mounted.endpoint.protocol?.client?.accountBound?.errorCodes;
    if (!codes?.includes(failure.code ?? "") || stage !== "rejected" || !isProviderFault(failure))
      return false;
    if (this.#isSpent(candidate)) return false;
    return (
      !this.#hasDroppedAccountBound &&
      (this.#hasDroppedAccountBound = this.#failuresAt(candidate) < this.#maxPerTarget)
    );
  }

  /** Maximum number of calls that one request makes to one target. */
  get #maxPerTarget(): number {
    return this.#x.state.gen.retries.perTarget;
  }

  /** Whether the candidate needs the client's own credential, which was sent in an earlier call. */
  #isSpent(candidate: HostCandidate): boolean {
    return isPaidByClient(candidate) && this.#x.state.admission.clientCredential?.isSent !== false;
  }

  #isExhausted(): boolean {
    const { total } = this.#x.state.gen.retries;
    return this.#unsupportedCount > MAX_UNSUPPORTED || this.count - this.#unsupportedCount >= total;
  }

  #retryModeAfter(candidate: HostCandidate, stage: FailurePoint, failure: Fault) {
    const again = retryModeAfter(stage, failure.kind);
    if (again === undefined || isLocalFault(failure) || !isProviderFault(failure)) return undefined;
    if (this.#isSpent(candidate)) return undefined;
    if (this.#failuresAt(candidate) >= this.#maxPerTarget || rateLimitScope(failure) === "request")
      return undefined;
    const { retryAfterMs } = failure;
    if (retryAfterMs === undefined || retryAfterMs === null)
      return again === "retry_after" ? undefined : again;
    return retryAfterMs <= MAX_RETRY_AFTER_MS ? again : undefined;
  }

  #failuresAt(candidate: HostCandidate): number {
    const { target } = candidate.mounted;
    return this.#failed!.filter((one) => one.mounted.target === target).length;
  }

  /**
   * Whether another candidate may be tried after this failure. If the endpoint does not support the
   * request, the candidate's other endpoints are tried next.
   */
  #canFailOver({ id, credential }: HostCandidate, stage: FailurePoint, failure: Fault): boolean {
    const unsupported = failure.kind === "unsupported";
    const next = ERRORS[failure.kind][1];
    if (next === "never" || !FAILURE_POINTS[stage].allowsFailover || isLocalFault(failure))
      return false;
    // Another candidate may have a larger context window, at a different price. That candidate is
    // tried only if the operator allowed it and the provider reported the failure.
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

function backoffMs(tried: number, { retryAfterMs }: Fault): number {
  const drawn = Math.random() * Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (tried - 1));
  return (retryAfterMs ?? 0) + drawn;
}
