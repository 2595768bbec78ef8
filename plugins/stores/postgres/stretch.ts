// The stretch that a report is of: its whole days, which are added up already, and where days of a zone begin in it.
import { type TotalsQuery, zoneClock } from "tollgate/store";
import { DAY_MS } from "./summing.ts";
import type { Values } from "./where.ts";

/** Days and hours of every zone begin at one of these. */
const QUARTER_MS = 900_000;
/** A whole number of quarters, and less than any day has. */
const SHORT_MS = 20 * 3_600_000;

/** Whole days of UTC that the query asks for, and whether it asks for parts of others too; undefined: no day's sum can say it. */
export function daysOf({
  by,
  zone = "UTC",
  ...query
}: TotalsQuery): { from: number; to: number; cut: boolean } | undefined {
  const { from = 0, to = FAR, attempt, upstreamId, state } = query;
  if (attempt !== undefined || upstreamId !== undefined || state === "open") return undefined;
  if (by.includes("hour") || (by.includes("day") && zone !== "UTC")) return undefined;
  const days = { from: Math.ceil(from / DAY_MS) * DAY_MS, to: Math.floor(to / DAY_MS) * DAY_MS };
  return days.from < days.to ? { ...days, cut: days.from !== from || days.to !== to } : undefined;
}

/** Longer than a report is: a list of so many days is short enough to be sent. */
const MOST_DAYS = 1_000;

/** A moment of the day, or of the quarter of an hour, that a row is in: which day that is in a zone, is for the host to say. */
export function timeOf({ by, zone = "UTC", from, to }: TotalsQuery, values: Values): string {
  const quarter = `e.at - mod(e.at, ${QUARTER_MS})`;
  if (by.includes("hour") || !by.includes("day")) return quarter;
  if (zone === "UTC") return `e.at - mod(e.at, ${DAY_MS})`;
  if (from === undefined || to === undefined || to - from > MOST_DAYS * DAY_MS) return quarter;
  const begin = `${values.add(`{${dayStarts(zone, Math.ceil(from), to).join()}}`)}::bigint[]`;
  return `(${begin})[width_bucket(e.at, ${begin})]`;
}

/** `from`, and each moment before `to` at which a day of the zone begins. */
export function dayStarts(zone: string, from: number, to: number): readonly number[] {
  const clock = zoneClock(zone);
  const starts = [from];
  let day = clock.day(from);
  for (let at = Math.ceil(from / QUARTER_MS) * QUARTER_MS; at < to; at += QUARTER_MS) {
    const next = clock.day(at);
    if (next === day) continue;
    starts.push(at);
    day = next;
    // None is as short.
    at += SHORT_MS;
  }
  return starts;
}

/** The last moment that a date can say; it ends a day. */
export const FAR = 8_640_000_000_000_000;
