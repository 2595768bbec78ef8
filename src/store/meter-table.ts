// All meters of a book, and the way back to what they were before a batch. Its clock is what they have heard of time.
import * as meters from "./meter.ts";
import type { Meter } from "./meter.ts";

/** Commands of several writers come a little out of order; more than this is a clock that was set back. */
const DISORDER_MS = 10_000;
/** Fewer than these are not worth looking through. */
const FEWEST = 512;

/** The meters of one book. */
export class MeterTable {
  readonly all = new Map<string, Meter>();
  /** By the batch that is under way. */
  #changed: Meter[] = [];
  #undoing: (() => void)[] = [];
  #clock = 0;
  #clockBefore = 0;
  #sweepAt = FEWEST;

  get changed(): Iterable<Meter> {
    return this.#changed;
  }

  /** The moment that a command of that time would meet. */
  moment(at: number): number {
    return at < this.#clock - DISORDER_MS ? at : Math.max(at, this.#clock);
  }

  /** Never back by a little; back by a lot is where time goes on, for the meters too. */
  now(at: number): number {
    if (at < this.#clock - DISORDER_MS) {
      for (const meter of this.all.values()) if (meter.at > at) this.touch(meter).at = at;
      this.#clock = at;
    } else this.#clock = Math.max(at, this.#clock);
    return this.#clock;
  }

  /** The meter, about to be changed. */
  touch(meter: Meter): Meter {
    if (meter.touched) return meter;
    const { all } = this;
    if (all.get(meter.id) === meter) {
      const before = { ...meter };
      this.#undoing.push(() => Object.assign(meter, before));
    } else {
      all.set(meter.id, meter);
      this.#undoing.push(() => all.delete(meter.id));
    }
    meter.touched = true;
    this.#changed.push(meter);
    return meter;
  }

  /** The meter of that id, about to be changed; one that was forgotten begins anew. */
  touched(id: string): Meter {
    return this.touch(this.all.get(id) ?? meters.newMeter(id));
  }

  undo(): void {
    for (const step of this.#undoing.reverse()) step();
    this.#clock = this.#clockBefore;
    this.#forget();
  }

  done(): void {
    this.#clockBefore = this.#clock;
    this.#forget();
  }

  #forget(): void {
    if (this.#undoing.length > 0) this.#undoing = [];
    for (const meter of this.#changed) meter.touched = false;
    if (this.#changed.length > 0) this.#changed = [];
  }

  /** Those that would say nothing any more. */
  sweep(): readonly string[] {
    const { all } = this;
    if (all.size < this.#sweepAt) return [];
    const gone = [...all.values()].filter((m) => meters.spent(m, this.#clock)).map((m) => m.id);
    for (const id of gone) all.delete(id);
    this.#sweepAt = Math.max(FEWEST, all.size * 2);
    return gone;
  }

  load(meter: Meter): void {
    // What it had come to before it was corrected downwards is not kept: what was told is.
    meter.peak = meter.level > meter.told ? meter.level : meter.told;
    this.all.set(meter.id, meter);
    this.#clock = this.#clockBefore = Math.max(this.#clock, meter.at);
  }

  /** What an open call took, which is not in the levels that were loaded. */
  retake(id: string, amount: bigint): void {
    const meter = this.all.get(id) ?? meters.newMeter(id);
    this.all.set(id, meter);
    meters.retake(meter, amount);
  }
}
