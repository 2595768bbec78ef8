// Starts of days in a time zone for the database: everything grouped under one start belongs to one
// day, and two days never share one.
import fc from "fast-check";
import { expect, it } from "vitest";
import { zoneClock } from "../../../../src/lib/time/time-zone.ts";
import { dayStarts } from "../../../../plugins/stores/postgres/read/report-range.ts";
import { trialCount } from "../../../kit/law-effort.ts";

const QUARTER = 900_000;
const DAY = 86_400_000;
const ZONES = [
  "Europe/Berlin",
  "Asia/Kolkata",
  "Asia/Kathmandu",
  "Pacific/Apia",
  "America/St_Johns",
];
const FROM = Date.parse("2011-01-01");

it("returns the day of each moment, across clock changes and a skipped day", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...ZONES),
      fc.integer({ min: 0, max: 16 * 365 * DAY }),
      fc.integer({ min: 1, max: 60 * DAY }),
      (zone, after, long) => {
        const from = FROM + after;
        const to = from + long;
        const clock = zoneClock(zone);
        const starts = dayStarts(zone, from, to);
        const days = starts.map((at) => clock.day(at));
        expect(new Set(days).size).toBe(days.length);
        for (let at = Math.ceil(from / QUARTER) * QUARTER; at < to; at += QUARTER)
          expect(clock.day(at)).toBe(days[starts.findLastIndex((start) => start <= at)]);
      },
    ),
    { numRuns: trialCount(40) },
  );
});
