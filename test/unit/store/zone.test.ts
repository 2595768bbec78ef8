// Days and hours of time zones, compared with the system's calendar.
import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import { isTimeZone, zoneClock } from "tollgate/store";
import { trialCount } from "../../kit/law-effort.ts";

const ZONES = [
  "UTC",
  "Europe/Berlin",
  "Europe/London",
  "America/St_Johns",
  "America/Sao_Paulo",
  "Asia/Kolkata",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Africa/Casablanca",
  "Africa/Monrovia",
] as const;
const zone = fc.constantFrom(...ZONES);
const at = fc.integer({ min: Date.UTC(1950, 0), max: Date.UTC(2060, 0) });

/** The local time according to the system. */
function wall(name: string, moment: number): string {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: name,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
  }).formatToParts(moment);
  const of = (type: string) => parts.find((part) => part.type === type)!.value;
  return `${of("year")}-${of("month")}-${of("day")}T${of("hour")}`;
}

/** Whether the zone's clocks change within a period. */
function isChanged(name: string, start: number, length: number): boolean {
  const offset = (moment: number) => Date.parse(`${wall(name, moment)}:00:00Z`) - moment;
  const first = offset(start);
  for (let each = start; each <= start + length; each += 3_600_000)
    if (offset(each) !== first) return true;
  return false;
}

describe("any moment in any zone", () => {
  it("has the day and hour of the local clock", () => {
    fc.assert(
      fc.property(zone, at, (name, moment) => {
        const clock = zoneClock(name);
        const shown = wall(name, moment);
        expect(clock.day(moment)).toBe(shown.slice(0, 10));
        expect(clock.hour(moment).slice(0, 13)).toBe(shown);
        expect(clock.hour(clock.hourStart(moment))).toBe(clock.hour(moment));
        expect(clock.hourStart(moment)).toBeLessThanOrEqual(moment);
      }),
      { numRuns: trialCount(500) },
    );
  });

  it("has a range within a day or an hour exactly if all of its moments are", () => {
    const span = fc.constantFrom(900_000, 3_600_000, 86_400_000);
    const year = fc.integer({ min: Date.UTC(2025, 0), max: Date.UTC(2026, 11) });
    fc.assert(
      fc.property(zone, year, span, (name, moment, length) => {
        const start = Math.floor(moment / length) * length;
        const clock = zoneClock(name);
        for (const unit of ["day", "hour"] as const) {
          const names = new Set<string>();
          for (let each = start; each < start + length; each += 300_000) {
            names.add(clock[unit](each));
            names.add(clock[unit](each + 299_999));
          }
          if (clock.isWithin(unit, start, start + length)) expect(names.size).toBe(1);
          // It may return false for a period in which clocks change, and for no other.
          else if (!isChanged(name, start, length)) expect(names.size).toBeGreaterThan(1);
        }
      }),
      {
        numRuns: trialCount(200),
        examples: [["Africa/Casablanca", 1_771_113_600_000, 86_400_000]],
      },
    );
  });

  it("has a day that starts at its first moment, which the date finds", () => {
    fc.assert(
      fc.property(zone, at, (name, moment) => {
        const clock = zoneClock(name);
        const day = clock.day(moment);
        const start = clock.parseLocalTime(day);
        expect(start).toBeLessThanOrEqual(moment);
        expect(clock.day(start)).toBe(day);
        expect(clock.day(start - 1)).not.toBe(day);
      }),
      { numRuns: trialCount(500) },
    );
  });
});

describe("days with a clock change", () => {
  const berlin = zoneClock("Europe/Berlin");
  const hours = (day: string, next: string) =>
    (berlin.parseLocalTime(next) - berlin.parseLocalTime(day)) / 3_600_000;
  it("have 23 or 25 hours, and a repeated hour counts as two", () => {
    expect(hours("2026-03-29", "2026-03-30")).toBe(23);
    expect(hours("2026-10-25", "2026-10-26")).toBe(25);
    const first = Date.UTC(2026, 9, 25, 0);
    expect([0, 1, 2].map((i) => berlin.hour(first + i * 3_600_000))).toEqual([
      "2026-10-25T02:00+02:00",
      "2026-10-25T02:00+01:00",
      "2026-10-25T03:00+01:00",
    ]);
  });
  it("have a valid time of day, also for a skipped hour", () => {
    expect(berlin.parseLocalTime("2026-03-29T12:30")).toBe(Date.UTC(2026, 2, 29, 10, 30));
    expect(berlin.parseLocalTime("2026-03-29T02:30")).toBe(Date.UTC(2026, 2, 29, 1, 30));
    expect(berlin.parseLocalTime("2026-10-25T02:30")).toBe(Date.UTC(2026, 9, 25, 0, 30));
    for (const text of ["", "yesterday", "2026-13-01", "2026-03-29T12:30Z", "2026"])
      expect(berlin.parseLocalTime(text)).toBeNaN();
  });
});

it("are found for valid zone names only", () => {
  for (const name of ["Europe/Berlin", "europe/berlin", "Asia/Kolkata", "+05:30", "UTC"])
    expect(isTimeZone(name)).toBe(true);
  for (const name of ["Europe/Berln", "", "a".repeat(10_000)]) expect(isTimeZone(name)).toBe(false);
});
