import { wallClock } from "../lib/wall-clock.ts";
import { parseDuration } from "../lib/duration.ts";
import { fail } from "../model/error.ts";
import { zoneClock } from "../lib/zone.ts";
import type { JsonObject } from "../model/values.ts";
import type { CliInput, Options } from "./command.ts";

/** Shared by all that read the ledger. */
export const WHICH: Options = {
  key: { value: "key", about: "only of this key: its id or its name" },
  account: { value: "name", about: "only of this account and of all that stood below it" },
  since: { value: "when", about: "from 24h ago, or from 2026-11-01 on (UTC)" },
  until: { value: "when", about: "up to then" },
};

/** `zone`: whose midnight begins a date; UTC when it is absent. */
export const whichOf = (given: CliInput, zone?: string): JsonObject => ({
  key: given.text("key"),
  account: given.text("account"),
  from: momentOf(given, "since", zone),
  to: momentOf(given, "until", zone),
});

/** "24h" is a day ago; else a date, or a moment of it. One that says its own offset is that moment in every zone. */
export function momentOf(given: CliInput, name: string, zone?: string): number | undefined {
  const text = given.text(name);
  if (text === undefined) return undefined;
  const span = parseDuration(text);
  if (span !== undefined) return Math.max(0, wallClock() - span);
  const wall = zoneClock(zone).moment(text);
  const at = Number.isNaN(wall) ? Date.parse(text) : wall;
  return Number.isNaN(at)
    ? fail("invalid", `--${name} is a time, as in 24h or 2026-11-01, not "${text}".`, {
        code: "usage",
      })
    : Math.max(0, at);
}
