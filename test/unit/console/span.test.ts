// The time range of a page: days are in the user's time zone, across every clock change.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  dayStart,
  toLocalField,
  parseLocalField,
} from "../../../plugins/observers/console/web/dates.ts";

const ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"] as const;
const DAY = 86_400_000;

const moment = fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2028, 0, 1) });

it("a local time is converted to its moment, to the minute", () => {
  fc.assert(
    fc.property(moment, fc.constantFrom(...ZONES), (at, zone) => {
      const local = toLocalField(at, zone);
      const back = parseLocalField(local, zone)!;
      expect(toLocalField(back, zone)).toBe(local);
      // A repeated hour has two moments with one name.
      expect([0, 3_600_000]).toContain(Math.abs(at - (at % 60_000) - back));
    }),
  );
});

it("a day starts at midnight, and contains the moment", () => {
  fc.assert(
    fc.property(moment, fc.constantFrom(...ZONES), fc.nat(3), (at, zone, before) => {
      const start = dayStart(at, zone);
      expect(toLocalField(start, zone).slice(11)).toBe("00:00");
      expect(toLocalField(start, zone).slice(0, 10)).toBe(toLocalField(at, zone).slice(0, 10));
      const earlier = dayStart(at, zone, before);
      // A day has 23 to 25 hours.
      expect(Math.abs(start - earlier - before * DAY)).toBeLessThanOrEqual(3_600_000);
    }),
  );
});

it("an invalid time is undefined, and an unknown time zone is UTC", () => {
  for (const text of ["", "2026-11-28", "2026-13-40T99:99", "now", "2026-11-28T10:00:00"])
    expect(parseLocalField(text, "UTC")).toBeUndefined();
  expect(parseLocalField("2026-11-28T10:00", "Nowhere/At_All")).toBe(Date.UTC(2026, 10, 28, 10));
});
