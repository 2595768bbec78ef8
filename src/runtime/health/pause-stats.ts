// Measures the delay of the event loop. The measurement needs a timer that fires 100 times per
// second, so it starts with the first read and stops after 5 minutes without a read.
import { monitorEventLoopDelay, constants, PerformanceObserver } from "node:perf_hooks";
import type { GatewayStats, ProcessStats } from "../../plugin/gateway-stats.ts";

type LoopDelayStats = GatewayStats["loopDelayMs"];
type Histogram = ReturnType<typeof monitorEventLoopDelay>;

const RESOLUTION_MS = 10;
const WINDOW_MS = 10_000;
const IDLE_TIMEOUT_MS = 300_000;

export class EventLoopDelay {
  #histogram: Histogram | undefined;
  #windowStartedAt = 0;
  #previous: LoopDelayStats = NO_DELAY;
  #idleTimer: NodeJS.Timeout | undefined;

  /**
   * Returns the maximum of the running window and the previous one, so that frequent and infrequent
   * readers get the same values.
   */
  read(): LoopDelayStats {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => this.#end(), IDLE_TIMEOUT_MS).unref();
    const now = performance.now();
    if (!this.#histogram) {
      this.#histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      this.#histogram.enable();
      this.#windowStartedAt = now;
      return NO_DELAY;
    }
    const running = toLoopDelay(this.#histogram);
    const { mean, p99, max } = this.#previous;
    if (now - this.#windowStartedAt >= WINDOW_MS) {
      this.#previous = running;
      this.#windowStartedAt = now;
      this.#histogram.reset();
    }
    return {
      mean: Math.max(mean, running.mean),
      p99: Math.max(p99, running.p99),
      max: Math.max(max, running.max),
    };
  }

  #end(): void {
    this.#histogram?.disable();
    this.#histogram = undefined;
    this.#previous = NO_DELAY;
  }
}

const NO_DELAY: LoopDelayStats = { mean: 0, p99: 0, max: 0 };

/**
 * Converts nanoseconds to the delay beyond the timer's own interval. A window without a sample has
 * no delay.
 */
function toLoopDelay(histogram: Histogram): LoopDelayStats {
  if (histogram.count === 0) return NO_DELAY;
  const toLateness = (nano: number) =>
    Math.max(0, Math.round(nano / 1e4 - RESOLUTION_MS * 100) / 100);
  return {
    mean: toLateness(histogram.mean),
    p99: toLateness(histogram.percentile(99)),
    max: toLateness(histogram.max),
  };
}

// Measures the duration of garbage collections. The measurement starts with the first read, like
// that of the event loop delay. The counts are never reset.

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
