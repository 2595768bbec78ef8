// How late this process is with all that it does, and how full its memory: when either is too much no new call is taken, whatever
// the limit says. Late is what its own work has delayed: where a machine gives its time to others, or slept, refusing a client
// would make nothing faster.
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

const EVERY_MS = 100;
/** What one late tick says is little; a second of them says a lot. */
const WEIGHT = 0.3;
/** So late on average: fewer calls at once. */
const LATE_MS = 250;
/** And so late: none. */
const VERY_LATE_MS = 1_000;
/** Of the heap that what lives longer may have: V8 ends the process when that is full, however much room is left for what is young. */
const FULL = 0.95;
/** V8's limit has room in it for what is young: three semi-spaces, of 32 MiB each where no operator says otherwise. */
const YOUNG = 96 * 2 ** 20;
/** After so many ticks without a call nothing is measured. */
const IDLE_TICKS = 100;

/** In milliseconds: of the monotonic clock, and what this thread has worked. */
interface WorkClock {
  now(): number;
  worked(): number;
}

const CLOCK: WorkClock = {
  now: () => performance.now(),
  worked() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
};

export class Strain implements Disposable {
  readonly #clock: WorkClock;
  #timer: NodeJS.Timeout | undefined;
  #due = 0;
  #worked = 0;
  #late = 0;
  #full = false;
  #idle = 0;

  constructor(clock: WorkClock = CLOCK) {
    this.#clock = clock;
  }

  /** A call is here: from now on it is measured. */
  watch(): void {
    this.#idle = 0;
    if (this.#timer) return;
    this.#due = this.#clock.now() + EVERY_MS;
    this.#worked = this.#clock.worked();
    this.#timer = setInterval(() => this.#tick(this.#clock.now()), EVERY_MS);
    this.#timer.unref();
  }

  /** The process is late. */
  get strained(): boolean {
    return this.#late > LATE_MS;
  }

  /** So late, or so full, that it can take nothing. */
  get over(): boolean {
    return this.#late > VERY_LATE_MS || this.#full;
  }

  #tick(now: number): void {
    const worked = this.#clock.worked();
    const late = Math.min(now - this.#due, worked - this.#worked);
    this.#worked = worked;
    this.#late += (Math.max(0, late) - this.#late) * WEIGHT;
    this.#due = now + EVERY_MS;
    this.#full = old() > (getHeapStatistics().heap_size_limit - YOUNG) * FULL;
    if (++this.#idle > IDLE_TICKS && !this.over) this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#late = 0;
  }
}

/** What has outlived its youth, in bytes. */
function old(): number {
  let sum = 0;
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics())
    if (!name.startsWith("new_")) sum += used;
  return sum;
}
