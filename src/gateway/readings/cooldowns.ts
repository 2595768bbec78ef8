// One cooldown that several processes report: which of them is told.
import type { RestingReading } from "../../plugin/readings.ts";
import { AWAY } from "../../walk/targets/target-rest.ts";

type Told = Pick<RestingReading, "state" | "until" | "keys">;

/** A state that changes the order comes before one that does not, all keys before some of them, and a longer one before a shorter one. */
const rank = ({ state, keys }: Told): number => (AWAY.has(state) ? 2 : 0) + (keys ? 0 : 1);

export function worse<T extends Told>(a: T | undefined, b: T): T {
  if (!a) return b;
  const [first, second] = (rank(a) - rank(b) || a.until - b.until) >= 0 ? [a, b] : [b, a];
  if (!first.keys || !second.keys) return first;
  return { ...first, keys: [...new Set([...first.keys, ...second.keys])] };
}
