// What a reserve is answered: what its limits have left, or the one that cannot be met.
import type { ThresholdReached, CommandResult } from "../plugin/index.ts";
import * as meters from "./meter.ts";
import type { Claim } from "./meter.ts";

/** Nothing more is to be told. */
export const ALLOWED: CommandResult = { ok: true };

/** Of commands that cross none. */
export const NO_THRESHOLDS: readonly ThresholdReached[] = [];
/** Mostly there are none, and then nothing is made. */
export const concatThresholds = (
  some: readonly ThresholdReached[],
  more: readonly ThresholdReached[],
) => (more.length === 0 ? some : [...some, ...more]);
/** It was obeyed, with what it has crossed. */
export const allowedWith = (crossed: readonly ThresholdReached[]): CommandResult =>
  crossed.length === 0 ? ALLOWED : { ok: true, thresholds: crossed };

/** Of claims that are met. */
export const allowedByClaims = (claims: readonly Claim[], t: number): CommandResult =>
  claims.length === 0
    ? ALLOWED
    : {
        ok: true,
        limits: claims.map((claim) => meters.limitState(claim, meters.readMeter(claim, t))),
      };

/** Of the claims that cannot be met, the one that keeps waiting longest. */
export function findDenial(claims: readonly Claim[], t: number): CommandResult | undefined {
  let worst: { claim: Claim; seen: meters.MeterReading } | undefined;
  for (const claim of claims) {
    const seen = meters.readMeter(claim, t);
    if (seen.waitMs > (worst?.seen.waitMs ?? 0)) worst = { claim, seen };
  }
  return (
    worst && {
      ok: false,
      denied: meters.limitState(worst.claim, worst.seen),
      retryAfterMs: worst.seen.waitMs,
    }
  );
}
