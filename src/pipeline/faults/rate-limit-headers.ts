// Parses rate limit headers of providers. There are two families of names:
// `…ratelimit-remaining-tokens` and `…ratelimit-tokens-remaining`. A reset is a duration, a number
// of seconds, or a date.
import type { HeadersIn } from "../../model/values.ts";
import type { RateLimit } from "../../plugin/call.ts";

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
/** Maximum length of a value. A longer one is neither a number nor a date. */
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
  const said = new Map<RateLimit["unit"], { [W in (typeof FIELDS)[number]]?: string }>();
  for (const name in headers) {
    const value = headers[name];
    const found =
      typeof value === "string" && value.length <= MAX_VALUE_LENGTH ? HEADER_NAME.exec(name) : null;
    const named = found && parseHeaderName(found[1]!);
    if (!named) continue;
    const one = said.get(named.unit) ?? {};
    one[named.what] ??= value as string;
    said.set(named.unit, one);
  }
  return [...said].flatMap(([unit, { limit, remaining, reset }]) => {
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
