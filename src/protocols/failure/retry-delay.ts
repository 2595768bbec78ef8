// Reads the delay that a provider requests from clients, in all known forms. Pure: no I/O, no
// clock. Dates are compared with the `date` header of the response, never with the local clock.
import type { HeadersIn, Opt } from "../../model/values.ts";

/** Maximum delay. Delays of more than a day are not credible. */
const MAX_DELAY_MS = 24 * 3600_000;

/** Returns the delay in whole milliseconds, or undefined if the response contains no delay. */
export function readRetryAfterMs(headers: HeadersIn): number | undefined {
  const wait = readRetryHeader(headers);
  return wait === undefined ? undefined : Math.min(Math.ceil(wait - 1e-6), MAX_DELAY_MS);
}

function readRetryHeader(headers: HeadersIn): number | undefined {
  const ms = Number(firstValue(headers["retry-after-ms"]) ?? Number.NaN);
  if (ms >= 0) return ms;
  return (
    parseDelay(firstValue(headers["retry-after"]), headers) ?? longestEmptyBucketReset(headers)
  );
}

const SPAN =
  /(\d{1,9}(?:\.\d{1,9})?)\s?(milliseconds?|minutes?|mins?|seconds?|secs?|hours?|ms|[smh])(?![a-z])/gi;
const DELAY_TEXT = new RegExp(
  `\\b(?:try again|retry|retrying)\\s(?:in|after)\\s((?:${SPAN.source}\\s?)+)`,
  "i",
);

/**
 * Returns the delay in a message, in whole milliseconds, for example "Please try again in 1m26.4s"
 * or "retry after 20 seconds".
 */
export function parseDelayText(message: string): number | undefined {
  const [, spans] = DELAY_TEXT.exec(message) ?? [];
  if (spans === undefined) return undefined;
  let total = 0;
  for (const [, n, unit = ""] of spans.matchAll(SPAN))
    total += Number(n) * UNITS[/^m(s|il)/i.test(unit) ? "ms" : unit[0]!.toLowerCase()]!;
  return Math.min(Math.ceil(total - 1e-6), MAX_DELAY_MS);
}

/** Returns the longest reset time among rate limits without remaining requests or tokens. */
function longestEmptyBucketReset(headers: HeadersIn): number | undefined {
  let longest: number | undefined;
  for (const name in headers) {
    if (!name.includes("ratelimit") || !name.includes("reset")) continue;
    const left = firstValue(headers[name.replace("reset", "remaining")]);
    if (left === undefined || Number(left) > 0) continue;
    const reset = parseDelay(firstValue(headers[name]), headers);
    if (reset !== undefined && reset > (longest ?? -1)) longest = reset;
  }
  return longest;
}

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3600_000,
  d: 86_400_000,
};

/**
 * Parses a delay in milliseconds from seconds, "1m30s", Unix seconds or milliseconds, or a date.
 */
function parseDelay(value: Opt<string>, headers: HeadersIn): number | undefined {
  if (value === undefined || value === "") return undefined;
  const text = value.trim();
  if (/^\d+(?:\.\d+)?$/.test(text)) {
    const n = Number(text);
    if (n < 1e9) return n * 1000;
    return untilMoment(n < 1e11 ? n * 1000 : n, headers);
  }
  if (/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) {
    let total = 0;
    for (const [, n, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g))
      total += Number(n) * UNITS[unit!]!;
    return total;
  }
  return untilMoment(Date.parse(text), headers);
}

function untilMoment(moment: number, headers: HeadersIn): number | undefined {
  const now = Date.parse(firstValue(headers["date"]) ?? "");
  return moment > now ? moment - now : undefined;
}

const firstValue = (value: HeadersIn[string]): string | undefined =>
  Array.isArray(value) ? value[0] : value;
