// Tracks the typical output of each key and model: the 95th percentile of the latest responses. Its
// memory is bounded. It is a forecast and not a record.
import { BoundedMap } from "../lib/bounded-map.ts";

/** Number of responses that are kept per key and model. */
const SAMPLES_PER_KEY = 64;
/**
 * Number of new responses after which the p95 is recomputed. The forecast need not be more recent.
 */
const RECOMPUTE_AFTER = 8;

interface SampleRing {
  readonly samples: number[];
  next: number;
  p95: number | undefined;
  /** Value of `next` when the p95 was computed. */
  computedAt: number;
}

export interface OutputHistory {
  record(key: string, output: number): void;
  /** Returns the p95, or undefined until 8 responses are recorded. */
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
      // Writing the entry again makes it the newest, so that other entries are dropped first. The
      // second write is skipped while the map is less than half full.
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
