// What a 429 is about: this request alone, or the whole account. Headers decide what is believed about the account; words only tell a
// request's own faults apart, as everywhere (see protocols/failure/meaning.ts). Kept beside faults and not in them, for what is in
// them comes from codecs, plugins and upstreams.
import type { Fault } from "../../model/error.ts";
import type { HeadersIn } from "../../model/values.ts";
import { providerLimits } from "./rate-limits.ts";

const accounts = new WeakSet<Fault>();

/** Notes that its head says: a limit of the account is used up, and for how long. */
export function noteLimit(fault: Fault, headers: HeadersIn): void {
  if (fault.kind !== "rate_limited" || typeof fault.retryAfterMs !== "number") return;
  if (providerLimits(headers, 0).some(({ left }) => left === 0)) accounts.add(fault);
}

const TOO_LARGE =
  /\brequest (?:is |was )?too large\b|\btoo large for\b|\blong context requests?\b|\bmust be reduced\b/i;
/** "Limit 10000, Requested 12000": more than there ever is. */
const NUMBERS = /\bLimit:? (\d{1,15})\b[^\d]{1,40}\bRequested:? (\d{1,15})\b/i;

export function limitScope(fault: Fault): "request" | "account" | undefined {
  if (fault.kind !== "rate_limited") return undefined;
  const { message } = fault;
  const numbers = NUMBERS.exec(message);
  if (TOO_LARGE.test(message) || (numbers && Number(numbers[2]) > Number(numbers[1])))
    return "request";
  return accounts.has(fault) ? "account" : undefined;
}
