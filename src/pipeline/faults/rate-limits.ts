// Rate limits of providers: what their headers report, and whether a 429 concerns only this request
// or the whole account. Only headers are trusted for facts about the account. Message text is used
// only to recognize errors of the request itself, as in protocols/failure/parse-error.ts. The
// result is kept outside the fault because codecs, plugins, and providers write the fields of
// faults.
import type { Fault } from "../../model/error.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { RateLimit } from "../../plugin/call.ts";

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

// There are two families of header names: `…ratelimit-remaining-tokens` and `…ratelimit-tokens-remaining`. A reset is a duration, a number
// of seconds, or a date.
const HEADER_NAME = /(?:^|-)ratelimit-([a-z-]{1,40})$/;
const FIELDS = ["limit", "remaining", "reset"] as const;
const UNITS: { readonly [word: string]: RateLimit["unit"] } = {
  "": "requests",
  requests: "requests",
  tokens: "tokens",
  "input-tokens": "input",
  "output-tokens": "output",
  images: "images",
};

/** Maximum length of a value. A longer value is neither a number nor a date. */
const MAX_VALUE_LENGTH = 40;
/** Smallest number that is a Unix timestamp in seconds. A smaller number is a duration. */
const MIN_TIMESTAMP_S = 1_000_000_000;
const UNIT_MS: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Returns the limits for which the headers contain the remaining amount. */
export function parseRateLimits(headers: HeadersIn, now: number): RateLimit[] {
  const byUnit = new Map<RateLimit["unit"], { [W in (typeof FIELDS)[number]]?: string }>();
  for (const name in headers) {
    const value = headers[name];
    const found =
      typeof value === "string" && value.length <= MAX_VALUE_LENGTH ? HEADER_NAME.exec(name) : null;
    const named = found && parseHeaderName(found[1]!);
    if (!named) continue;
    const one = byUnit.get(named.unit) ?? {};
    one[named.what] ??= value as string;
    byUnit.set(named.unit, one);
  }
  return [...byUnit].flatMap(([unit, { limit, remaining, reset }]) => {
    const left = parseCount(remaining);
    if (left === undefined) return [];
    return [
      {
        source: "provider",
        unit,
        remaining: left,
        max: parseCount(limit),
        resetsAt: parseResetTime(reset, now),
      },
    ];
  });
}

function parseHeaderName(rest: string) {
  const what = FIELDS.find((word) => rest === word || rest.startsWith(`${word}-`));
  const last = FIELDS.find((word) => rest.endsWith(`-${word}`));
  const word = what ?? last;
  if (!word) return undefined;
  const of = what ? rest.slice(word.length + 1) : rest.slice(0, -word.length - 1);
  return Object.hasOwn(UNITS, of) ? { what: word, unit: UNITS[of]! } : undefined;
}

const parseCount = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
function parseResetTime(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+(?:\.\d+)?$/.test(text)) {
    const seconds = Number(text);
    return Math.round(seconds < MIN_TIMESTAMP_S ? now + seconds * 1_000 : seconds * 1_000);
  }
  if (/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) {
    let span = 0;
    for (const [, n, unit] of text.matchAll(/([\d.]+)(ms|s|m|h|d)/g))
      span += Number(n) * UNIT_MS[unit!]!;
    return Math.round(now + span);
  }
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : date;
}
