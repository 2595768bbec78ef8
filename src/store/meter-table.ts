// All meters of a ledger. A batch can be rolled back. The table's clock is the latest time that
// commands have reported.
import * as meters from "./meter.ts";
import type { Meter } from "./meter.ts";

/**
 * Milliseconds by which commands of several writers may be out of order. If a command is earlier by
 * more than this, the clock was set back.
 */
const CLOCK_SKEW_MS = 10_000;
/** Number of meters above which idle meters are dropped. */
const MIN_SWEEP_SIZE = 512;

/** The meters of one ledger. */
export class MeterTable {
  readonly meters = new Map<string, Meter>();
  /** Meters that the current batch changed. */
  #changed: Meter[] = [];
  #rollbacks: (() => void)[] = [];
  #clock = 0;
  #clockBefore = 0;
  #nextSweepSize = MIN_SWEEP_SIZE;

  get changedMeters(): Iterable<Meter> {
    return this.#changed;
  }

  /** Returns the time at which a command with this timestamp would be applied. */
  timeFor(at: number): number {
    return at < this.#clock - CLOCK_SKEW_MS ? at : Math.max(at, this.#clock);
  }

  /**
   * Advances the clock. A small step back is ignored. After a large step back, the clock and the
   * meters continue from the earlier time.
   */
  advanceTo(at: number): number {
    if (at < this.#clock - CLOCK_SKEW_MS) {
      for (const meter of this.meters.values()) if (meter.at > at) this.markChanged(meter).at = at;
      this.#clock = at;
    } else this.#clock = Math.max(at, this.#clock);
    return this.#clock;
  }

  /** Marks a meter before it is changed. */
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

  /** Returns the meter with this id, marked as changed. A dropped meter is created again. */
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

  /** Drops meters that no longer have any effect, and returns their ids. */
  dropIdle(): readonly string[] {
    const { meters: all } = this;
    if (all.size < this.#nextSweepSize) return [];
    const gone = [...all.values()].filter((m) => meters.isIdle(m, this.#clock)).map((m) => m.id);
    for (const id of gone) all.delete(id);
    this.#nextSweepSize = Math.max(MIN_SWEEP_SIZE, all.size * 2);
    return gone;
  }

  add(meter: Meter): void {
    // The peak before a downward correction is not stored, but the notified level is.
    meter.peak = meter.level > meter.notifiedLevel ? meter.level : meter.notifiedLevel;
    this.meters.set(meter.id, meter);
    this.#clock = this.#clockBefore = Math.max(this.#clock, meter.at);
  }

  /** Adds an amount that an open call took and that is not in the loaded levels. */
  restoreTake(id: string, amount: bigint): void {
    const meter = this.meters.get(id) ?? meters.createMeter(id);
    this.meters.set(id, meter);
    meters.restoreTake(meter, amount);
  }
}
