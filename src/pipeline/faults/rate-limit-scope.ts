// Decides whether a 429 concerns only this request or the whole account. Only headers are trusted
// about the account. Message text is used only to recognize a request's own errors, as everywhere
// (see protocols/failure/meaning.ts). The result is kept outside the fault because codecs, plugins,
// and providers write the fields of faults.
import type { Fault } from "../../model/error.ts";
import type { HeadersIn } from "../../model/values.ts";
import { parseRateLimits } from "./rate-limit-headers.ts";

const accountLimitFaults = new WeakSet<Fault>();

/**
 * Marks the fault as an account limit if the headers report that a limit is used up. The fault must
 * also have a retry delay.
 */
export function markAccountLimit(fault: Fault, headers: HeadersIn): void {
  if (fault.kind !== "rate_limited" || typeof fault.retryAfterMs !== "number") return;
  if (parseRateLimits(headers, 0).some(({ remaining }) => remaining === 0))
    accountLimitFaults.add(fault);
}

const REQUEST_TOO_LARGE =
  /\brequest (?:is |was )?too large\b|\btoo large for\b|\blong context requests?\b|\bmust be reduced\b/i;
/**
 * Matches messages such as "Limit 10000, Requested 12000". Such a request exceeds the whole limit
 * and can never succeed.
 */
const LIMIT_AND_REQUESTED = /\bLimit:? (\d{1,15})\b[^\d]{1,40}\bRequested:? (\d{1,15})\b/i;

export function rateLimitScope(fault: Fault): "request" | "account" | undefined {
  if (fault.kind !== "rate_limited") return undefined;
  const { message } = fault;
  const numbers = LIMIT_AND_REQUESTED.exec(message);
  if (REQUEST_TOO_LARGE.test(message) || (numbers && Number(numbers[2]) > Number(numbers[1])))
    return "request";
  return accountLimitFaults.has(fault) ? "account" : undefined;
}
