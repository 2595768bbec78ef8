// Limits on the command line.
import { formatDecimal } from "../money/decimal.ts";
import { fail } from "../model/error.ts";
import type { ShownCount } from "../gateway/control/grants.ts";
import { LIMIT, parseLimit } from "../plugin/limit.ts";
import { moment } from "./terminal.ts";

/** Returns the text if it is a limit. */
export const checkLimit = (text: string): string =>
  parseLimit(text)
    ? text
    : fail("invalid", `--limit is ${LIMIT["x-expects"]}, not "${text}".`, { code: "usage" });

/** Amounts arrive over the socket as decimal text. */
export type ReceivedCount = Pick<ShownCount, "limit" | "unit" | "scope" | "resetsAt"> & {
  readonly [amount in "left" | "held"]: string | number | bigint;
};

/** "usd=5/month: 4.2 left, 0.3 held, resets 2026-12-01 00:00". */
export function countText({ limit, unit, left, held, resetsAt }: ReceivedCount): string {
  const amount = (of: ReceivedCount["left"]) =>
    unit === "nano_usd" ? formatDecimal(BigInt(of), 9) : `${of}`;
  const holding = BigInt(held) > 0n ? `, ${amount(held)} held` : "";
  const resets = /\/(?!total)/.test(limit) ? `, resets ${moment(resetsAt)}` : "";
  return `${limit}: ${amount(left)} left${holding}${resets}`;
}
