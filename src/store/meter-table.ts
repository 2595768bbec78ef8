// All meters of a ledger. A batch can be rolled back. The table's clock is the latest time that
// commands have reported.
import * as meters from "./meter.ts";
import type { Meter } from "./meter.ts";
import type { GroupMember } from "../plugin/index.ts";

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
  /** Meters of members, by group and scope. */
  readonly #groups = new Map<string, Map<string, Set<Meter>>>();
  /** Members that are not in this table, because its store has loaded only a part of its meters. */
  readonly #membersElsewhere = new Map<string, number>();
  /** Whether a group was full of members that have left it. */
  #hasFormerMembers = false;

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
      this.#insert(meter);
      this.#rollbacks.push(() => this.#delete(meter));
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
    if (all.size < this.#nextSweepSize && !this.#hasFormerMembers) return [];
    const gone = [...all.values()].filter((m) => meters.isIdle(m, this.#clock));
    for (const meter of gone) this.#delete(meter);
    this.#nextSweepSize = Math.max(MIN_SWEEP_SIZE, all.size * 2);
    this.#hasFormerMembers = false;
    return gone.map((meter) => meter.id);
  }

  /**
   * Whether the member counts something, so that it takes a place in its group. `own`: one of its
   * meters, which is looked at first. A meter that is not in the table has no time.
   */
  isMember({ group, scope }: GroupMember, own: Meter, now: number): boolean {
    if (own.at > 0 && meters.keepsMember(own, now)) return true;
    for (const meter of this.#groups.get(group)?.get(scope) ?? NO_METERS)
      if (meters.keepsMember(meter, now)) return true;
    return false;
  }

  /**
   * Whether a group has places for more members. Members are counted one by one only if the group
   * may be full.
   */
  hasPlaces(group: string, more: number, max: number, now: number): boolean {
    const elsewhere = this.#membersElsewhere.get(group) ?? 0;
    const members = this.#groups.get(group);
    if ((members?.size ?? 0) + elsewhere + more <= max) return true;
    let count = elsewhere + more;
    for (const own of members?.values() ?? NO_MEMBERS)
      for (const meter of own)
        if (meters.keepsMember(meter, now)) {
          count++;
          break;
        }
    if (count > max) return false;
    this.#hasFormerMembers = true;
    return true;
  }

  /** Sets the number of members of a group whose meters are not in this table. */
  setMembersElsewhere(group: string, count: number): void {
    this.#membersElsewhere.set(group, count);
  }

  #insert(meter: Meter): void {
    this.meters.set(meter.id, meter);
    if (!meter.member) return;
    const { group, scope } = meter.member;
    let members = this.#groups.get(group);
    if (!members) this.#groups.set(group, (members = new Map()));
    const own = members.get(scope);
    if (own) own.add(meter);
    else members.set(scope, new Set([meter]));
  }

  #delete(meter: Meter): void {
    this.meters.delete(meter.id);
    if (!meter.member) return;
    const { group, scope } = meter.member;
    const members = this.#groups.get(group);
    const own = members?.get(scope);
    own?.delete(meter);
    if (own?.size === 0) members!.delete(scope);
    if (members?.size === 0) this.#groups.delete(group);
  }

  add(meter: Meter): void {
    // The peak before a downward correction is not stored, but the notified level is.
    meter.peak = meter.level > meter.notifiedLevel ? meter.level : meter.notifiedLevel;
    this.#insert(meter);
    this.#clock = this.#clockBefore = Math.max(this.#clock, meter.at);
  }

  /** Adds an amount that an open call took and that is not in the loaded levels. */
  restoreTake(id: string, amount: bigint): void {
    let meter = this.meters.get(id);
    if (!meter) this.#insert((meter = meters.createMeter(id)));
    meters.restoreTake(meter, amount);
  }
}

const NO_METERS: ReadonlySet<Meter> = new Set();
const NO_MEMBERS: Iterable<ReadonlySet<Meter>> = [];
