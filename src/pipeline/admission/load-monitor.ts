// How late this process is with all that it does, and how full its memory: when either is too much no new call is taken, whatever
// the limit says. Late is what its own work has delayed: where a machine gives its time to others, or slept, refusing a client
// would make nothing faster.
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

const TICK_MS = 100;
/** What one late tick says is little; a second of them says a lot. */
const SMOOTHING = 0.3;
/** So late on average: fewer calls at once. */
const LAGGING_MS = 250;
/** And so late: none. */
const OVERLOADED_MS = 1_000;
/** Of the heap that what lives longer may have: V8 ends the process when that is full, however much room is left for what is young. */
const MAX_HEAP_SHARE = 0.95;
/** V8's limit has room in it for what is young: three semi-spaces, of 32 MiB each where no operator says otherwise. */
const YOUNG_GENERATION_BYTES = 96 * 2 ** 20;
/** After so many ticks without a call nothing is measured. */
const IDLE_TICKS = 100;

/** In milliseconds: of the monotonic clock, and what this thread has worked. */
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

  /** A call is here: from now on it is measured. */
  start(): void {
    this.#idleTicks = 0;
    if (this.#timer) return;
    this.#nextTickAt = this.#clock.now() + TICK_MS;
    this.#cpuMs = this.#clock.cpuMs();
    this.#timer = setInterval(() => this.#tick(this.#clock.now()), TICK_MS);
    this.#timer.unref();
  }

  /** The process is late. */
  get isLagging(): boolean {
    return this.#averageLagMs > LAGGING_MS;
  }

  /** So late, or so full, that it can take nothing. */
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

/** What has outlived its youth, in bytes. */
function oldGenerationBytes(): number {
  let sum = 0;
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics())
    if (!name.startsWith("new_")) sum += used;
  return sum;
}
