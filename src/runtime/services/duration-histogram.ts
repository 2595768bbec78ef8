// Records durations in buckets with doubling bounds. The histogram is small, its sum is exact, and
// it can be exported to the usual histogram formats.
import type { DurationHistogram } from "../../plugin/gateway-stats.ts";

/** Upper bounds, in milliseconds: 0.125, doubled up to about 16 s. */
const BUCKETS_MS: readonly number[] = Array.from({ length: 18 }, (_, i) => 0.125 * 2 ** i);

export class DurationRecorder {
  #count = 0;
  #sumMs = 0;
  readonly #buckets = new Float64Array(BUCKETS_MS.length);

  record(ms: number): void {
    this.#count++;
    this.#sumMs += ms;
    const at = BUCKETS_MS.findIndex((bound) => ms <= bound);
    if (at >= 0) this.#buckets[at]!++;
  }

  read(): DurationHistogram {
    let upTo = 0;
    return {
      count: this.#count,
      sumMs: this.#sumMs,
      buckets: BUCKETS_MS.map((ms, i) => ({ ms, count: (upTo += this.#buckets[i]!) })),
    };
  }
}
