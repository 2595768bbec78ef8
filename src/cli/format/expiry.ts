// Parses an expiry: a time from now such as 30d, or a date such as 2027-01-31.
import { parseDuration } from "../../lib/time/units.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail } from "../../model/error.ts";

export function parseExpiry(text: string): number {
  const span = parseDuration(text);
  const at = span === undefined ? Date.parse(text) : wallClock() + span;
  if (Number.isNaN(at) || at <= wallClock())
    fail("invalid", `--expires is a time to come, as in 30d or 2027-01-31, not "${text}".`, {
      code: "usage",
    });
  return at;
}
