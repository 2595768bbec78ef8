// Parses an expiry: a time from now such as 30d, or a date such as 2027-01-31.
import { parseDuration } from "../../lib/time/units.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail } from "../../model/error.ts";

export function parseExpiry(text: string): number {
  const span = parseDuration(text);
  const at = span === undefined ? Date.parse(text) : wallClock() + span;
  if (Number.isNaN(at) || at <= wallClock())
    fail(
      "invalid",
      `Invalid --expires "${text}". It must be a time in the future, such as 30d or 2027-01-31.`,
      {
        code: "usage",
      },
    );
  return at;
}
