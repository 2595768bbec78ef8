// Evidence about one target from the requests of one client (one key). The request itself may have
// caused a failure, so the failure counts only for that client. Failures of several clients are
// evidence against the target itself: see upstream-target.ts.
import { CircuitBreaker } from "./circuit-breaker.ts";
import { ConcurrencyLimit, type Schedule } from "./concurrency-limit.ts";

/**
 * Consecutive failures of distinct requests that open a breaker. A failure share above
 * `MAX_FAILURE_SHARE` among at least `MIN_SAMPLES` requests opens it too.
 */
export const MIN_FAILURES = 5;
export const MAX_FAILURE_SHARE = 0.1;
export const MIN_SAMPLES = 20;
/** Half-life of counts, in milliseconds. */
const HALF_LIFE_MS = 5_000;
/** Failure count below which the evidence is discarded. */
const NEGLIGIBLE = 0.25;
/** Time in milliseconds without a request after which a client is no longer tracked. */
const FORGET_CLIENT_AFTER_MS = 120_000;
/**
 * Number of consecutive failures after which the concurrency limit starts (`first`). After that,
 * the limit decreases after every `more` failures.
 */
const FAILURE_RUN = { first: 50, more: 10 };

export interface FailedCall {
  readonly now: number;
  /** Request ID. */
  readonly requestId: string;
  /** Whether the client sent the request before. A retry does not count as a distinct request. */
  readonly isClientRetry: boolean;
  /** Whether the provider sent a retry time. Such a failure is handled by `ProviderCooldown`. */
  readonly hasRetryAfter: boolean;
}

export class ClientEvidence {
  readonly breaker = new CircuitBreaker();
  /** Set after many consecutive failures. The first success removes it. */
  concurrencyLimit: ConcurrencyLimit | undefined;
  /** Number of distinct requests that failed since the last success. */
  consecutiveFailures = 0;
  #failuresInRow = 0;
  #successes = 0;
  #failures = 0;
  #decayedAt: number;
  #lastSeenAt: number;
  #lastFailedRequest: string | undefined;

  constructor(now: number) {
    this.#decayedAt = this.#lastSeenAt = now;
  }

  /** Returns the number of recently failed requests. Older failures count less. */
  recentFailures(now: number): number {
    this.#decay(now);
    return Math.max(this.consecutiveFailures, this.#failures);
  }

  /** Whether this client's own requests suffice to open its breaker. */
  get hasEnoughEvidence(): boolean {
    if (this.consecutiveFailures >= MIN_FAILURES) return true;
    const all = this.#successes + this.#failures;
    return (
      this.#failures >= MIN_FAILURES &&
      all >= MIN_SAMPLES &&
      this.#failures > MAX_FAILURE_SHARE * all
    );
  }

  recordFailure(
    { now, requestId, isClientRetry, hasRetryAfter }: FailedCall,
    clock: TargetClock,
  ): void {
    this.#decay(now);
    this.#lastSeenAt = now;
    this.#failuresInRow++;
    if (this.#failuresInRow === FAILURE_RUN.first)
      this.concurrencyLimit ??= new ConcurrencyLimit(clock.schedule, clock.now);
    else if (
      this.#failuresInRow > FAILURE_RUN.first &&
      this.#failuresInRow % FAILURE_RUN.more === 0
    )
      this.concurrencyLimit?.decrease();
    if (hasRetryAfter || isClientRetry || requestId === this.#lastFailedRequest) return;
    this.consecutiveFailures++;
    this.#failures++;
    this.#lastFailedRequest = requestId;
  }

  /**
   * Records a success. `began`: when the call started. Returns whether the client's breaker closes
   * because of it.
   */
  recordSuccess(now: number, began: number): boolean {
    this.#decay(now);
    this.#lastSeenAt = now;
    this.#successes++;
    this.consecutiveFailures = this.#failuresInRow = 0;
    this.#lastFailedRequest = undefined;
    this.concurrencyLimit?.lift();
    this.concurrencyLimit = undefined;
    return this.breaker.recordSuccess(began);
  }

  /** Whether at least about half of this client's recent requests succeeded, as far as is known. */
  isLikelyToSucceed(now: number): boolean {
    this.#decay(now);
    return this.breaker.isClosed && this.#failures <= this.#successes + 1;
  }

  /** Discards earlier failures. Called when the target itself works again. */
  clearFailures(): void {
    this.consecutiveFailures = this.#failures = 0;
  }

  /** Whether the evidence can be discarded, because it no longer counts against the target. */
  isForgettable(now: number): boolean {
    if (now - this.#lastSeenAt > FORGET_CLIENT_AFTER_MS) return true;
    if (!this.breaker.isClosed || this.concurrencyLimit) return false;
    this.#decay(now);
    return this.consecutiveFailures === 0 && this.#failures < NEGLIGIBLE;
  }

  #decay(now: number): void {
    const kept = 2 ** ((this.#decayedAt - now) / HALF_LIFE_MS);
    this.#decayedAt = now;
    this.#successes *= kept;
    this.#failures *= kept;
  }
}

export interface TargetClock {
  readonly now: () => number;
  readonly schedule: Schedule;
}
