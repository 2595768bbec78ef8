// Splits the time range of a report into whole days and half hours, which have rollups, and the
// remaining time. Also computes the starts of days in a time zone.
import { type TotalsQuery, zoneClock } from "tollgate/store";
import { DAY_MS, floorToSpanSql, HALF_HOUR_MS } from "../schema/rollup-sql.ts";
import type { SqlParameters } from "./where-clause.ts";

/** In every time zone, days and hours begin at a multiple of this. */
const QUARTER_HOUR_MS = 900_000;
/** A multiple of a quarter hour that is shorter than any day, in milliseconds. */
const MIN_DAY_MS = 20 * 3_600_000;

/** A time range. `from` is included and `to` is excluded. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Splits the query range into whole UTC spans, using every span length that can answer the query.
 * The first length covers as much as possible. The shorter lengths cover the remainder at both
 * ends.
 */
export function splitIntoSpans(
  of: TotalsQuery,
  spans: readonly number[],
): readonly (readonly TimeRange[])[] {
  const { from = -MAX_DATE_MS, to = MAX_DATE_MS } = of;
  let inner: TimeRange | undefined;
  return spans.map((span) => {
    if (!canAnswerBySpan(of, span)) return [];
    const outer = { from: Math.ceil(from / span) * span, to: Math.floor(to / span) * span };
    if (outer.from >= outer.to) return [];
    const rest = inner
      ? [
          { from: outer.from, to: inner.from },
          { from: inner.to, to: outer.to },
        ]
      : [outer];
    inner = outer;
    return rest.filter((one) => one.from < one.to);
  });
}

/** Returns whether each span lies within one of the requested days or hours. */
function canAnswerBySpan(
  { by, zone = "UTC", from, to, ...query }: TotalsQuery,
  span: number,
): boolean {
  const { attempt, upstreamId, state } = query;
  if (attempt !== undefined || upstreamId !== undefined || state === "open") return false;
  if (by.includes("hour") && span > HALF_HOUR_MS) return false;
  if (zone === "UTC" || !(by.includes("day") || by.includes("hour"))) return true;
  if (span > HALF_HOUR_MS || from === undefined || to === undefined || isLongRange(from, to))
    return false;
  const { offset } = zoneClock(zone);
  return [...dayStarts(zone, Math.ceil(from), to), to].every(
    (at) => offset(at) % HALF_HOUR_MS === 0,
  );
}

/** Maximum number of days in a list that is sent to the database. Typical reports cover fewer days. */
const MAX_LISTED_DAYS = 1_000;
const isLongRange = (from: number, to: number): boolean => to - from > MAX_LISTED_DAYS * DAY_MS;

/**
 * SQL expression for the time of a row `e`, rounded to a day or a quarter hour. The host converts
 * this time to a day of the time zone.
 */
export interface DayExpression {
  /** Computes the moment from the row. */
  readonly sql: string;
  /**
   * Joins a list of all possible moments instead of computing the moment per row. PostgreSQL then
   * knows that there are few groups and aggregates while reading.
   */
  lookup?(): { readonly is: string; readonly join: string };
}

export function dayExpression(
  { by, zone = "UTC", from, to }: TotalsQuery,
  values: SqlParameters,
): DayExpression {
  const quarter = floorToSpanSql("e.at", QUARTER_HOUR_MS);
  const days = by.includes("day") && !by.includes("hour");
  const plain = zone === "UTC" && days ? floorToSpanSql("e.at", DAY_MS) : quarter;
  if (from === undefined || to === undefined || isLongRange(from, to)) return { sql: plain };
  const [first, end] = [Math.ceil(from), Math.ceil(to)];
  const series = (begin: string, till: string) =>
    `generate_series(${floorToSpanSql(begin, QUARTER_HOUR_MS)}, ${till} - 1, ${QUARTER_HOUR_MS}) s(quarter)`;
  const listed = (moments: string) => ({
    is: "q.moment",
    join: `JOIN (${moments}) q ON q.quarter = ${quarter}`,
  });
  if (!days) {
    const all = () => series(`${values.add(first)}::bigint`, `${values.add(end)}::bigint`);
    return {
      sql: plain,
      lookup: () => listed(`SELECT s.quarter, s.quarter AS moment FROM ${all()}`),
    };
  }
  const starts = dayStarts(zone, first, end);
  const list = (all: readonly number[]) => `${values.add(`{${all.join()}}`)}::bigint[]`;
  const begin = zone === "UTC" ? undefined : list(starts);
  return {
    sql: begin === undefined ? plain : `(${begin})[width_bucket(e.at, ${begin})]`,
    lookup: () =>
      listed(`SELECT s.quarter, d.moment
    FROM unnest(${begin ?? list(starts)}, ${list([...starts.slice(1), end])}) d(moment, till), ${series("d.moment", "d.till")}`),
  };
}

/** Returns `from` and each moment before `to` at which a day of the zone begins. */
export function dayStarts(zone: string, from: number, to: number): readonly number[] {
  const clock = zoneClock(zone);
  const starts = [from];
  let day = clock.day(from);
  for (
    let at = Math.ceil(from / QUARTER_HOUR_MS) * QUARTER_HOUR_MS;
    at < to;
    at += QUARTER_HOUR_MS
  ) {
    const next = clock.day(at);
    if (next === day) continue;
    starts.push(at);
    day = next;
    // No day is shorter than this time.
    at += MIN_DAY_MS;
  }
  return starts;
}

/**
 * The largest time of a `Date`, in milliseconds. Its negative is the smallest. Both are midnight
 * UTC.
 */
export const MAX_DATE_MS = 8_640_000_000_000_000;
