// All meters of a book, and the way back to what they were before a batch. Its clock is what they have heard of time.
import * as meters from "./meter.ts";
import type { Meter } from "./meter.ts";

/** Commands of several writers come a little out of order; more than this is a clock that was set back. */
const CLOCK_SKEW_MS = 10_000;
/** Fewer than these are not worth looking through. */
const MIN_SWEEP_SIZE = 512;

/** The meters of one book. */
export class MeterTable {
  readonly meters = new Map<string, Meter>();
  /** By the batch that is under way. */
  #changed: Meter[] = [];
  #rollbacks: (() => void)[] = [];
  #clock = 0;
  #clockBefore = 0;
  #nextSweepSize = MIN_SWEEP_SIZE;

  get changedMeters(): Iterable<Meter> {
    return this.#changed;
  }

  /** The moment that a command of that time would meet. */
  timeFor(at: number): number {
    return at < this.#clock - CLOCK_SKEW_MS ? at : Math.max(at, this.#clock);
  }

  /** Never back by a little; back by a lot is where time goes on, for the meters too. */
  advanceTo(at: number): number {
    if (at < this.#clock - CLOCK_SKEW_MS) {
      for (const meter of this.meters.values()) if (meter.at > at) this.markChanged(meter).at = at;
      this.#clock = at;
    } else this.#clock = Math.max(at, this.#clock);
    return this.#clock;
  }

  /** The meter, about to be changed. */
  markChanged(meter: Meter): Meter {
    if (meter.isChanged) return meter;
    const { meters } = this;
    if (meters.get(meter.id) === meter) {
      const before = { ...meter };
      this.#rollbacks.push(() => Object.assign(meter, before));
    } else {
      meters.set(meter.id, meter);
      this.#rollbacks.push(() => meters.delete(meter.id));
    }
    meter.isChanged = true;
    this.#changed.push(meter);
    return meter;
  }

  /** The meter of that id, about to be changed; one that was forgotten begins anew. */
  changeById(id: string): Meter {
    return this.markChanged(this.meters.get(id) ?? meters.createMeter(id));
  }

  rollback(): void {
    for (const step of this.#rollbacks.reverse()) step();
    this.#clock = this.#clockBefore;
    this.#clearBatch();
  }

  commit(): void {
    this.#clockBefore = this.#clock;
    this.#clearBatch();
  }

  #clearBatch(): void {
    if (this.#rollbacks.length > 0) this.#rollbacks = [];
    for (const meter of this.#changed) meter.isChanged = false;
    if (this.#changed.length > 0) this.#changed = [];
  }

  /** Those that would say nothing any more. */
  dropIdle(): readonly string[] {
    const { meters: all } = this;
    if (all.size < this.#nextSweepSize) return [];
    const gone = [...all.values()].filter((m) => meters.isIdle(m, this.#clock)).map((m) => m.id);
    for (const id of gone) all.delete(id);
    this.#nextSweepSize = Math.max(MIN_SWEEP_SIZE, all.size * 2);
    return gone;
  }

  add(meter: Meter): void {
    // What it had come to before it was corrected downwards is not kept: what was told is.
    meter.peak = meter.level > meter.notifiedLevel ? meter.level : meter.notifiedLevel;
    this.meters.set(meter.id, meter);
    this.#clock = this.#clockBefore = Math.max(this.#clock, meter.at);
  }

  /** What an open call took, which is not in the levels that were loaded. */
  restoreTake(id: string, amount: bigint): void {
    const meter = this.meters.get(id) ?? meters.createMeter(id);
    this.meters.set(id, meter);
    meters.restoreTake(meter, amount);
  }
}
