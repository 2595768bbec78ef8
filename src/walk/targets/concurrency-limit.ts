// How many calls of one client may be under way at a target at which nothing succeeds any more. It is lifted by the first success, so it
// costs no success: it only keeps a target that fails every call within milliseconds from being called thousands of times a second.
// Additive increase: one place for each call that has lasted longer than failures do. Multiplicative decrease: a quarter for each ten
// further failures. Never below one.
import { fault } from "../../model/error.ts";
import { blame } from "../upstream/blame.ts";

const FIRST = 16;
const LESS = 4;
/** A place is free again so long after a failure: at one place, 40 calls per second at most. */
const HOLD_MS = 25;
/** A call that has lasted twice as long as failures do is likely to succeed, within these bounds. */
const TIMES = 2;
const PROMISING_MS = { least: 25, most: 250 };
/** The newest failure time counts for so much of the average. */
const NEW = 0.2;
/** Requests that wait for a place. The oldest one is refused when there are more. */
const MOST_WAITING = 64;
const AGAIN_MS = { least: 1_000, more: 1_000 };

/** Runs something after so many milliseconds. */
export type Later = (ms: number, run: () => void) => void;

/** A call that the limit counts. */
export interface CallPlace {
  /** The call is over. */
  leave(failed: boolean): void;
}

interface Waiter {
  over: boolean;
  go(place: CallPlace): void;
  refuse(error: Error): void;
}

export class ConcurrencyLimit {
  readonly #later: Later;
  readonly #now: () => number;
  #most = FIRST;
  #running = 0;
  #failMs = 0;
  #lifted = false;
  readonly #waiting: Waiter[] = [];

  constructor(later: Later, now: () => number) {
    this.#later = later;
    this.#now = now;
  }

  get most(): number {
    return this.#most;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** A request would have to wait. */
  get full(): boolean {
    return !this.#lifted && this.#running >= this.#most;
  }

  /** A place, now or when the promise resolves. The promise rejects with 503 after `waitMs`. */
  enter(waitMs: number, name: string): CallPlace | Promise<CallPlace> {
    if (!this.full) return this.#place();
    const promise = new Promise<CallPlace>((go, refuse) => {
      const waiter: Waiter = { over: false, go, refuse };
      this.#waiting.push(waiter);
      this.#later(waitMs, () => this.#refuse(waiter, name));
    });
    if (this.#waiting.length > MOST_WAITING) this.#refuse(this.#waiting[0]!, name);
    return promise;
  }

  /** Nothing has succeeded meanwhile. */
  decrease(): void {
    this.#most = Math.max(1, Math.floor(this.#most / LESS));
  }

  /** A call has succeeded: all may go. */
  lift(): void {
    this.#lifted = true;
    for (const waiter of this.#waiting.splice(0)) this.#go(waiter);
  }

  #place(): CallPlace {
    this.#running++;
    const began = this.#now();
    let [counted, over] = [true, false];
    const free = () => {
      if (!counted) return;
      counted = false;
      this.#running--;
      while (this.#waiting.length > 0 && !this.full) this.#go(this.#waiting.shift()!);
    };
    const { least, most } = PROMISING_MS;
    this.#later(Math.min(most, Math.max(least, this.#failMs * TIMES)), () => {
      if (over) return;
      this.#most++;
      free();
    });
    return {
      leave: (failed) => {
        if (over) return;
        over = true;
        if (!failed) return free();
        const ms = this.#now() - began;
        this.#failMs = this.#failMs === 0 ? ms : this.#failMs * (1 - NEW) + ms * NEW;
        this.#later(HOLD_MS, free);
      },
    };
  }

  #go(waiter: Waiter): void {
    waiter.over = true;
    waiter.go(this.#place());
  }

  #refuse(waiter: Waiter, name: string): void {
    if (waiter.over) return;
    waiter.over = true;
    this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
    waiter.refuse(unhealthy(name));
  }
}

/** Spread, so that clients do not come back together. */
function unhealthy(name: string): Error {
  const problem = fault(
    "unavailable",
    `Every recent request to ${name} failed, and the requests that may be tried at once are under way.`,
    {
      code: "no_healthy_upstream",
      retryAfterMs: Math.round(AGAIN_MS.least + AGAIN_MS.more * Math.random()),
    },
  );
  return blame(problem, "gateway");
}
