// What a reserve is answered: what its limits have left, or the one that cannot be met.
import type { LimitCrossing, Verdict } from "../plugin/index.ts";
import * as meters from "./meter.ts";
import type { Claim } from "./meter.ts";

/** Nothing more is to be told. */
export const OK: Verdict = { ok: true };

/** Of commands that cross none. */
export const NO_CROSSINGS: readonly LimitCrossing[] = [];
/** Mostly there are none, and then nothing is made. */
export const both = (some: readonly LimitCrossing[], more: readonly LimitCrossing[]) =>
  more.length === 0 ? some : [...some, ...more];
/** It was obeyed, with what it has crossed. */
export const fine = (crossed: readonly LimitCrossing[]): Verdict =>
  crossed.length === 0 ? OK : { ok: true, crossed };

/** Of claims that are met. */
export const standing = (claims: readonly Claim[], t: number): Verdict =>
  claims.length === 0
    ? OK
    : { ok: true, limits: claims.map((claim) => meters.state(claim, meters.look(claim, t))) };

/** Of the claims that cannot be met, the one that keeps waiting longest. */
export function refusing(claims: readonly Claim[], t: number): Verdict | undefined {
  let worst: { claim: Claim; seen: meters.Seen } | undefined;
  for (const claim of claims) {
    const seen = meters.look(claim, t);
    if (seen.waitMs > (worst?.seen.waitMs ?? 0)) worst = { claim, seen };
  }
  return (
    worst && {
      ok: false,
      denied: meters.state(worst.claim, worst.seen),
      retryAfterMs: worst.seen.waitMs,
    }
  );
}
