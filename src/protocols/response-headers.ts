// Encodes the request ID and the rate limits as the headers that clients of the OpenAI family read.
import type { HeadersOut, LimitState } from "../plugin/index.ts";

/**
 * Headers of a provider's response that are forwarded to the client, in any mode of any protocol.
 * Rate limits and organization or project names are not forwarded, because they belong to the
 * operator's account and the client has its own limits. `retry-after` is not forwarded either: the
 * gateway sends its own value in numbers, whatever the provider wrote.
 */
export const FORWARDED_RESPONSE_HEADERS: readonly string[] = [
  "openai-processing-ms",
  "openai-version",
  "x-should-retry",
];

/**
 * Returns the headers. For each unit, they describe the limit with the smallest remaining amount.
 */
export function encodeRateLimitHeaders(of: {
  id: string;
  limits: readonly LimitState[];
  now: number;
}): HeadersOut {
  if (of.limits.length === 0) return { "x-request-id": of.id };
  const one = (...units: LimitState["unit"][]) => of.limits.filter((l) => units.includes(l.unit));
  return {
    "x-request-id": of.id,
    ...headersForUnit("requests", one("requests"), of.now),
    ...headersForUnit("tokens", one("tokens", "input", "output"), of.now),
  };
}

function headersForUnit(what: string, limits: readonly LimitState[], now: number): HeadersOut {
  let tightest = limits[0];
  for (const limit of limits) if (limit.remaining < tightest!.remaining) tightest = limit;
  if (!tightest) return {};
  return {
    [`x-ratelimit-limit-${what}`]: String(tightest.max),
    [`x-ratelimit-remaining-${what}`]: String(tightest.remaining < 0 ? 0 : tightest.remaining),
    [`x-ratelimit-reset-${what}`]: formatGoDuration(Math.max(0, tightest.resetsAt - now)),
  };
}

/** Formats a duration in Go syntax, which these clients parse: "6m0s", "1.2s", "12ms". */
function formatGoDuration(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)}ms`;
  const seconds = Math.ceil(ms / 100) / 10;
  if (seconds < 60) return `${seconds}s`;
  const whole = Math.ceil(ms / 1000);
  const hours = Math.floor(whole / 3600);
  const rest = `${Math.floor((whole % 3600) / 60)}m${whole % 60}s`;
  return hours > 0 ? `${hours}h${rest}` : rest;
}
