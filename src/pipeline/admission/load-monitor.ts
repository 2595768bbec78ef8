// Measures how late this process runs and how full its heap is. If either exceeds its limit, no new
// call is admitted, regardless of the concurrency limit. Only lateness that the process's own work
// caused counts: if the machine was busy with other processes or was suspended, rejecting clients
// would not help.
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

const TICK_MS = 100;
/** Weight of a new measurement. One late tick means little; late ticks for a second mean a lot. */
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

  /** Starts measuring. Called for each call. */
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

  /** Whether the process is so late, or its heap so full, that it can take no more calls. */
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
