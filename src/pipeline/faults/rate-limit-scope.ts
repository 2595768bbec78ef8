// What a 429 is about: this request alone, or the whole account. Headers decide what is believed about the account; words only tell a
// request's own faults apart, as everywhere (see protocols/failure/meaning.ts). Kept beside faults and not in them, for what is in
// them comes from codecs, plugins and upstreams.
import type { Fault } from "../../model/error.ts";
import type { HeadersIn } from "../../model/values.ts";
import { parseRateLimits } from "./rate-limit-headers.ts";

const accountLimitFaults = new WeakSet<Fault>();

/** Notes that its head says: a limit of the account is used up, and for how long. */
export function markAccountLimit(fault: Fault, headers: HeadersIn): void {
  if (fault.kind !== "rate_limited" || typeof fault.retryAfterMs !== "number") return;
  if (parseRateLimits(headers, 0).some(({ remaining }) => remaining === 0))
    accountLimitFaults.add(fault);
}

const REQUEST_TOO_LARGE =
  /\brequest (?:is |was )?too large\b|\btoo large for\b|\blong context requests?\b|\bmust be reduced\b/i;
/** "Limit 10000, Requested 12000": more than there ever is. */
const LIMIT_AND_REQUESTED = /\bLimit:? (\d{1,15})\b[^\d]{1,40}\bRequested:? (\d{1,15})\b/i;

export function rateLimitScope(fault: Fault): "request" | "account" | undefined {
  if (fault.kind !== "rate_limited") return undefined;
  const { message } = fault;
  const numbers = LIMIT_AND_REQUESTED.exec(message);
  if (REQUEST_TOO_LARGE.test(message) || (numbers && Number(numbers[2]) > Number(numbers[1])))
    return "request";
  return accountLimitFaults.has(fault) ? "account" : undefined;
}
