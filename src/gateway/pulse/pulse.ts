// That the event loop turns, said once a second to a thread of its own. What does not turn answers no client, stops no stream and
// hears no signal: the thread says where it stands and ends the process, which is replaced (by the primary, or by what runs us).
// For a daemon alone: a program that embeds a gateway watches its own process.
import { url as inspected } from "node:inspector";
import { Worker } from "node:worker_threads";

/** Shared with the thread; all of it counts up but the flags. */
export const CELLS = {
  beats: 0,
  /** A debugger is attached: it stands because it was told to. */ paused: 1,
  /** Seconds left, once an end was announced. */ left: 2,
} as const;

export interface PulseOptions {
  readonly pretty: boolean;
  /** How long it may stand. */
  readonly standMs: number;
  readonly everyMs: number;
}

export interface Pulse extends Disposable {
  /** From now on there is so much time left, whatever happens. */
  endWithin(ms: number): void;
}

const STAND_MS = 10_000;
const EVERY_MS = 1_000;

export function startPulse(of: Partial<PulseOptions> & Pick<PulseOptions, "pretty">): Pulse {
  const { standMs = STAND_MS, everyMs = EVERY_MS } = of;
  const cells = new Int32Array(new SharedArrayBuffer(16));
  const beat = () => {
    Atomics.add(cells, CELLS.beats, 1);
    Atomics.store(cells, CELLS.paused, inspected() === undefined ? 0 : 1);
  };
  beat();
  const timer = setInterval(beat, everyMs).unref();
  const thread = new Worker(PROGRAM, {
    name: "pulse",
    workerData: { cells, pretty: of.pretty, standMs, everyMs },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  });
  // A gateway that cannot be watched still serves.
  thread.on("error", () => {});
  thread.unref();
  return {
    endWithin: (ms) => void Atomics.store(cells, CELLS.left, Math.max(1, Math.ceil(ms / everyMs))),
    [Symbol.dispose]() {
      clearInterval(timer);
      void thread.terminate();
    },
  };
}

/** From source and from dist alike. */
const PROGRAM = new URL(
  `./pulse-thread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`,
  import.meta.url,
);
