// Measures the duration of garbage collections. Like the event loop delay, it starts with the first
// read. The counts are never reset.
import { constants, PerformanceObserver } from "node:perf_hooks";
import type { ProcessStats } from "../../plugin/gateway-stats.ts";

type GcType = keyof ProcessStats["gc"];

/** Detail entry as Node.js reports it. */
interface GcEntry {
  readonly duration: number;
  readonly detail: { readonly kind: number };
}

const GC_TYPES: Readonly<Record<number, GcType>> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weakcb",
};

export class GcStats {
  readonly #totals = {
    minor: { count: 0, seconds: 0 },
    major: { count: 0, seconds: 0 },
    incremental: { count: 0, seconds: 0 },
    weakcb: { count: 0, seconds: 0 },
  };
  #observer: PerformanceObserver | undefined;

  read(): ProcessStats["gc"] {
    if (!this.#observer) {
      this.#observer = new PerformanceObserver((list) => {
        for (const { detail, duration } of list.getEntries() as unknown as readonly GcEntry[]) {
          const kind = GC_TYPES[detail.kind];
          if (!kind) continue;
          this.#totals[kind].count++;
          this.#totals[kind].seconds += duration / 1_000;
        }
      });
      this.#observer.observe({ entryTypes: ["gc"] });
    }
    return structuredClone(this.#totals);
  }
}
