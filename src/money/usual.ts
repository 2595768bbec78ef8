// What a key usually gets out of a model: the p95 of its last answers. Bounded; a guess, not a record.
import { BoundedMap } from "../lib/bounded-map.ts";

/** Answers remembered for each key and model. */
const DEPTH = 64;
/** So many answers more, and it is reckoned again: a guess need not be newer. */
const STALE_AFTER = 8;

interface Ring {
  readonly last: number[];
  next: number;
  p95: number | undefined;
  /** What `next` was when the guess was made. */
  asOf: number;
}

export interface Usual {
  saw(key: string, output: number): void;
  /** Undefined until there is something to go by. */
  p95(key: string): number | undefined;
}

export function createUsual(most = 4_096): Usual {
  const seen = new BoundedMap<string, Ring>(most);
  return {
    saw(key, output) {
      const known = seen.get(key);
      const ring = known ?? { last: [], next: 0, p95: undefined, asOf: 0 };
      ring.last[ring.next % DEPTH] = output;
      ring.next++;
      // Written anew, so that others go first; as long as there is plenty of room, it need not be.
      if (known && seen.size * 2 < most) return;
      seen.set(key, ring);
    },
    p95(key) {
      const ring = seen.get(key);
      if (!ring || ring.last.length < 8) return undefined;
      if (ring.p95 === undefined || ring.next - ring.asOf >= STALE_AFTER) {
        const sorted = Float64Array.from(ring.last).sort();
        ring.p95 = sorted[Math.floor((sorted.length - 1) * 0.95)];
        ring.asOf = ring.next;
      }
      return ring.p95;
    },
  };
}
