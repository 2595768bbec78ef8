// What a provider says of its limits in its head. There are two families of names: `…ratelimit-remaining-tokens` and
// `…ratelimit-tokens-remaining`; a reset is a span of time, a number of seconds, or a date.
import type { HeadersIn } from "../../model/values.ts";
import type { RateLimit } from "../../plugin/call.ts";

const NAME = /(?:^|-)ratelimit-([a-z-]{1,40})$/;
const WHAT = ["limit", "remaining", "reset"] as const;
const UNITS: { readonly [word: string]: RateLimit["unit"] } = {
  "": "requests",
  requests: "requests",
  tokens: "tokens",
  "input-tokens": "input",
  "output-tokens": "output",
  images: "images",
};
/** Longer is no number and no date. */
const LONGEST = 40;
/** From here on a number is a moment, not a span. */
const MOMENT_S = 1_000_000_000;
const SPAN_MS: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Those of which it says what is left. */
export function providerLimits(headers: HeadersIn, now: number): RateLimit[] {
  const said = new Map<RateLimit["unit"], { [W in (typeof WHAT)[number]]?: string }>();
  for (const name in headers) {
    const value = headers[name];
    const found = typeof value === "string" && value.length <= LONGEST ? NAME.exec(name) : null;
    const named = found && partsOf(found[1]!);
    if (!named) continue;
    const one = said.get(named.unit) ?? {};
    one[named.what] ??= value as string;
    said.set(named.unit, one);
  }
  return [...said].flatMap(([unit, { limit, remaining, reset }]) => {
    const left = count(remaining);
    if (left === undefined) return [];
    return [{ by: "provider", unit, left, max: count(limit), resetsAt: momentOf(reset, now) }];
  });
}

function partsOf(rest: string) {
  const what = WHAT.find((word) => rest === word || rest.startsWith(`${word}-`));
  const last = WHAT.find((word) => rest.endsWith(`-${word}`));
  const word = what ?? last;
  if (!word) return undefined;
  const of = what ? rest.slice(word.length + 1) : rest.slice(0, -word.length - 1);
  return Object.hasOwn(UNITS, of) ? { what: word, unit: UNITS[of]! } : undefined;
}

const count = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;

function momentOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+(?:\.\d+)?$/.test(text)) {
    const seconds = Number(text);
    return Math.round(seconds < MOMENT_S ? now + seconds * 1_000 : seconds * 1_000);
  }
  if (/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) {
    let span = 0;
    for (const [, n, unit] of text.matchAll(/([\d.]+)(ms|s|m|h|d)/g))
      span += Number(n) * SPAN_MS[unit!]!;
    return Math.round(now + span);
  }
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : date;
}
