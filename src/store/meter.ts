// Three ways to count against a limit; `per` says which:
//
//   minute, hour             rate: a bucket that drains steadily (GCRA), full at `max`
//   day, week, month, total  window: what was spent since its start, and what open calls hold
//   open                     lease: what open calls hold
//
// All of it is whole numbers. A bucket's level is in units × the period's milliseconds, so that it drains by
// exactly `max` a millisecond, whatever the limit is.
import {
  LIMIT_THRESHOLDS,
  type Limit,
  type LimitUsage,
  type ThresholdReached,
  type LimitState,
} from "../plugin/index.ts";
import { isCalendarPeriod, MAX_DATE_MS, calendarWindow } from "./calendar-window.ts";

/** A claim on one meter; `most` is the strictest limit that was claimed on it. */
export interface Claim extends Limit {
  take: bigint;
  limit: bigint;
  /** Not yet kept, if no call ever took from it. */
  readonly meter: Meter;
}

/** What an open call took from a meter, as its row keeps it. */
export type MeterAmount = readonly [id: string, take: bigint];

/** What one limit has counted, for one scope in one window. A store that keeps meters keeps id, level, at, max and told. */
export interface Meter {
  readonly id: string;
  readonly unit: Limit["unit"];
  readonly per: Limit["per"];
  /** Rate: the bucket's level. Window: spent. Lease: always 0. */
  level: bigint;
  /** Rate: when the level was right. */
  at: number;
  /** The limit that was claimed last: a rate drains by it, a window is told of when it nears it. */
  max: bigint;
  /** Window: the most that it ever came to. What was corrected downwards and comes to the same again is no news. */
  peak: bigint;
  /** Window: up to where crossings have been told to those that were to hear of them. */
  notifiedLevel: bigint;
  /** What open calls hold here; for a rate the takes are in the level. */
  reserved: bigint;
  /** Open calls that took from here. */
  openCalls: number;
  /** Window: when it is over. */
  readonly end: number;
  /** By the batch that is under way. */
  isChanged: boolean;
}

const RATE_PERIOD_MS: { readonly [per in Limit["per"]]?: bigint } = {
  minute: 60_000n,
  hour: 3_600_000n,
};
/** A lease ends when a call does, and when that is cannot be known. */
const CONCURRENCY_RETRY_MS = 1_000;
/** A call may owe more than it took, up to this many windows: then others wait, but not for ever. */
const MAX_DEBT_WINDOWS = 2n;

/** unit|per|start|scope: the scope last, for it may hold anything. */
export function meterId(
  scope: string,
  unit: Limit["unit"],
  per: Limit["per"],
  now: number,
): string {
  const start = isCalendarPeriod(per) ? calendarWindow(per, now).start : 0;
  return `${unit}|${per}|${start}|${scope}`;
}

/** A meter of which nothing is known but its id: nothing was counted. */
export function createMeter(id: string): Meter {
  const [unit, per, start] = id.split("|", 3) as [Limit["unit"], Limit["per"], string];
  const end = isCalendarPeriod(per) ? calendarWindow(per, Number(start)).end : MAX_DATE_MS;
  const nothing = {
    level: 0n,
    at: 0,
    max: 0n,
    peak: 0n,
    notifiedLevel: 0n,
    reserved: 0n,
    openCalls: 0,
  };
  return { id, unit, per, ...nothing, end, isChanged: false };
}

/** Whether it drains steadily. */
export const isRate = (meter: Meter): boolean => RATE_PERIOD_MS[meter.per] !== undefined;

/** Claims on one meter are one claim: the largest take against the strictest limit. */
export function mergeClaims(
  claims: readonly (Limit & { take: bigint })[],
  now: number,
  all: ReadonlyMap<string, Meter>,
): readonly Claim[] {
  if (claims.length === 0) return NO_CLAIMS;
  const merged: Claim[] = [];
  for (const { scope, unit, max, per, take } of claims) {
    const id = meterId(scope, unit, per, now);
    const most = BigInt(max);
    const same = merged.find(({ meter }) => meter.id === id);
    if (!same) {
      merged.push({
        scope,
        unit,
        max,
        per,
        take,
        limit: most,
        meter: all.get(id) ?? createMeter(id),
      });
      continue;
    }
    if (most < same.limit) {
      same.max = max;
      same.limit = most;
    }
    if (take > same.take) same.take = take;
  }
  return merged;
}

const NO_CLAIMS: readonly Claim[] = [];

/** A meter, as one claim meets it. */
export interface MeterReading {
  remaining: bigint;
  /** How long a claim has to wait for its take; 0: it may have it now. */
  waitMs: number;
  resetsAt: number;
}

/** What a claim would meet now. Changes nothing. */
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
  const headroom = limit - meter.level - meter.reserved;
  const resetsAt = meter.per === "open" ? now + CONCURRENCY_RETRY_MS : meter.end;
  return {
    remaining: headroom > 0n ? headroom : 0n,
    // A call that takes nothing is never refused.
    waitMs: claim.take === 0n || claim.take <= headroom ? 0 : Math.max(1, resetsAt - now),
    resetsAt,
  };
}

/** The claim is met: it takes what it asked for. */
export function takeClaim(claim: Claim, now: number): void {
  const { meter } = claim;
  const amount = effectiveTake(claim);
  meter.openCalls++;
  const period = RATE_PERIOD_MS[meter.per];
  if (period) {
    meter.level = drainedLevel(meter, claim.limit, now) + amount * period;
    meter.at = now;
  } else meter.reserved += amount;
  meter.max = claim.limit;
}

/** A call taken up again after a restart: its takes are in a rate's level already. */
export function restoreTake(meter: Meter, amount: bigint): void {
  meter.openCalls++;
  if (!isRate(meter)) meter.reserved += amount;
}

/** The call is over: what it took becomes what it used. */
export function settleTake(meter: Meter, amount: bigint, used: bigint, now: number): void {
  meter.openCalls--;
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

/** A correction after the fact counts where money is counted by the calendar. */
export function correctLevel(meter: Meter, nano: bigint): void {
  if (meter.unit === "nano_usd" && isCalendarPeriod(meter.per)) meter.level += nano;
}

/** What a window's level has gone over that it had never reached before. From now on it has. */
export function takeReachedThresholds(meter: Meter): readonly ThresholdReached[] {
  const { level, peak } = meter;
  if (level <= peak) return NO_THRESHOLDS;
  meter.peak = level;
  return thresholdsAbove(meter, peak);
}

/** What it has gone over and still is, of which no word has come to those that were to hear of it. */
export const undeliveredThresholds = (meter: Meter): readonly ThresholdReached[] =>
  thresholdsAbove(meter, meter.notifiedLevel);

/** They have heard of this one, and so of all below it. */
export function markDelivered(meter: Meter, { used }: Pick<ThresholdReached, "used">): void {
  if (used > meter.notifiedLevel) meter.notifiedLevel = used;
}

/** Parts of the limit that are above `from`, and that the level has come to. */
function thresholdsAbove(meter: Meter, from: bigint): readonly ThresholdReached[] {
  const { unit, per, level: used, max, end: resetsAt } = meter;
  if (used <= from || max <= 0n || !isCalendarPeriod(per)) return NO_THRESHOLDS;
  const under = (level: bigint, percent: number) => level * 100n < max * BigInt(percent);
  const over = LIMIT_THRESHOLDS.filter((percent) => under(from, percent) && !under(used, percent));
  if (over.length === 0) return NO_THRESHOLDS;
  const scope = meter.id.split("|").slice(3).join("|");
  return over.map((percent) => ({ scope, unit, per, percent, used, max, resetsAt }));
}

const NO_THRESHOLDS: readonly ThresholdReached[] = [];

/** Windows stay two days longer than they last, for clocks that are set back. */
export const WINDOW_GRACE_MS = 172_800_000;

/** Nothing would change if this meter were forgotten. */
export const isIdle = (meter: Meter, now: number): boolean =>
  meter.openCalls === 0 &&
  (isRate(meter)
    ? drainedLevel(meter, meter.max, now) === 0n
    : meter.per === "open" || meter.end + WINDOW_GRACE_MS < now);

/** A limit as callers are told of it. */
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

/** A limit with what it has counted, for reports: a claim that takes nothing, and leaves nothing. */
export function limitUsage(limit: Limit, now: number, all: ReadonlyMap<string, Meter>): LimitUsage {
  const [claim] = mergeClaims([{ ...limit, take: 0n }], now, all) as [Claim];
  const { meter, limit: most } = claim;
  const period = RATE_PERIOD_MS[meter.per];
  return {
    ...limitState(claim, readMeter(claim, now)),
    used: period ? divideRoundingUp(drainedLevel(meter, most, now), period) : meter.level,
    reserved: meter.reserved,
  };
}

/** What a claim takes, as a row keeps it. */
export const toMeterAmount = (claim: Claim): MeterAmount => [claim.meter.id, effectiveTake(claim)];

/** A request larger than the bucket is let in when the bucket is empty, and takes all of it. */
const effectiveTake = (claim: Claim): bigint =>
  RATE_PERIOD_MS[claim.per] && claim.take > claim.limit ? claim.limit || claim.take : claim.take;

function drainedLevel(meter: Meter, max: bigint, now: number): bigint {
  if (now <= meter.at) return meter.level;
  const level = meter.level - BigInt(Math.floor(now - meter.at)) * max;
  return level > 0n ? level : 0n;
}

const divideRoundingUp = (n: bigint, d: bigint): bigint => (n + d - 1n) / d;
