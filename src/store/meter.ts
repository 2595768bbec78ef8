// Counts usage against a limit in three ways, by `per`:
//
//   minute, hour             rate: a bucket that drains steadily (GCRA) and is full at `max`
//   day, week, month, total  window: amount spent since its start, and amounts that open calls reserve
//   open                     lease: amounts that open calls reserve
//
// All amounts are integers. A bucket's level is in units × the period's milliseconds, so that it
// drains by exactly `max` per millisecond, whatever the limit is.
import {
  fail,
  LIMIT_THRESHOLDS,
  parseMemberScope,
  type GroupMember,
  type Limit,
  type LimitUsage,
  type ThresholdReached,
  type LimitState,
} from "../plugin/index.ts";

/** A claim on one meter. `limit` is the strictest limit that was claimed on it. */
export interface Claim extends Limit {
  take: bigint;
  limit: bigint;
  /** The meter. If no call took from it yet, it is not in the table. */
  readonly meter: Meter;
}

/** Amount that an open call took from a meter, as stored in its row. */
export type MeterAmount = readonly [id: string, take: bigint];

/**
 * Usage of one limit, for one scope in one window. A store that persists meters keeps `id`,
 * `level`, `at`, `max`, and `notifiedLevel`.
 */
export interface Meter {
  readonly id: string;
  readonly unit: Limit["unit"];
  readonly per: Limit["per"];
  /** The member that the meter belongs to, if its scope is a member of a group. */
  readonly member: GroupMember | undefined;
  /** Rate: level of the bucket. Window: amount spent. Lease: always 0. */
  level: bigint;
  /** Rate: time at which the level applied. Member: time of its last call. */
  at: number;
  /**
   * The limit that was claimed last. A rate drains by it, and a window's thresholds refer to it.
   */
  max: bigint;
  /**
   * Window: highest level up to now. After a downward correction, thresholds are not reported again
   * when the level rises to this value.
   */
  peak: bigint;
  /** Window: level up to which thresholds were delivered to observers. */
  notifiedLevel: bigint;
  /** Member: IDs of the last changes by operators, the newest first. */
  changes: readonly string[];
  /** Amount that open calls reserve. For a rate, it is included in the level. */
  reserved: bigint;
  /** Number of open calls that took from this meter. */
  openCalls: number;
  /** Window: its end. */
  readonly end: number;
  /** Whether the current batch changed the meter. */
  isChanged: boolean;
  /** The values that the store has written. Undefined if they are unknown. */
  stored: StoredMeter | undefined;
}

/** The values of a meter that a store keeps. Amounts of open calls are in their rows. */
export type StoredMeter = Readonly<Pick<Meter, "level" | "at" | "max" | "notifiedLevel">>;

/**
 * Whether a store must write the meter. A call that only reserves an amount of a window changes no
 * stored value.
 */
export function needsWrite(meter: Meter): boolean {
  const { stored, level, max, notifiedLevel } = meter;
  return (
    stored === undefined ||
    level !== stored.level ||
    max !== stored.max ||
    notifiedLevel !== stored.notifiedLevel ||
    (isRate(meter) && meter.at !== stored.at) ||
    // After a restart, a member may become idle earlier by this part of its idle time.
    (meter.member !== undefined && meter.at - stored.at >= meter.member.idleMs / 8)
  );
}

const RATE_PERIOD_MS: { readonly [per in Limit["per"]]?: bigint } = {
  minute: 60_000n,
  hour: 3_600_000n,
};
/** Retry delay in milliseconds for leases. A lease ends with its call, and that time is unknown. */
const CONCURRENCY_RETRY_MS = 1_000;
/**
 * Maximum debt in windows by which the usage of a call may exceed its reservation. Other calls wait
 * until the debt has drained, but not indefinitely.
 */
const MAX_DEBT_WINDOWS = 2n;

/**
 * Returns a meter's id: unit|per|start|scope. The scope is last, because it may contain any
 * character.
 */
export function meterId(
  scope: string,
  unit: Limit["unit"],
  per: Limit["per"],
  now: number,
): string {
  const start = isCalendarPeriod(per) ? calendarWindow(per, now).start : 0;
  return `${unit}|${per}|${start}|${scope}`;
}

/** The ID of a meter, and the time for which it applies. */
interface CachedId {
  readonly unit: Limit["unit"];
  readonly per: Limit["per"];
  readonly start: number;
  readonly end: number;
  readonly id: string;
}

/** IDs of meters by scope. A call of a scope usually follows other calls of the same scope. */
const CACHED_IDS = new Map<string, CachedId[]>();
const MAX_CACHED_SCOPES = 10_000;

/** Returns a meter's ID. The text of an ID that was returned before is not built again. */
function cachedMeterId({ scope, unit, per }: Limit, now: number): string {
  let own = CACHED_IDS.get(scope);
  if (own) {
    for (const each of own)
      if (each.unit === unit && each.per === per && now >= each.start && now < each.end)
        return each.id;
  } else {
    if (CACHED_IDS.size >= MAX_CACHED_SCOPES) CACHED_IDS.clear();
    CACHED_IDS.set(scope, (own = []));
  }
  const { start, end } = isCalendarPeriod(per) ? calendarWindow(per, now) : ALWAYS;
  const id = meterId(scope, unit, per, now);
  const before = own.findIndex((each) => each.unit === unit && each.per === per);
  const entry = { unit, per, start, end, id };
  if (before < 0) own.push(entry);
  else own[before] = entry;
  return id;
}
const ALWAYS = { start: -Infinity, end: Infinity };

const NO_CHANGES: readonly string[] = [];

/** Creates a meter with no usage. */
export function createMeter(id: string): Meter {
  const [unit, per, start] = id.split("|", 3) as [Limit["unit"], Limit["per"], string];
  const end = isCalendarPeriod(per) ? calendarWindow(per, Number(start)).end : MAX_DATE_MS;
  const member = parseMemberScope(id.slice(unit.length + per.length + start.length + 3));
  const nothing = {
    level: 0n,
    at: 0,
    max: 0n,
    peak: 0n,
    notifiedLevel: 0n,
    changes: NO_CHANGES,
    reserved: 0n,
    openCalls: 0,
  };
  return { id, unit, per, member, ...nothing, end, isChanged: false, stored: undefined };
}

/**
 * Whether a `total` window starts again: its scope is a member that reserves nothing and has made
 * no call for its idle time.
 */
const hasExpired = ({ member, per, reserved, at }: Meter, now: number): boolean =>
  member !== undefined && per === "total" && reserved === 0n && now - at >= member.idleMs;

/** Starts an expired window again, and records the time of the member's call. */
function touchMember(meter: Meter, now: number): void {
  if (meter.member === undefined) return;
  if (hasExpired(meter, now)) meter.level = meter.peak = meter.notifiedLevel = 0n;
  if (!isRate(meter)) meter.at = now;
}

/** Whether the meter is a rate, which drains steadily. */
export const isRate = (meter: Meter): boolean => RATE_PERIOD_MS[meter.per] !== undefined;

/**
 * Merges claims on the same meter into one claim: the largest amount against the strictest limit.
 */
export function mergeClaims(
  claims: readonly (Limit & { take: bigint })[],
  now: number,
  all: ReadonlyMap<string, Meter>,
): readonly Claim[] {
  if (claims.length === 0) return NO_CLAIMS;
  const merged: Claim[] = [];
  for (const limitClaim of claims) {
    const { scope, unit, max, per, take, maxMembers, countsOnly } = limitClaim;
    const id = cachedMeterId(limitClaim, now);
    const most = BigInt(max);
    const same = claimOn(id, merged);
    if (!same) {
      merged.push({
        scope,
        unit,
        max,
        per,
        maxMembers,
        countsOnly,
        take,
        limit: most,
        meter: all.get(id) ?? createMeter(id),
      });
      continue;
    }
    // A limit that denies calls takes precedence over one that only counts them.
    const isStricter = countsOnly === same.countsOnly ? most < same.limit : !countsOnly;
    if (!countsOnly) same.countsOnly = undefined;
    if (isStricter) {
      same.max = max;
      same.limit = most;
    }
    if (take > same.take) same.take = take;
  }
  return merged;
}

const NO_CLAIMS: readonly Claim[] = [];

function claimOn(id: string, claims: readonly Claim[]): Claim | undefined {
  for (const claim of claims) if (claim.meter.id === id) return claim;
  return undefined;
}

/** State of a meter for one claim. */
export interface MeterReading {
  remaining: bigint;
  /** Milliseconds until the meter has room for the claim. 0: it has room now. */
  waitMs: number;
  resetsAt: number;
}

/** Returns the state of a meter for a claim. Does not change the meter. */
export function readMeter(claim: Claim, now: number): MeterReading {
  const { limit, meter } = claim;
  const period = RATE_PERIOD_MS[meter.per];
  if (period) {
    const level = drainedLevel(meter, limit, now);
    const headroom = limit * period - level;
    const short = effectiveTake(claim) * period - headroom;
    return {
      remaining: headroom > 0n ? headroom / period : 0n,
      waitMs:
        claim.take === 0n || short <= 0n
          ? 0
          : limit > 0n
            ? Number(divideRoundingUp(short, limit))
            : Number(period),
      resetsAt: now + (limit > 0n ? Number(divideRoundingUp(level, limit)) : Number(period)),
    };
  }
  const headroom = limit - levelOf(meter, now) - meter.reserved;
  const resetsAt =
    meter.per === "open"
      ? now + CONCURRENCY_RETRY_MS
      : meter.member && meter.per === "total"
        ? Math.max(now, meter.at) + meter.member.idleMs
        : meter.end;
  return {
    remaining: headroom > 0n ? headroom : 0n,
    // A call that takes no amount is never denied.
    waitMs: claim.take === 0n || claim.take <= headroom ? 0 : Math.max(1, resetsAt - now),
    resetsAt,
  };
}

/** Whether a window has room for a claim. False for a rate, even if it has room. */
export const hasRoom = ({ take, limit, meter }: Claim, now: number): boolean =>
  !isRate(meter) && take <= limit - levelOf(meter, now) - meter.reserved;

/** Returns the amount that a window has counted. */
const levelOf = (meter: Meter, now: number): bigint => (hasExpired(meter, now) ? 0n : meter.level);

/** Takes the claim's amount. */
export function takeClaim(claim: Claim, now: number): void {
  const { meter } = claim;
  touchMember(meter, now);
  const amount = effectiveTake(claim);
  meter.openCalls++;
  const period = RATE_PERIOD_MS[meter.per];
  if (period) {
    meter.level = drainedLevel(meter, claim.limit, now) + amount * period;
    meter.at = now;
  } else meter.reserved += amount;
  meter.max = claim.limit;
}

/**
 * Restores the amount of an open call after a restart. For a rate, the amount is already in the
 * level.
 */
export function restoreTake(meter: Meter, amount: bigint): void {
  meter.openCalls++;
  if (!isRate(meter)) meter.reserved += amount;
}

/** Ends a call: replaces the reserved amount by the amount used. */
export function settleTake(meter: Meter, amount: bigint, used: bigint, now: number): void {
  meter.openCalls--;
  touchMember(meter, now);
  const period = RATE_PERIOD_MS[meter.per];
  if (period) {
    const level = drainedLevel(meter, meter.max, now) + (used - amount) * period;
    const most = meter.max * period * (1n + MAX_DEBT_WINDOWS);
    meter.level = level < 0n ? 0n : level > most ? most : level;
    meter.at = now;
    return;
  }
  meter.reserved -= amount;
  if (meter.per !== "open") meter.level += used;
}

/** Sets the usage of a member to 0, for an operator. The time of its last call stays. */
export function resetMember(meter: Meter): void {
  meter.level = meter.peak = meter.notifiedLevel = 0n;
}

/** Number of changes of a member whose repetition is detected. */
const MAX_CHANGES = 8;

/**
 * Subtracts an amount from the usage of a member, for an operator. The caller checks that the
 * change is not a repetition.
 */
export function raiseMember(
  meter: Meter,
  { id, amount, from }: { readonly id: string; readonly amount: bigint; readonly from: bigint },
  now: number,
): void {
  if (levelOf(meter, now) < from)
    fail(
      "invalid",
      "The usage of the member is lower than when it was read, because it was changed at the same time. Read the usage with tollgate scopes show before you repeat the change.",
      { code: "version_conflict" },
    );
  touchMember(meter, now);
  meter.level -= amount;
  meter.changes = [id, ...meter.changes.slice(0, MAX_CHANGES - 1)];
}

/** Applies a later correction. Only monetary limits with calendar windows are affected. */
export function correctLevel(meter: Meter, nano: bigint, now: number): void {
  if (meter.unit !== "nano_usd" || !isCalendarPeriod(meter.per) || hasExpired(meter, now)) return;
  meter.level += nano;
}

/**
 * Returns the thresholds that a window's level has reached for the first time, and updates its
 * peak.
 */
export function takeReachedThresholds(meter: Meter): readonly ThresholdReached[] {
  const { level, peak } = meter;
  if (level <= peak) return NO_THRESHOLDS;
  meter.peak = level;
  return thresholdsAbove(meter, peak);
}

/** Returns the thresholds that the meter has reached and that were not delivered to observers. */
export const undeliveredThresholds = (meter: Meter): readonly ThresholdReached[] =>
  thresholdsAbove(meter, meter.notifiedLevel);

/** Marks a threshold and all lower thresholds as delivered. */
export function markDelivered(meter: Meter, { used }: Pick<ThresholdReached, "used">): void {
  if (used > meter.notifiedLevel) meter.notifiedLevel = used;
}

/** Returns the thresholds above `from` that the level has reached. */
function thresholdsAbove(meter: Meter, from: bigint): readonly ThresholdReached[] {
  const { unit, per, level: used, max, member } = meter;
  if (used <= from || max <= 0n || !isCalendarPeriod(per)) return NO_THRESHOLDS;
  // Most calls leave the level below the lowest threshold.
  if (used * 100n < max * LOWEST_THRESHOLD) return NO_THRESHOLDS;
  const under = (level: bigint, percent: number) => level * 100n < max * BigInt(percent);
  const over = LIMIT_THRESHOLDS.filter((percent) => under(from, percent) && !under(used, percent));
  if (over.length === 0) return NO_THRESHOLDS;
  const scope = meter.id.split("|").slice(3).join("|");
  const resetsAt = member && per === "total" ? meter.at + member.idleMs : meter.end;
  return over.map((percent) => ({ scope, unit, per, percent, used, max, resetsAt }));
}

const NO_THRESHOLDS: readonly ThresholdReached[] = [];
const LOWEST_THRESHOLD = BigInt(Math.min(...LIMIT_THRESHOLDS));

/** Windows are kept for two additional days, in case the clock is set back. */
export const WINDOW_GRACE_MS = 172_800_000;

/** Whether the meter can be dropped without any effect. */
export const isIdle = (meter: Meter, now: number): boolean =>
  meter.openCalls === 0 &&
  (meter.member === undefined || now - meter.at >= meter.member.idleMs) &&
  (isRate(meter)
    ? drainedLevel(meter, meter.max, now) === 0n
    : meter.per === "open" || hasExpired(meter, now) || meter.end + WINDOW_GRACE_MS < now);

/**
 * Whether the meter's member is present in its group: during its idle time, and as long as one of
 * its windows counts something. A window that has ended is kept for some time, but its member has
 * left.
 */
export const keepsMember = (meter: Meter, now: number): boolean =>
  meter.openCalls > 0 ||
  meter.reserved > 0n ||
  (meter.member !== undefined && now - meter.at < meter.member.idleMs) ||
  (isCalendarPeriod(meter.per) && meter.per !== "total" && meter.level > 0n && meter.end > now);

/**
 * Whether the level of the meter is the sum of amounts in rows. A rate drains, and a window of a
 * member starts again, at times that rows do not contain.
 */
export const isSumOfRows = ({ per, member }: Pick<Meter, "per" | "member">): boolean =>
  isCalendarPeriod(per) && (member === undefined || per !== "total");

/** Returns the state of a limit in the form for callers. */
export const limitState = (
  { scope, unit, max, per }: Limit,
  { remaining, resetsAt }: MeterReading,
): LimitState => ({
  scope,
  unit,
  max,
  per,
  remaining: typeof max === "bigint" ? remaining : Number(remaining),
  resetsAt,
});

/**
 * Returns a limit with its usage, for reports. It uses a claim that takes nothing, so it changes
 * nothing.
 */
export function limitUsage(limit: Limit, now: number, all: ReadonlyMap<string, Meter>): LimitUsage {
  const [claim] = mergeClaims([{ ...limit, take: 0n }], now, all) as [Claim];
  const { meter, limit: most } = claim;
  const period = RATE_PERIOD_MS[meter.per];
  return {
    ...limitState(claim, readMeter(claim, now)),
    used: period ? divideRoundingUp(drainedLevel(meter, most, now), period) : levelOf(meter, now),
    reserved: meter.reserved,
  };
}

/** Returns the amount that a claim takes, as stored in a row. */
export const toMeterAmount = (claim: Claim): MeterAmount => [claim.meter.id, effectiveTake(claim)];

/**
 * Amount that a claim takes. A request that is larger than the bucket is admitted when the bucket
 * is empty, and takes the whole bucket.
 */
const effectiveTake = (claim: Claim): bigint =>
  RATE_PERIOD_MS[claim.per] && claim.take > claim.limit ? claim.limit || claim.take : claim.take;

function drainedLevel(meter: Meter, max: bigint, now: number): bigint {
  if (now <= meter.at) return meter.level;
  const level = meter.level - BigInt(Math.floor(now - meter.at)) * max;
  return level > 0n ? level : 0n;
}

const divideRoundingUp = (n: bigint, d: bigint): bigint => (n + d - 1n) / d;

// Calendar windows of budgets, in UTC: a day, an ISO week from Monday, a month, or all time.

/** Last moment that a Date can represent. A `total` window resets then. */
const MAX_DATE_MS = 8_640_000_000_000_000;
const DAY_MS = 86_400_000;

/** Calendar periods. */
type CalendarPeriod = "day" | "week" | "month" | "total";

/** Whether a limit counts in calendar windows, which have a start and an end. */
export const isCalendarPeriod = (per: string): per is CalendarPeriod =>
  per === "day" || per === "week" || per === "month" || per === "total";

/** A window in Unix milliseconds. `end` is exclusive. */
interface CalendarWindow {
  start: number;
  end: number;
}

/** Returns the window that contains a moment. */
function calendarWindow(per: CalendarPeriod, at: number): CalendarWindow {
  const day = Math.floor(at / DAY_MS) * DAY_MS;
  switch (per) {
    case "day":
      return { start: day, end: day + DAY_MS };
    case "week": {
      // January 1, 1970 was a Thursday.
      const start = day - ((Math.floor(at / DAY_MS) + 3) % 7) * DAY_MS;
      return { start, end: start + 7 * DAY_MS };
    }
    case "month": {
      const date = new Date(at);
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
      return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
    }
    case "total":
      return { start: 0, end: MAX_DATE_MS };
  }
}
