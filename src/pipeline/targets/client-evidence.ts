// What the requests of one client (one key) show about one target. A failure of one client's request may be the fault of that request, so
// it counts for that client alone. Several clients that fail are evidence against the target itself: see upstream-target.ts.
import { CircuitBreaker } from "./circuit-breaker.ts";
import { ConcurrencyLimit, type Schedule } from "./concurrency-limit.ts";

/** So many distinct requests in a row, or more than this share of so many, open a breaker. */
export const MIN_FAILURES = 5;
export const MAX_FAILURE_SHARE = 0.1;
export const MIN_SAMPLES = 20;
/** What happened so long ago counts half. */
const HALF_LIFE_MS = 5_000;
/** Less than this is forgotten. */
const NEGLIGIBLE = 0.25;
/** A client that has not been here for so long is forgotten. */
const FORGET_CLIENT_AFTER_MS = 120_000;
/** So many failures in a row, and then each time that there are so many more, reduce the limit. */
const FAILURE_RUN = { first: 50, more: 10 };

export interface FailedCall {
  readonly now: number;
  /** The request's id. */
  readonly requestId: string;
  /** The client sent it again by itself: it is no other request than the one before. */
  readonly isClientRetry: boolean;
  /** The provider said how long it refuses: that counts elsewhere. */
  readonly hasRetryAfter: boolean;
}

export class ClientEvidence {
  readonly breaker = new CircuitBreaker();
  /** While nothing succeeds. */
  concurrencyLimit: ConcurrencyLimit | undefined;
  /** Distinct requests that failed since the last success. */
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

  /** Requests that failed lately, those of some time ago for less. */
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

  /** `began`: when the call that succeeded began. Returns whether its breaker closes by this. */
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

  /** At least half of this client's requests succeed, as far as is known. */
  isLikelyToSucceed(now: number): boolean {
    this.#decay(now);
    return this.breaker.isClosed && this.#failures <= this.#successes + 1;
  }

  /** The target itself works again: earlier failures are no evidence against it. */
  clearFailures(): void {
    this.consecutiveFailures = this.#failures = 0;
  }

  /** Nothing is known against the target any more. */
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
