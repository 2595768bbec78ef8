// Three ways to count against a limit; `per` says which:
//
//   minute, hour             rate: a bucket that drains steadily (GCRA), full at `max`
//   day, week, month, total  window: what was spent since its start, and what open calls hold
//   open                     lease: what open calls hold
//
// All of it is whole numbers. A bucket's level is in units × the period's milliseconds, so that it drains by
// exactly `max` a millisecond, whatever the limit is.
import {
  CROSSINGS,
  type Limit,
  type LimitCount,
  type LimitCrossing,
  type LimitState,
} from "../plugin/index.ts";
import { isCalendar, NEVER, windowOf } from "./calendar.ts";

/** A claim on one meter; `most` is the strictest limit that was claimed on it. */
export interface Claim extends Limit {
  take: bigint;
  most: bigint;
  /** Not yet kept, if no call ever took from it. */
  readonly meter: Meter;
}

/** What an open call took from a meter, as its row keeps it. */
export type Taken = readonly [id: string, take: bigint];

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
  told: bigint;
  /** What open calls hold here; for a rate the takes are in the level. */
  held: bigint;
  /** Open calls that took from here. */
  open: number;
  /** Window: when it is over. */
  readonly end: number;
  /** By the batch that is under way. */
  touched: boolean;
}

const PERIOD: { readonly [per in Limit["per"]]?: bigint } = { minute: 60_000n, hour: 3_600_000n };
/** A lease ends when a call does, and when that is cannot be known. */
const LEASE_HINT_MS = 1_000;
/** A call may owe more than it took, up to this many windows: then others wait, but not for ever. */
const DEBT = 2n;

/** unit|per|start|scope: the scope last, for it may hold anything. */
export function meterId(
  scope: string,
  unit: Limit["unit"],
  per: Limit["per"],
  now: number,
): string {
  const start = isCalendar(per) ? windowOf(per, now).start : 0;
  return `${unit}|${per}|${start}|${scope}`;
}

/** A meter of which nothing is known but its id: nothing was counted. */
export function newMeter(id: string): Meter {
  const [unit, per, start] = id.split("|", 3) as [Limit["unit"], Limit["per"], string];
  const end = isCalendar(per) ? windowOf(per, Number(start)).end : NEVER;
  const nothing = { level: 0n, at: 0, max: 0n, peak: 0n, told: 0n, held: 0n, open: 0 };
  return { id, unit, per, ...nothing, end, touched: false };
}

/** Whether it drains steadily. */
export const isRate = (meter: Meter): boolean => PERIOD[meter.per] !== undefined;

/** Claims on one meter are one claim: the largest take against the strictest limit. */
export function claimed(
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
      merged.push({ scope, unit, max, per, take, most, meter: all.get(id) ?? newMeter(id) });
      continue;
    }
    if (most < same.most) {
      same.max = max;
      same.most = most;
    }
    if (take > same.take) same.take = take;
  }
  return merged;
}

const NO_CLAIMS: readonly Claim[] = [];

/** A meter, as one claim meets it. */
export interface Seen {
  left: bigint;
  /** How long a claim has to wait for its take; 0: it may have it now. */
  waitMs: number;
  resetsAt: number;
}

/** What a claim would meet now. Changes nothing. */
export function look(claim: Claim, now: number): Seen {
  const { most, meter } = claim;
  const period = PERIOD[meter.per];
  if (period) {
    const level = drained(meter, most, now);
    const room = most * period - level;
    const short = amountOf(claim) * period - room;
    return {
      left: room > 0n ? room / period : 0n,
      waitMs:
        claim.take === 0n || short <= 0n
          ? 0
          : most > 0n
            ? Number(upTo(short, most))
            : Number(period),
      resetsAt: now + (most > 0n ? Number(upTo(level, most)) : Number(period)),
    };
  }
  const room = most - meter.level - meter.held;
  const resetsAt = meter.per === "open" ? now + LEASE_HINT_MS : meter.end;
  return {
    left: room > 0n ? room : 0n,
    // A call that takes nothing is never refused.
    waitMs: claim.take === 0n || claim.take <= room ? 0 : Math.max(1, resetsAt - now),
    resetsAt,
  };
}

/** The claim is met: it takes what it asked for. */
export function take(claim: Claim, now: number): void {
  const { meter } = claim;
  const amount = amountOf(claim);
  meter.open++;
  const period = PERIOD[meter.per];
  if (period) {
    meter.level = drained(meter, claim.most, now) + amount * period;
    meter.at = now;
  } else meter.held += amount;
  meter.max = claim.most;
}

/** A call taken up again after a restart: its takes are in a rate's level already. */
export function retake(meter: Meter, amount: bigint): void {
  meter.open++;
  if (!isRate(meter)) meter.held += amount;
}

/** The call is over: what it took becomes what it used. */
export function trueUp(meter: Meter, amount: bigint, used: bigint, now: number): void {
  meter.open--;
  const period = PERIOD[meter.per];
  if (period) {
    const level = drained(meter, meter.max, now) + (used - amount) * period;
    const most = meter.max * period * (1n + DEBT);
    meter.level = level < 0n ? 0n : level > most ? most : level;
    meter.at = now;
    return;
  }
  meter.held -= amount;
  if (meter.per !== "open") meter.level += used;
}

/** A correction after the fact counts where money is counted by the calendar. */
export function correct(meter: Meter, nano: bigint): void {
  if (meter.unit === "nano_usd" && isCalendar(meter.per)) meter.level += nano;
}

/** What a window's level has gone over that it had never reached before. From now on it has. */
export function crossings(meter: Meter): readonly LimitCrossing[] {
  const { level, peak } = meter;
  if (level <= peak) return NONE;
  meter.peak = level;
  return between(meter, peak);
}

/** What it has gone over and still is, of which no word has come to those that were to hear of it. */
export const untold = (meter: Meter): readonly LimitCrossing[] => between(meter, meter.told);

/** They have heard of this one, and so of all below it. */
export function tell(meter: Meter, { used }: Pick<LimitCrossing, "used">): void {
  if (used > meter.told) meter.told = used;
}

/** Parts of the limit that are above `from`, and that the level has come to. */
function between(meter: Meter, from: bigint): readonly LimitCrossing[] {
  const { unit, per, level: used, max, end: resetsAt } = meter;
  if (used <= from || max <= 0n || !isCalendar(per)) return NONE;
  const under = (level: bigint, percent: number) => level * 100n < max * BigInt(percent);
  const over = CROSSINGS.filter((percent) => under(from, percent) && !under(used, percent));
  if (over.length === 0) return NONE;
  const scope = meter.id.split("|").slice(3).join("|");
  return over.map((percent) => ({ scope, unit, per, percent, used, max, resetsAt }));
}

const NONE: readonly LimitCrossing[] = [];

/** Windows stay two days longer than they last, for clocks that are set back. */
export const KEPT_MS = 172_800_000;

/** Nothing would change if this meter were forgotten. */
export const spent = (meter: Meter, now: number): boolean =>
  meter.open === 0 &&
  (isRate(meter)
    ? drained(meter, meter.max, now) === 0n
    : meter.per === "open" || meter.end + KEPT_MS < now);

/** A limit as callers are told of it. */
export const state = ({ scope, unit, max, per }: Limit, { left, resetsAt }: Seen): LimitState => ({
  scope,
  unit,
  max,
  per,
  left: typeof max === "bigint" ? left : Number(left),
  resetsAt,
});

/** A limit with what it has counted, for reports: a claim that takes nothing, and leaves nothing. */
export function counted(limit: Limit, now: number, all: ReadonlyMap<string, Meter>): LimitCount {
  const [claim] = claimed([{ ...limit, take: 0n }], now, all) as [Claim];
  const { meter, most } = claim;
  const period = PERIOD[meter.per];
  return {
    ...state(claim, look(claim, now)),
    used: period ? upTo(drained(meter, most, now), period) : meter.level,
    held: meter.held,
  };
}

/** What a claim takes, as a row keeps it. */
export const taking = (claim: Claim): Taken => [claim.meter.id, amountOf(claim)];

/** A request larger than the bucket is let in when the bucket is empty, and takes all of it. */
const amountOf = (claim: Claim): bigint =>
  PERIOD[claim.per] && claim.take > claim.most ? claim.most || claim.take : claim.take;

function drained(meter: Meter, max: bigint, now: number): bigint {
  if (now <= meter.at) return meter.level;
  const level = meter.level - BigInt(Math.floor(now - meter.at)) * max;
  return level > 0n ? level : 0n;
}

const upTo = (n: bigint, d: bigint): bigint => (n + d - 1n) / d;
