// What a key usually gets out of a model: the p95 of its last answers. Bounded; a guess, not a record.
import { BoundedMap } from "../lib/bounded-map.ts";

/** Answers remembered for each key and model. */
const SAMPLES_PER_KEY = 64;
/** So many answers more, and it is reckoned again: a guess need not be newer. */
const RECOMPUTE_AFTER = 8;

interface SampleRing {
  readonly samples: number[];
  next: number;
  p95: number | undefined;
  /** What `next` was when the guess was made. */
  computedAt: number;
}

export interface OutputHistory {
  record(key: string, output: number): void;
  /** Undefined until there is something to go by. */
  p95(key: string): number | undefined;
}

export function createOutputHistory(maxKeys = 4_096): OutputHistory {
  const seen = new BoundedMap<string, SampleRing>(maxKeys);
  return {
    record(key, output) {
      const known = seen.get(key);
      const ring = known ?? { samples: [], next: 0, p95: undefined, computedAt: 0 };
      ring.samples[ring.next % SAMPLES_PER_KEY] = output;
      ring.next++;
      // Written anew, so that others go first; as long as there is plenty of room, it need not be.
      if (known && seen.size * 2 < maxKeys) return;
      seen.set(key, ring);
    },
    p95(key) {
      const ring = seen.get(key);
      if (!ring || ring.samples.length < 8) return undefined;
      if (ring.p95 === undefined || ring.next - ring.computedAt >= RECOMPUTE_AFTER) {
        const sorted = Float64Array.from(ring.samples).sort();
        ring.p95 = sorted[Math.floor((sorted.length - 1) * 0.95)];
        ring.computedAt = ring.next;
      }
      return ring.p95;
    },
  };
}
