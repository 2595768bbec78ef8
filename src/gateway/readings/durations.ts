// How long something took, as counts below bounds that double: small, exact in its sum, and readable by whatever draws histograms.
import type { DurationsReading } from "../../plugin/readings.ts";

/** 0.125 ms, doubled up to about 16 s. */
const BOUNDS_MS: readonly number[] = Array.from({ length: 18 }, (_, i) => 0.125 * 2 ** i);

export class Durations {
  #count = 0;
  #sumMs = 0;
  readonly #below = new Float64Array(BOUNDS_MS.length);

  took(ms: number): void {
    this.#count++;
    this.#sumMs += ms;
    const at = BOUNDS_MS.findIndex((bound) => ms <= bound);
    if (at >= 0) this.#below[at]!++;
  }

  read(): DurationsReading {
    let upTo = 0;
    return {
      count: this.#count,
      sumMs: this.#sumMs,
      upTo: BOUNDS_MS.map((ms, i) => ({ ms, count: (upTo += this.#below[i]!) })),
    };
  }
}
