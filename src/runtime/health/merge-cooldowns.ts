// Merges the cooldown states that several processes report for one target.
import type { CooldownState } from "../../plugin/gateway-stats.ts";
import { COOLDOWN_STATES } from "../../pipeline/targets/target-status.ts";

type ReportedCooldown = Pick<CooldownState, "state" | "until" | "keys">;

/**
 * Ranks a state that changes the order above one that does not, then all keys above some keys.
 * `worseCooldown` resolves ties in favor of the longer one.
 */
const rankOf = ({ state, keys }: ReportedCooldown): number =>
  (COOLDOWN_STATES.has(state) ? 2 : 0) + (keys ? 0 : 1);

export function worseCooldown<T extends ReportedCooldown>(a: T | undefined, b: T): T {
  if (!a) return b;
  const [first, second] = (rankOf(a) - rankOf(b) || a.until - b.until) >= 0 ? [a, b] : [b, a];
  if (!first.keys || !second.keys) return first;
  return { ...first, keys: [...new Set([...first.keys, ...second.keys])] };
}
