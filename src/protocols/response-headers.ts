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

interface Description {
  /** Units of the limits of which one is described. */
  readonly units: readonly LimitState["unit"][];
  /** Names of the headers. */
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

const DESCRIBED: readonly Description[] = [
  {
    units: ["requests"],
    limit: "x-ratelimit-limit-requests",
    remaining: "x-ratelimit-remaining-requests",
    reset: "x-ratelimit-reset-requests",
  },
  {
    units: ["tokens", "input", "output"],
    limit: "x-ratelimit-limit-tokens",
    remaining: "x-ratelimit-remaining-tokens",
    reset: "x-ratelimit-reset-tokens",
  },
];

/**
 * Returns the headers. For requests and for tokens, they describe the limit with the smallest
 * remaining amount.
 */
export function encodeRateLimitHeaders(of: {
  id: string;
  limits: readonly LimitState[];
  now: number;
}): HeadersOut {
  const headers: Record<string, string> = { "x-request-id": of.id };
  if (of.limits.length === 0) return headers;
  for (const { units, limit, remaining, reset } of DESCRIBED) {
    let tightest: LimitState | undefined;
    for (const one of of.limits)
      if (units.includes(one.unit) && !(tightest && tightest.remaining <= one.remaining))
        tightest = one;
    if (!tightest) continue;
    headers[limit] = String(tightest.max);
    headers[remaining] = String(tightest.remaining < 0 ? 0 : tightest.remaining);
    headers[reset] = formatGoDuration(Math.max(0, tightest.resetsAt - of.now));
  }
  return headers;
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
