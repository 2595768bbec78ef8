// That the event loop turns, said once a second to a thread of its own. What does not turn answers no client, stops no stream and
// hears no signal: the thread says where it stands and ends the process, which is replaced (by the primary, or by what runs us).
// For a daemon alone: a program that embeds a gateway watches its own process.
import { url as inspected } from "node:inspector";
import { Worker } from "node:worker_threads";

/** Shared with the thread; all of it counts up but the flags. */
export const SHARED_CELLS = {
  heartbeats: 0,
  /** A debugger is attached: it stands because it was told to. */
  isDebugged: 1,
  /** Seconds left, once an end was announced. */
  secondsLeft: 2,
} as const;

export interface WatchdogOptions {
  readonly isPretty: boolean;
  /** How long it may stand. */
  readonly maxBlockedMs: number;
  readonly intervalMs: number;
}

export interface EventLoopWatchdog extends Disposable {
  /** From now on there is so much time left, whatever happens. */
  limitRemainingTime(ms: number): void;
}

const MAX_BLOCKED_MS = 10_000;
const INTERVAL_MS = 1_000;

export function startEventLoopWatchdog(
  options: Partial<WatchdogOptions> & Pick<WatchdogOptions, "isPretty">,
): EventLoopWatchdog {
  const { maxBlockedMs = MAX_BLOCKED_MS, intervalMs = INTERVAL_MS } = options;
  const cells = new Int32Array(new SharedArrayBuffer(16));
  const beat = () => {
    Atomics.add(cells, SHARED_CELLS.heartbeats, 1);
    Atomics.store(cells, SHARED_CELLS.isDebugged, inspected() === undefined ? 0 : 1);
  };
  beat();
  const timer = setInterval(beat, intervalMs).unref();
  const thread = new Worker(THREAD_FILE, {
    name: "pulse",
    workerData: { cells, isPretty: options.isPretty, maxBlockedMs, intervalMs },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  });
  // A gateway that cannot be watched still serves.
  thread.on("error", () => {});
  thread.unref();
  return {
    limitRemainingTime: (ms) =>
      void Atomics.store(cells, SHARED_CELLS.secondsLeft, Math.max(1, Math.ceil(ms / intervalMs))),
    [Symbol.dispose]() {
      clearInterval(timer);
      void thread.terminate();
    },
  };
}

/** From source and from dist alike. */
const THREAD_FILE = new URL(
  `./watchdog-thread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`,
  import.meta.url,
);
