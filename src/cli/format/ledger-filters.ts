import { wallClock } from "../../lib/time/wall-clock.ts";
import { parseDuration } from "../../lib/time/units.ts";
import { fail } from "../../model/error.ts";
import { zoneClock } from "../../lib/time/time-zone.ts";
import type { JsonObject } from "../../model/values.ts";
import type { CliInput, Options } from "../support/command.ts";

/** Filter options of all commands that read the ledger. */
export const LEDGER_FILTER_OPTIONS: Options = {
  key: { placeholder: "key", description: "Only this key, by ID or name" },
  account: {
    placeholder: "name",
    description: "Only this account and the accounts that were nested under it",
  },
  since: { placeholder: "when", description: "Only since this time: 24h, 2026-11-01 (UTC)" },
  until: { placeholder: "when", description: "Only before this time" },
};

/**
 * Reads the filters.
 * @param zone Time zone in which dates begin. Default: UTC.
 */
export const readFilters = (given: CliInput, zone?: string): JsonObject => ({
  key: given.getText("key"),
  account: given.getText("account"),
  from: parseTimeOption(given, "since", zone),
  to: parseTimeOption(given, "until", zone),
});

/**
 * Parses a time: "24h" ago, a date, or a date with time. A time with an offset is the same in every
 * zone.
 */
export function parseTimeOption(given: CliInput, name: string, zone?: string): number | undefined {
  const text = given.getText(name);
  if (text === undefined) return undefined;
  const span = parseDuration(text);
  if (span !== undefined) return Math.max(0, wallClock() - span);
  const wall = zoneClock(zone).parseLocalTime(text);
  const at = Number.isNaN(wall) ? Date.parse(text) : wall;
  return Number.isNaN(at)
    ? fail(
        "invalid",
        `Invalid --${name} "${text}". It must be a duration or a date, such as 24h or 2026-11-01.`,
        {
          code: "usage",
        },
      )
    : Math.max(0, at);
}
