// Failure patterns of upstreams. Each only knows its own past.
import type { Outcome, Upstreams } from "./simulation.ts";

const OK_MS = 40;
const FAIL_MS = 5;
const ok: Outcome = { ms: OK_MS };
const overloaded: Outcome = { ms: FAIL_MS, kind: "overloaded" };

type Ending = (luck: number) => Outcome;
const broken: Readonly<Record<string, Ending>> = {
  "529": () => overloaded,
  "500, slowly": () => ({ ms: 2_000, kind: "upstream" }),
  "no connection": () => ({ ms: 1, kind: "upstream", stage: "unsent" }),
  "429 without retry-after": () => ({ ms: FAIL_MS, kind: "rate_limited" }),
  "429 with retry-after: 1": () => ({ ms: FAIL_MS, kind: "rate_limited", retryAfterMs: 1_000 }),
  "429 with retry-after: 30": () => ({ ms: FAIL_MS, kind: "rate_limited", retryAfterMs: 30_000 }),
  "a time out": () => ({ ms: 10_000, kind: "timeout", stage: "no_response" }),
};

/** For each affected target. The others succeed. */
const independent =
  (p: number, end: Ending, good: Outcome = ok): Upstreams =>
  () =>
  ({ luck }) =>
    luck < p ? end(luck) : good;

const bursts =
  (offMs: number, everyMs: number, end: Ending, good: Outcome = ok): Upstreams =>
  () =>
  ({ now }) =>
    now % everyMs < offMs ? end(0) : good;

/** Only one target fails. */
const only =
  (target: number, of: Upstreams): Upstreams =>
  () => {
    const call = of();
    return (asked) => (asked.target === target ? call(asked) : ok);
  };

/** Success rate of each target, in turn. */
const unequal =
  (shares: readonly number[]): Upstreams =>
  () =>
  ({ luck, target }) =>
    luck < shares[target % shares.length]! ? ok : overloaded;

const counted = (left: number, waitMs: number): Outcome => ({
  ms: FAIL_MS,
  kind: "rate_limited",
  retryAfterMs: waitMs,
  headers: { "x-ratelimit-remaining-requests": String(left) },
});

/**
 * An account that accepts a number of requests per window, and returns the rest of the window in
 * whole seconds.
 */
const windowed =
  (most: number, windowMs: number): Upstreams =>
  () => {
    const used = new Map<string, number>();
    return ({ now, target }) => {
      const at = Math.floor(now / windowMs);
      const count = (used.get(`${target} ${at}`) ?? 0) + 1;
      used.set(`${target} ${at}`, count);
      if (count <= most) return ok;
      return counted(0, Math.ceil(((at + 1) * windowMs - now) / 1_000) * 1_000);
    };
  };

/** An account with a bucket that refills continuously. */
const bucket =
  (rate: number, size: number): Upstreams =>
  () => {
    const state = new Map<number, { left: number; at: number }>();
    return ({ now, target }) => {
      const one = state.get(target) ?? { left: size, at: now };
      state.set(target, one);
      one.left = Math.min(size, one.left + ((now - one.at) * rate) / 1_000);
      one.at = now;
      if (one.left < 1) return counted(0, Math.ceil((1 - one.left) / rate) * 1_000);
      one.left--;
      return ok;
    };
  };

const slow: Upstreams =
  () =>
  ({ luck }) => ({ ms: 500 + 20_000 * luck ** 4 });

export const PATTERNS: Readonly<Record<string, Upstreams>> = {
  ...Object.fromEntries(
    [0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 1].map((p) => [
      `fails ${p * 100} % with 529`,
      independent(p, broken["529"]!),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(broken).flatMap(([how, end]) => [
      [`half fails: ${how}`, independent(0.5, end)],
      [`a third of the time it fails: ${how}`, bursts(1_500, 5_000, end)],
    ]),
  ),
  "half fails at once, and answers take 2 s": independent(0.5, broken["529"]!, { ms: 2_000 }),
  "95 % fails at once, and answers take 2 s": independent(0.95, broken["529"]!, { ms: 2_000 }),
  "a third of the time it fails, and answers take 2 s": bursts(1_500, 5_000, broken["529"]!, {
    ms: 2_000,
  }),
  "out for 20 s of each minute": bursts(20_000, 60_000, broken["529"]!),
  "the first of them fails": only(0, independent(1, broken["529"]!)),
  "the first of them fails in part": only(0, independent(0.3, broken["529"]!)),
  "the first of them refuses its credential": only(
    0,
    independent(1, () => ({ ms: FAIL_MS, kind: "upstream_auth" })),
  ),
  "the first is better than the others": unequal([0.6, 0.1]),
  "the first is worse than the others": unequal([0.2, 0.7]),
  "slow, and nothing fails": slow,
  "300 per minute, and it says when": windowed(300, 60_000),
  "10 per second from a bucket": bucket(10, 10),
};
