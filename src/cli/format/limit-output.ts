// Parses and formats limits.
import { formatDecimal } from "../../money/decimal.ts";
import { fail } from "../../model/error.ts";
import type { ShownLimitUsage } from "../../admin/access/grants.ts";
import { LIMIT_SCHEMA, parseLimit } from "../../plugin/store/limit.ts";
import { formatTime } from "./terminal.ts";

/** Returns the text if it is a limit. */
export const checkLimit = (text: string, flag: string): string =>
  parseLimit(text)
    ? text
    : fail("invalid", `Invalid --${flag} "${text}". It must be ${LIMIT_SCHEMA["x-expects"]}.`, {
        code: "usage",
      });

/** The usage of a limit as the control socket sends it, with amounts as decimal text. */
export type ReceivedLimitUsage = Pick<ShownLimitUsage, "limit" | "unit" | "scope" | "resetsAt"> & {
  readonly [amount in "remaining" | "reserved"]: string | number | bigint;
};

/** Formats the usage of a limit: "usd=5/month: 4.2 left, 0.3 held, resets 2026-12-01 00:00". */
export function formatLimitUsage({
  limit,
  unit,
  remaining,
  reserved,
  resetsAt,
}: ReceivedLimitUsage): string {
  const amount = (of: ReceivedLimitUsage["remaining"]) =>
    unit === "nano_usd" ? formatDecimal(BigInt(of), 9) : `${of}`;
  const holding = BigInt(reserved) > 0n ? `, ${amount(reserved)} reserved` : "";
  const resets = /\/(?!total)/.test(limit) ? `, resets ${formatTime(resetsAt)}` : "";
  return `${limit}: ${amount(remaining)} left${holding}${resets}`;
}
