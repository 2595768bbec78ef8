// How late the event loop is. Measuring costs a timer that fires a hundred times a second, so it begins with the first question,
// and ends when nothing has asked for five minutes.
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Readings } from "../../plugin/readings.ts";

type Delay = Readings["loopDelayMs"];
type Histogram = ReturnType<typeof monitorEventLoopDelay>;

const EVERY_MS = 10;
const WINDOW_MS = 10_000;
const IDLE_MS = 300_000;

export class LoopDelay {
  #histogram: Histogram | undefined;
  #since = 0;
  #before: Delay = NOTHING;
  #idle: NodeJS.Timeout | undefined;

  /** The larger of the window that runs and the one before: those that ask seldom and those that ask often hear the same. */
  read(): Delay {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref();
    const now = performance.now();
    if (!this.#histogram) {
      this.#histogram = monitorEventLoopDelay({ resolution: EVERY_MS });
      this.#histogram.enable();
      this.#since = now;
      return NOTHING;
    }
    const running = delayOf(this.#histogram);
    const { mean, p99, max } = this.#before;
    if (now - this.#since >= WINDOW_MS) {
      this.#before = running;
      this.#since = now;
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
    this.#before = NOTHING;
  }
}

const NOTHING: Delay = { mean: 0, p99: 0, max: 0 };

/** Beyond the timer's own length, from nanoseconds. A window without a beat has none. */
function delayOf(histogram: Histogram): Delay {
  if (histogram.count === 0) return NOTHING;
  const late = (nano: number) => Math.max(0, Math.round(nano / 1e4 - EVERY_MS * 100) / 100);
  return {
    mean: late(histogram.mean),
    p99: late(histogram.percentile(99)),
    max: late(histogram.max),
  };
}
