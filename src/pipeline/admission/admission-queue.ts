// Which requests are let in when there are more than can be served: as many at once as the limit says, some more for a short
// while, and the rest is refused before its body is read. While the queue comes and goes it is served in its order. One that stands
// is overload: then the newest goes first, for its client still waits, and the others are refused within milliseconds instead of
// in the end. It lasts until none was refused for a while: that refusals emptied the queue says nothing. A key that has less than
// its share goes before one that has more, and waits longer.
import { createFault } from "../../model/error.ts";
import { attributeFault } from "../faults/fault-source.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import type { LoadMonitor } from "./load-monitor.ts";

/** The code of every refusal here. */
export const OVERLOADED_CODE = "gateway_overloaded";

/** In overload: a slot that is about to be free is worth so long a wait, */
const OVERLOAD_WAIT_MS = 2;
/** to so many of a key for each slot there is. Those that wait longer or are more are refused, the oldest first. */
const OVERLOAD_QUEUE_SHARE = 1 / 32;
/** A timer that is later than this: the process did not run. */
const STALL_MS = 20;
/** The queue has half of what is served, and this at least. */
const MIN_QUEUE_LENGTH = 64;
/** A flood of refusals is one line in so long. */
const REPORT_INTERVAL_MS = 10_000;
const RETRY_AFTER_MS = { least: 1_000, more: 2_000 };

export interface AdmissionLimits {
  /** Calls at once. */
  readonly maxConcurrent: number;
  /** How long a request may wait for its turn. */
  readonly maxQueueWaitMs: number;
}

/** What an operator is told of refusals. */
export interface RejectionReport {
  /** Since the last word of it. */
  readonly rejected: number;
  readonly running: number;
  readonly waiting: number;
  readonly limit: number;
}

/** What one key has here. It stands in the map while it has anything. */
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
  /** When the queue was empty last. */
  #lastEmptyAt: number;
  /** Overload lasts until then. */
  #overloadUntil = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #timerDueAt = 0;
  /** Time in which the process did not run, though something waited here: it was not the queue that took it. */
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

  /** Other limits, from now on. */
  setLimits({ maxConcurrent, maxQueueWaitMs }: AdmissionLimits): void {
    this.#limit.setMax(maxConcurrent);
    this.#maxWaitMs = maxQueueWaitMs;
  }

  /** How long a request may wait for its turn. */
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

  /** What a call cost this process before it was sent. */
  recordOverhead(ms: number): void {
    this.#limit.recordDuration(ms);
  }

  /** Before anything is asked of a request: while the process can take nothing more it is refused. */
  assertNotOverloaded(): void {
    this.#load.start();
    if (this.#load.isOverloaded && this.#running > 0) throw this.#createRejection(this.#now());
  }

  /** Throws where it is one too many. A promise: it waits for its turn, and may be refused. */
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

  /** The queue has not been empty for as long as one may wait in it, or was so a moment ago: there is too much. */
  #isOverloaded(now: number): boolean {
    return (
      now < this.#overloadUntil || (this.#waiting > 0 && now - this.#lastEmptyAt > this.#maxWaitMs)
    );
  }

  /** More than its part of what there is. */
  #isOverFairShare(share: KeyQueue): boolean {
    return loadOf(share) > this.#limit.current / this.#keys.size;
  }

  /** The key with the most here gives up its oldest place to one that has less. */
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

  /** The limit is looked at, and whatever there is room for goes in. */
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

  /** Those that have waited long enough. */
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

/** At a time of its own for each client: those that were refused together do not come back together. */
function createOverloadError(): Error {
  const retryAfterMs = Math.round(RETRY_AFTER_MS.least + Math.random() * RETRY_AFTER_MS.more);
  const words = "The gateway has more to do than it can.";
  return attributeFault(
    createFault("overloaded", words, { code: OVERLOADED_CODE, retryAfterMs }),
    "gateway",
  );
}
