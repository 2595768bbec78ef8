// Decides which requests are admitted when there are more requests than the process can serve. The
// limit bounds the number of concurrent requests. A few more requests are queued for a short time.
// All other requests are rejected before their bodies are read. While the queue empties regularly,
// it is served in order (FIFO). A queue that does not empty is overloaded: the newest request then
// goes first (LIFO), because its client is still waiting. Older requests are rejected within
// milliseconds instead of at the end of their wait. Overload ends when no request has been rejected
// for the maximum wait, because a queue that rejections emptied may still be overloaded. A key that
// uses less than its share is served before a key that uses more, and its requests may wait longer.
import { createFault } from "../../model/error.ts";
import { attributeFault } from "../faults/fault-source.ts";
import { AdaptiveLimit, type LoadMonitor } from "./load-monitor.ts";

/** Error code of every rejection by this queue. */
export const OVERLOADED_CODE = "gateway_overloaded";

/**
 * Longest wait during overload, in milliseconds, for requests of a key that exceeds its fair share.
 */
const OVERLOAD_WAIT_MS = 2;
/**
 * Queued requests per key during overload, as a share of the limit. A key above its fair share
 * loses its oldest requests beyond this number.
 */
const OVERLOAD_QUEUE_SHARE = 1 / 32;
/**
 * Delay of a timer, in milliseconds, beyond which the process is considered to have been suspended.
 */
const STALL_MS = 20;
/**
 * Minimum queue capacity. The queue holds half of the current limit, or this number if that is
 * more.
 */
const MIN_QUEUE_LENGTH = 64;
/**
 * Minimum time between two rejection reports, in milliseconds: a flood of rejections is one log
 * line.
 */
const REPORT_INTERVAL_MS = 10_000;
const RETRY_AFTER_MS = { least: 1_000, more: 2_000 };

export interface AdmissionLimits {
  /** Maximum number of concurrent calls. */
  readonly maxConcurrent: number;
  /** Maximum time that a request may wait in the queue, in milliseconds. */
  readonly maxQueueWaitMs: number;
}

/** A summary of rejections for the operator's log. */
export interface RejectionReport {
  /** Number of rejections since the last report. */
  readonly rejected: number;
  readonly running: number;
  readonly waiting: number;
  readonly limit: number;
}

/** Running and queued requests of one key. The entry exists while it has any. */
interface KeyQueue {
  readonly key: string;
  running: number;
  readonly waiting: Waiter[];
}

interface Waiter {
  readonly queuedAt: number;
  admit(): void;
  reject(error: Error): void;
}

export class AdmissionQueue {
  readonly #limit: AdaptiveLimit;
  readonly #load: Pick<LoadMonitor, "start" | "isLagging" | "isOverloaded">;
  readonly #onRejections: (load: RejectionReport) => void;
  readonly #now: () => number;
  readonly #keys = new Map<string, KeyQueue>();
  #maxWaitMs: number;
  #running = 0;
  #waiting = 0;
  /** When the queue was last empty. */
  #lastEmptyAt: number;
  /** Time at which overload ends. */
  #overloadUntil = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #timerDueAt = 0;
  /**
   * Total time in milliseconds in which the process did not run although requests waited. It is
   * subtracted from the clock, because the queue did not cause that delay.
   */
  #stalledMs = 0;
  #rejected = 0;
  #reportedAt = -Infinity;

  constructor(
    { maxConcurrent, maxQueueWaitMs }: AdmissionLimits,
    strain: Pick<LoadMonitor, "start" | "isLagging" | "isOverloaded">,
    tell: (load: RejectionReport) => void = () => {},
    now: () => number = () => performance.now(),
  ) {
    this.#onRejections = tell;
    this.#now = () => now() - this.#stalledMs;
    this.#lastEmptyAt = now();
    this.#limit = new AdaptiveLimit(maxConcurrent, this.#lastEmptyAt);
    this.#load = strain;
    this.#maxWaitMs = maxQueueWaitMs;
  }

  /** Replaces the limits. */
  setLimits({ maxConcurrent, maxQueueWaitMs }: AdmissionLimits): void {
    this.#limit.setMax(maxConcurrent);
    this.#maxWaitMs = maxQueueWaitMs;
  }

  /** The maximum time that a request may wait in the queue, in milliseconds. */
  get maxWaitMs(): number {
    return this.#maxWaitMs;
  }
  get running(): number {
    return this.#running;
  }
  get waiting(): number {
    return this.#waiting;
  }
  get maxConcurrent(): number {
    return this.#limit.current;
  }

  /** Whether a request of low priority may start: no request waits, and half of the limit is free. */
  get hasSpareCapacity(): boolean {
    const { isOverloaded, isLagging } = this.#load;
    return (
      this.#waiting === 0 && this.#running < this.#limit.current / 2 && !isOverloaded && !isLagging
    );
  }

  /** Records the delay that this process added to a call before the call was sent. */
  recordOverhead(ms: number): void {
    this.#limit.recordDuration(ms);
  }

  /**
   * Throws if the process has no capacity for more work. Called before any part of a request is
   * read.
   */
  assertNotOverloaded(): void {
    this.#load.start();
    if (this.#load.isOverloaded && this.#running > 0) throw this.#createRejection(this.#now());
  }

  /**
   * Admits a request of the key. Returns a promise if the request must wait; the promise rejects if
   * the request is rejected later. Throws if the queue is full.
   */
  acquire(key: string): Promise<void> | undefined {
    const share = this.#keyQueue(key);
    if (this.#waiting === 0) {
      if (this.#running < this.#limit.current) {
        share.running++;
        this.#running++;
        return undefined;
      }
      this.#admitWaiting(this.#now());
    }
    return this.#enqueue(share);
  }

  release(key: string): void {
    this.#running--;
    const share = this.#keys.get(key)!;
    share.running--;
    this.#removeIfIdle(share);
    this.#admitWaiting(this.#now());
  }

  #keyQueue(who: string): KeyQueue {
    let share = this.#keys.get(who);
    if (!share) this.#keys.set(who, (share = { key: who, running: 0, waiting: [] }));
    return share;
  }

  #removeIfIdle(share: KeyQueue): void {
    if (share.running === 0 && share.waiting.length === 0) this.#keys.delete(share.key);
  }

  #enqueue(share: KeyQueue): Promise<void> {
    const now = this.#now();
    if (this.#waiting === 0) this.#lastEmptyAt = now;
    if (
      this.#waiting >= Math.max(MIN_QUEUE_LENGTH, this.#limit.current / 2) &&
      !this.#evictFor(share)
    ) {
      this.#removeIfIdle(share);
      throw this.#createRejection(now);
    }
    const admitted = new Promise<void>((go, refuse) => {
      share.waiting.push({ queuedAt: now, admit: go, reject: refuse });
      this.#waiting++;
      if (!this.#timer) this.#scheduleTimer(now);
    });
    const few = Math.max(1, this.#limit.current * OVERLOAD_QUEUE_SHARE);
    if (share.waiting.length > few && this.#isOverloaded(now) && this.#isOverFairShare(share))
      this.#rejectAt(share, 0);
    return admitted;
  }

  /**
   * Whether the queue is overloaded: it has not been empty for the maximum wait, or a rejection
   * under overload was less than the maximum wait ago.
   */
  #isOverloaded(now: number): boolean {
    return (
      now < this.#overloadUntil || (this.#waiting > 0 && now - this.#lastEmptyAt > this.#maxWaitMs)
    );
  }

  /** Whether the key uses more than an equal share of the limit. */
  #isOverFairShare(share: KeyQueue): boolean {
    return loadOf(share) > this.#limit.current / this.#keys.size;
  }

  /**
   * Rejects the oldest queued request of the key with the most requests, to make room for a key
   * with fewer. Returns false if no key has more.
   */
  #evictFor(share: KeyQueue): boolean {
    let greediest: KeyQueue | undefined;
    for (const each of this.#keys.values())
      if (each.waiting.length > 0 && (!greediest || loadOf(each) > loadOf(greediest)))
        greediest = each;
    if (!greediest || loadOf(greediest) <= loadOf(share) + 1) return false;
    this.#rejectAt(greediest, 0);
    return true;
  }

  #rejectAt(share: KeyQueue, at: number): void {
    const error = this.#createRejection(this.#now());
    const [waiter] = share.waiting.splice(at, 1);
    this.#waiting--;
    this.#removeIfIdle(share);
    waiter!.reject(error);
  }

  #createRejection(now: number): Error {
    if (this.#isOverloaded(now)) this.#overloadUntil = now + this.#maxWaitMs;
    this.#rejected++;
    if (now - this.#reportedAt > REPORT_INTERVAL_MS) {
      const [refused, running, waiting] = [this.#rejected, this.#running, this.#waiting];
      this.#onRejections({ rejected: refused, running, waiting, limit: this.#limit.current });
      this.#rejected = 0;
      this.#reportedAt = now;
    }
    return createOverloadError();
  }

  /** Updates the limit and admits queued requests while there is capacity. */
  #admitWaiting(now: number): void {
    this.#limit.update(now, this.#running, this.#load.isLagging);
    if (this.#waiting === 0) {
      this.#lastEmptyAt = now;
      return;
    }
    while (this.#waiting > 0 && this.#running < this.#limit.current) this.#admitNext(now);
    if (this.#waiting === 0) this.#lastEmptyAt = now;
  }

  #admitNext(now: number): void {
    let next: KeyQueue | undefined;
    for (const each of this.#keys.values())
      if (each.waiting.length > 0 && (!next || each.running < next.running)) next = each;
    const waiter = this.#isOverloaded(now) ? next!.waiting.pop()! : next!.waiting.shift()!;
    this.#waiting--;
    this.#running++;
    next!.running++;
    waiter.admit();
  }

  /** Admits queued requests, and rejects those that have waited too long. */
  #onTimer(): void {
    this.#timer = undefined;
    const late = this.#now() - this.#timerDueAt;
    if (late > STALL_MS) this.#stalledMs += late;
    const now = this.#now();
    this.#admitWaiting(now);
    const stands = this.#isOverloaded(now);
    for (const share of this.#keys.values()) {
      const most = stands && this.#isOverFairShare(share) ? OVERLOAD_WAIT_MS : this.#maxWaitMs;
      while (share.waiting.length > 0 && now - share.waiting[0]!.queuedAt >= most)
        this.#rejectAt(share, 0);
    }
    if (this.#waiting === 0) this.#lastEmptyAt = now;
    else this.#scheduleTimer(now);
  }

  #scheduleTimer(now: number): void {
    this.#timerDueAt = now + OVERLOAD_WAIT_MS;
    this.#timer = setTimeout(() => this.#onTimer(), OVERLOAD_WAIT_MS);
  }
}

const loadOf = ({ running, waiting }: KeyQueue): number => running + waiting.length;

/**
 * Creates the rejection. `retryAfterMs` is random, so that clients that were rejected together do
 * not return together.
 */
function createOverloadError(): Error {
  const retryAfterMs = Math.round(RETRY_AFTER_MS.least + Math.random() * RETRY_AFTER_MS.more);
  const words = "The gateway is overloaded.";
  return attributeFault(
    createFault("overloaded", words, { code: OVERLOADED_CODE, retryAfterMs }),
    "gateway",
  );
}
