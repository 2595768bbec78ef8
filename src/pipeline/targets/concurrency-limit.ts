// Limits the concurrent calls of one client at a target where nothing succeeds. The first success
// lifts the limit, so it costs no success. It only prevents thousands of calls per second to a
// target that fails every call within milliseconds. Additive increase: one slot for each call that
// lasts longer than failures do. Multiplicative decrease: the limit is divided by 4 after every ten
// further failures. The limit is at least one.
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
 * A call that lasts this many times as long as failures do is likely to succeed. `PROMISING_MS`
 * bounds that time.
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

  /** Decreases the limit. Called after further failures without a success. */
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
