// The stretch that a report is of: its whole days and half hours, which are added up already, and where days of a zone begin in it.
import { type TotalsQuery, zoneClock } from "tollgate/store";
import { DAY_MS, floorToSpanSql, HALF_HOUR_MS } from "../schema/rollup-sql.ts";
import type { SqlParameters } from "./where-clause.ts";

/** Days and hours of every zone begin at one of these. */
const QUARTER_HOUR_MS = 900_000;
/** A whole number of quarters, and less than any day has. */
const MIN_DAY_MS = 20 * 3_600_000;

/** From a moment on, and up to another. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** Stretches of whole spans of UTC that what is asked is of, for each of those spans that can say it: of the first as much as there is, of the next one what is left at both ends. */
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

/** Whether each of those spans lies in one of the days or hours that are asked for. */
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

/** Longer than a report is: a list of so many days is short enough to be sent. */
const MAX_LISTED_DAYS = 1_000;
const isLongRange = (from: number, to: number): boolean => to - from > MAX_LISTED_DAYS * DAY_MS;

/** A moment of the day, or of the quarter of an hour, that a row `e` is in: which day that is in a zone, is for the host to say. */
export interface DayExpression {
  /** Worked out of the row, */
  readonly sql: string;
  /** or looked up, where all there can be are known: so the database knows that they are few, and adds up as it reads. */
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

/** `from`, and each moment before `to` at which a day of the zone begins. */
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
    // None is as short.
    at += MIN_DAY_MS;
  }
  return starts;
}

/** The last moment that a date can say, and with a minus the first; each ends a day. */
export const MAX_DATE_MS = 8_640_000_000_000_000;
