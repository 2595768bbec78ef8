// Limits the concurrent calls of one client at a target where nothing succeeds. The first success
// removes the limit. The limit prevents thousands of calls per second to a target that fails every
// call within milliseconds. Additive increase: one slot for each call that lasts longer than a
// typical failure. Multiplicative decrease: the limit is divided by 4 after every ten further
// failures. The minimum is one slot.
import { createFault } from "../../model/error.ts";
import { attributeFault } from "../faults/fault-source.ts";

const INITIAL_LIMIT = 16;
const DECREASE_DIVISOR = 4;
/**
 * Time in milliseconds for which a slot stays occupied after a failure. With one slot, this allows
 * up to 40 calls per second.
 */
const FAILURE_HOLD_MS = 25;
/**
 * A call that lasts this many times as long as a typical failure is likely to succeed.
 * `PROMISING_MS` is the maximum of that time.
 */
const PROMISING_FACTOR = 2;
const PROMISING_MS = { least: 25, most: 250 };
/** Weight of the newest failure time in the average. */
const SMOOTHING = 0.2;
/** Maximum number of waiting requests. If there are more, the oldest is rejected. */
const MAX_WAITING = 64;
const RETRY_AFTER_MS = { least: 1_000, more: 1_000 };

/** Runs a function after `ms` milliseconds. */
export type Schedule = (ms: number, run: () => void) => void;

/** A slot of the limit, held by one call. */
export interface ConcurrencySlot {
  /** Called when the call ends. */
  release(failed: boolean): void;
}

interface Waiter {
  isDone: boolean;
  admit(place: ConcurrencySlot): void;
  reject(error: Error): void;
}

export class ConcurrencyLimit {
  readonly #schedule: Schedule;
  readonly #now: () => number;
  #limit = INITIAL_LIMIT;
  #running = 0;
  #averageFailureMs = 0;
  #isLifted = false;
  readonly #waiting: Waiter[] = [];

  constructor(later: Schedule, now: () => number) {
    this.#schedule = later;
    this.#now = now;
  }

  get limit(): number {
    return this.#limit;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether a request would have to wait. */
  get isFull(): boolean {
    return !this.#isLifted && this.#running >= this.#limit;
  }

  /** Returns a slot, or a promise of one. The promise rejects with 503 after `waitMs`. */
  acquire(waitMs: number, name: string): ConcurrencySlot | Promise<ConcurrencySlot> {
    if (!this.isFull) return this.#createSlot();
    const promise = new Promise<ConcurrencySlot>((go, refuse) => {
      const waiter: Waiter = { isDone: false, admit: go, reject: refuse };
      this.#waiting.push(waiter);
      this.#schedule(waitMs, () => this.#reject(waiter, name));
    });
    if (this.#waiting.length > MAX_WAITING) this.#reject(this.#waiting[0]!, name);
    return promise;
  }

  /** Decreases the limit. Called after further failures if no call has succeeded. */
  decrease(): void {
    this.#limit = Math.max(1, Math.floor(this.#limit / DECREASE_DIVISOR));
  }

  /** Lifts the limit after a success, and admits all waiting requests. */
  lift(): void {
    this.#isLifted = true;
    for (const waiter of this.#waiting.splice(0)) this.#admit(waiter);
  }

  #createSlot(): ConcurrencySlot {
    this.#running++;
    const began = this.#now();
    let [counted, over] = [true, false];
    const free = () => {
      if (!counted) return;
      counted = false;
      this.#running--;
      while (this.#waiting.length > 0 && !this.isFull) this.#admit(this.#waiting.shift()!);
    };
    const { least, most } = PROMISING_MS;
    this.#schedule(
      Math.min(most, Math.max(least, this.#averageFailureMs * PROMISING_FACTOR)),
      () => {
        if (over) return;
        this.#limit++;
        free();
      },
    );
    return {
      release: (failed) => {
        if (over) return;
        over = true;
        if (!failed) return free();
        const ms = this.#now() - began;
        this.#averageFailureMs =
          this.#averageFailureMs === 0
            ? ms
            : this.#averageFailureMs * (1 - SMOOTHING) + ms * SMOOTHING;
        this.#schedule(FAILURE_HOLD_MS, free);
      },
    };
  }

  #admit(waiter: Waiter): void {
    waiter.isDone = true;
    waiter.admit(this.#createSlot());
  }

  #reject(waiter: Waiter, name: string): void {
    if (waiter.isDone) return;
    waiter.isDone = true;
    this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
    waiter.reject(createUnhealthyError(name));
  }
}

/** The retry time is random, so that clients do not return together. */
function createUnhealthyError(name: string): Error {
  const problem = createFault(
    "unavailable",
    `All recent requests to ${name} failed, and the maximum number of probe requests is in progress.`,
    {
      code: "no_healthy_upstream",
      retryAfterMs: Math.round(RETRY_AFTER_MS.least + RETRY_AFTER_MS.more * Math.random()),
    },
  );
  return attributeFault(problem, "gateway");
}

// Limits the calls to a target that recovers, so that waiting requests do not all arrive at the
// same time. For a short period, the target receives only slightly more requests than before it
// failed.

const DURATION_MS = 30_000;
const GROWTH_INTERVAL_MS = 15_000;
const GROWTH = 1.2;
const BURST_MS = 100;
/** Calls per second that are always allowed. */
const MIN_RATE = 5;

export class SlowStart {
  isActive = false;
  /** Calls per second before the failure. 0 if unknown. */
  #previousRate = 0;
  #startedAt = 0;
  #refilledAt = 0;
  /** Number of calls that may be made now. */
  #tokens = 0;

  start(now: number, pace: number): void {
    this.isActive = true;
    this.#startedAt = this.#refilledAt = now;
    this.#previousRate = pace;
    this.#tokens = 1;
  }

  get endsAt(): number {
    return this.#startedAt + DURATION_MS;
  }

  isActiveAt(now: number): boolean {
    return !this.#hasEnded(now);
  }

  end(): void {
    this.isActive = false;
  }

  /** Returns whether one more call is allowed now, and counts it. */
  tryTake(now: number): boolean {
    if (this.#hasEnded(now)) return true;
    this.#refill(now);
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  /** Counts a call that was made without permission. Later calls then wait longer. */
  forceTake(now: number): void {
    if (this.#hasEnded(now)) return;
    this.#refill(now);
    this.#tokens = Math.max(-this.#previousRate, this.#tokens - 1);
  }

  /** Whether no call would be allowed now. */
  isExhausted(now: number): boolean {
    if (this.#hasEnded(now)) return false;
    this.#refill(now);
    return this.#tokens < 1;
  }

  /**
   * Adds the calls earned since the last refill. Few are saved, so that a second's calls do not all
   * arrive at its start.
   */
  #refill(now: number): void {
    const passed = now - this.#startedAt;
    const rate =
      this.#previousRate > 0
        ? Math.max(
            MIN_RATE,
            this.#previousRate * GROWTH ** (1 + Math.floor(passed / GROWTH_INTERVAL_MS)),
          )
        : MIN_RATE * 2 ** Math.floor(passed / 1_000);
    const most = Math.max(1, (rate * BURST_MS) / 1_000);
    this.#tokens = Math.min(most, this.#tokens + (rate * (now - this.#refilledAt)) / 1_000);
    this.#refilledAt = now;
  }

  #hasEnded(now: number): boolean {
    if (now - this.#startedAt >= DURATION_MS) this.isActive = false;
    return !this.isActive;
  }
}
