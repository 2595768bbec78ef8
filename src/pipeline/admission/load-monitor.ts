// Measures how late this process runs and how full its heap is. If either exceeds its limit, no new
// call is admitted, regardless of the concurrency limit. Only lateness that the process's own work
// caused counts: if the machine was busy with other processes or was suspended, rejecting clients
// would not help.
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

const TICK_MS = 100;
/**
 * Weight of a new measurement. One late tick has little effect, and late ticks for a second have a
 * large effect.
 */
const SMOOTHING = 0.3;
/** Average lateness in milliseconds beyond which fewer calls run concurrently. */
const LAGGING_MS = 250;
/** Average lateness in milliseconds beyond which no call is admitted. */
const OVERLOADED_MS = 1_000;
/**
 * Share of the heap limit for the old generation beyond which no call is admitted. V8 ends the
 * process when the old generation is full, even if the young generation has space left.
 */
const MAX_HEAP_SHARE = 0.95;
/**
 * Part of V8's heap limit that the young generation takes: three semi-spaces of 32 MiB each, unless
 * the operator configured another size.
 */
const YOUNG_GENERATION_BYTES = 96 * 2 ** 20;
/** Number of ticks without a call after which measuring stops. */
const IDLE_TICKS = 100;

/** Clocks in milliseconds: the monotonic clock, and the CPU time of this thread. */
interface LoadClock {
  now(): number;
  cpuMs(): number;
}

const SYSTEM_CLOCK: LoadClock = {
  now: () => performance.now(),
  cpuMs() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
};

export class LoadMonitor implements Disposable {
  readonly #clock: LoadClock;
  #timer: NodeJS.Timeout | undefined;
  #nextTickAt = 0;
  #cpuMs = 0;
  #averageLagMs = 0;
  #isHeapFull = false;
  #idleTicks = 0;

  constructor(clock: LoadClock = SYSTEM_CLOCK) {
    this.#clock = clock;
  }

  /** Starts measuring, once. Called at the start of each call. */
  start(): void {
    this.#idleTicks = 0;
    if (this.#timer) return;
    this.#nextTickAt = this.#clock.now() + TICK_MS;
    this.#cpuMs = this.#clock.cpuMs();
    this.#timer = setInterval(() => this.#tick(this.#clock.now()), TICK_MS);
    this.#timer.unref();
  }

  /** Whether the process runs late. */
  get isLagging(): boolean {
    return this.#averageLagMs > LAGGING_MS;
  }

  /** Whether the process is too late, or its heap too full, to take more calls. */
  get isOverloaded(): boolean {
    return this.#averageLagMs > OVERLOADED_MS || this.#isHeapFull;
  }

  #tick(now: number): void {
    const worked = this.#clock.cpuMs();
    const late = Math.min(now - this.#nextTickAt, worked - this.#cpuMs);
    this.#cpuMs = worked;
    this.#averageLagMs += (Math.max(0, late) - this.#averageLagMs) * SMOOTHING;
    this.#nextTickAt = now + TICK_MS;
    this.#isHeapFull =
      oldGenerationBytes() >
      (getHeapStatistics().heap_size_limit - YOUNG_GENERATION_BYTES) * MAX_HEAP_SHARE;
    if (++this.#idleTicks > IDLE_TICKS && !this.isOverloaded) this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#averageLagMs = 0;
  }
}

/** Returns the size in bytes of all objects outside the young generation. */
function oldGenerationBytes(): number {
  let sum = 0;
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics())
    if (!name.startsWith("new_")) sum += used;
  return sum;
}

// Adapts the number of concurrent calls to the delay that this process adds to a call. The delay is
// the time from the call's last hook until its row is durable and the call is about to be sent.
// While the delay is as short as usual, the limit does not restrict. When the delay grows, serving
// fewer calls concurrently is faster. Provider latency does not count: a thousand slow streams are
// no load.

const WINDOW_MS = 100;
/**
 * Delay in milliseconds that is never a reason to reject calls, because other work on the machine
 * can cause it.
 */
const TOLERATED_DELAY_MS = 250;
/** A mean delay of more than this multiple of the baseline counts as slow. */
const SLOW_FACTOR = 3;
/**
 * How long the delay must stay high before the limit decreases, in milliseconds. A short burst also
 * causes a high delay, but ends before this time.
 */
const SUSTAINED_MS = 1_000;
/** Growth of the baseline per window of `WINDOW_MS`: about a third per minute. */
const BASELINE_GROWTH = 1.0005;
const DECREASE_FACTOR = 0.8;
const INCREASE_FACTOR = 1.2;
/**
 * Growth of a limit that is not reached. It recovers slowly, because the lower value may also apply
 * to the next burst.
 */
const RECOVERY_FACTOR = 1.02;
/** Smallest limit in calls: every process can serve this many. */
export const MIN_LIMIT = 64;

export class AdaptiveLimit {
  #max: number;
  #limit: number;
  #baselineMs = Infinity;
  #sum = 0;
  #count = 0;
  #windowStart: number;
  /** Time of the first window in an uninterrupted run of slow windows. */
  #slowSince: number | undefined;

  constructor(most: number, now: number) {
    this.#max = this.#limit = most;
    this.#windowStart = now;
  }

  get current(): number {
    return this.#limit;
  }

  /** Changes the upper bound of the limit. */
  setMax(most: number): void {
    const was = this.#max;
    this.#max = most;
    this.#limit = this.#limit === was ? most : Math.min(this.#limit, most);
  }

  /** Records the delay that this process added to one call. */
  recordDuration(ms: number): void {
    this.#sum += ms;
    this.#count++;
  }

  /**
   * Evaluates the current window if it has ended. `isLagging`: whether the whole process runs late.
   */
  update(now: number, running: number, isLagging: boolean): void {
    if (now - this.#windowStart < WINDOW_MS) return;
    this.#windowStart = now;
    const mean = this.#count > 0 ? this.#sum / this.#count : undefined;
    this.#sum = this.#count = 0;
    if (mean === undefined || !this.#isSlow(mean)) this.#slowSince = undefined;
    else this.#slowSince ??= now;
    if (isLagging || (this.#slowSince !== undefined && now - this.#slowSince >= SUSTAINED_MS))
      this.#limit = Math.max(
        Math.min(MIN_LIMIT, this.#max),
        Math.floor(Math.min(this.#limit, running) * DECREASE_FACTOR),
      );
    else {
      const isLimiting = running >= this.#limit * DECREASE_FACTOR;
      this.#limit = Math.min(
        this.#max,
        Math.ceil(this.#limit * (isLimiting ? INCREASE_FACTOR : RECOVERY_FACTOR)),
      );
    }
    if (mean !== undefined) this.#baselineMs = Math.min(mean, this.#baselineMs * BASELINE_GROWTH);
  }

  #isSlow(mean: number): boolean {
    return mean > Math.max(this.#baselineMs * SLOW_FACTOR, this.#baselineMs + TOLERATED_DELAY_MS);
  }
}
