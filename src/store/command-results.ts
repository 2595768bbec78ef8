// Results of reserve commands: the remaining limits, or the limit that denied the reservation.
import type { ThresholdReached, CommandResult } from "../plugin/index.ts";
import * as meters from "./meter.ts";
import type { Claim } from "./meter.ts";

/** Success without further information. */
export const ALLOWED: CommandResult = { ok: true };

/** Result of commands that reach no threshold. */
export const NO_THRESHOLDS: readonly ThresholdReached[] = [];
/** Concatenates thresholds. Usually there are none, and then nothing is allocated. */
export const concatThresholds = (
  some: readonly ThresholdReached[],
  more: readonly ThresholdReached[],
) => (more.length === 0 ? some : [...some, ...more]);
/** Success with the thresholds that were reached. */
export const allowedWith = (crossed: readonly ThresholdReached[]): CommandResult =>
  crossed.length === 0 ? ALLOWED : { ok: true, thresholds: crossed };

/** Success with the state of the claims' limits. */
export const allowedByClaims = (claims: readonly Claim[], t: number): CommandResult =>
  claims.length === 0
    ? ALLOWED
    : {
        ok: true,
        limits: claims.map((claim) => meters.limitState(claim, meters.readMeter(claim, t))),
      };

/** Returns the denial of the claim with the longest wait. Undefined: all claims can be met. */
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
