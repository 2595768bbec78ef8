// Ends a process whose event loop is blocked. The loop sends a heartbeat to a watchdog thread every
// second. A blocked event loop cannot serve clients, send streams, or handle signals. The watchdog
// thread logs the stack and kills the process. The primary or the service manager then replaces it.
// Only the daemon uses the watchdog, because a program that embeds a gateway monitors its own
// process.
import { sourceFile } from "../../lib/source-file.ts";
import { url as inspected } from "node:inspector";
import { Worker } from "node:worker_threads";

/** Indexes of the cells shared with the thread. Except for the flags, cells only count up. */
export const SHARED_CELLS = {
  heartbeats: 0,
  /** Flag: a debugger is attached, so a pause is intended. */
  isDebugged: 1,
  /** Seconds left after `limitRemainingTime` was called. */
  secondsLeft: 2,
} as const;

export interface WatchdogOptions {
  readonly isPretty: boolean;
  /** Maximum time that the event loop may be blocked, in milliseconds. */
  readonly maxBlockedMs: number;
  readonly intervalMs: number;
}

export interface EventLoopWatchdog extends Disposable {
  /** Resolves when the thread has loaded its code, or cannot start. */
  readonly whenLoaded: Promise<void>;
  /** Kills the process after this time, in milliseconds, regardless of heartbeats. */
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
  const loaded = Promise.withResolvers<void>();
  thread.once("message", () => loaded.resolve());
  // If the watchdog fails, the gateway continues to serve requests.
  thread.on("error", () => loaded.resolve());
  thread.unref();
  return {
    whenLoaded: loaded.promise,
    limitRemainingTime: (ms) =>
      void Atomics.store(cells, SHARED_CELLS.secondsLeft, Math.max(1, Math.ceil(ms / intervalMs))),
    [Symbol.dispose]() {
      clearInterval(timer);
      void thread.terminate();
    },
  };
}

const THREAD_FILE = new URL(sourceFile("./watchdog-thread.ts"), import.meta.url);
