// Parses the values of options that are times or durations.
import { formatDuration, parseDuration } from "../../lib/time/units.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { zoneClock } from "../../lib/time/time-zone.ts";
import { fail } from "../../model/error.ts";

const failValue = (text: string, flag: string, expected: string): never =>
  fail("invalid", `Invalid --${flag} "${text}". It must be ${expected}.`, { code: "usage" });

/**
 * Parses a time: "24h" ago, a date, or a date with time. If a time has an offset, the zone of the
 * machine is ignored.
 * @param zone Time zone in which dates begin. Default: UTC.
 */
export function parseTime(text: string, flag: string, zone?: string): number {
  const span = parseDuration(text);
  if (span !== undefined) return Math.max(0, wallClock() - span);
  const wall = zoneClock(zone).parseLocalTime(text);
  const at = Number.isNaN(wall) ? Date.parse(text) : wall;
  return Number.isNaN(at)
    ? failValue(text, flag, "a duration or a date, such as 24h or 2026-11-01")
    : Math.max(0, at);
}

/** Parses an expiry: a time from now such as 30d, or a date such as 2027-01-31. */
export function parseExpiry(text: string, flag: string): number {
  const span = parseDuration(text);
  const at = span === undefined ? Date.parse(text) : wallClock() + span;
  return Number.isNaN(at) || at <= wallClock()
    ? failValue(text, flag, "a time in the future, such as 30d or 2027-01-31")
    : at;
}

/** Parses a duration, within the bounds in milliseconds if there are any. */
export function parseDurationText(
  text: string,
  flag: string,
  bounds?: { readonly min: number; readonly max: number },
): number {
  const ms = parseDuration(text);
  if (ms !== undefined && (!bounds || (ms >= bounds.min && ms <= bounds.max))) return ms;
  return failValue(
    text,
    flag,
    bounds
      ? `a duration from ${formatDuration(bounds.min)} to ${formatDuration(bounds.max)}`
      : "a duration such as 24h",
  );
}
