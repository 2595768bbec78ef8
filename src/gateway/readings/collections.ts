// What collections of garbage took. Like the event loop's delay it is measured from the first question on; the counts stay.
import { constants, PerformanceObserver } from "node:perf_hooks";
import type { ProcessReading } from "../../plugin/readings.ts";

type Kind = keyof ProcessReading["gc"];

/** As Node tells it. */
interface Collection {
  readonly duration: number;
  readonly detail: { readonly kind: number };
}

const KINDS: Readonly<Record<number, Kind>> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weakcb",
};

export class Collections {
  readonly #took = {
    minor: { count: 0, seconds: 0 },
    major: { count: 0, seconds: 0 },
    incremental: { count: 0, seconds: 0 },
    weakcb: { count: 0, seconds: 0 },
  };
  #observer: PerformanceObserver | undefined;

  read(): ProcessReading["gc"] {
    if (!this.#observer) {
      this.#observer = new PerformanceObserver((list) => {
        for (const { detail, duration } of list.getEntries() as unknown as readonly Collection[]) {
          const kind = KINDS[detail.kind];
          if (!kind) continue;
          this.#took[kind].count++;
          this.#took[kind].seconds += duration / 1_000;
        }
      });
      this.#observer.observe({ entryTypes: ["gc"] });
    }
    return structuredClone(this.#took);
  }
}
