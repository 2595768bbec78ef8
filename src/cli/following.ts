// What a command that goes on until it is ended needs: an end by Ctrl-C, and one when the reader of a pipe has left.
import { setTimeout as sleep } from "node:timers/promises";

export interface Following extends Disposable {
  /** Aborts at Ctrl-C, or when the process is told to end. */
  readonly signal: AbortSignal;
  /** Resolves after so long, or at the end. */
  pause(ms: number): Promise<void>;
  /** Resolves when the reader has taken what was written, or at the end: what it does not read is not piled up. */
  drained(): Promise<void>;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export function following(): Following {
  const over = new AbortController();
  const end = () => over.abort();
  for (const signal of SIGNALS) process.on(signal, end);
  const { signal } = over;
  return {
    signal,
    pause: (ms) => sleep(ms, undefined, { signal }).catch(() => {}),
    drained: () =>
      new Promise((resolve) => {
        if (!process.stdout.writableNeedDrain || signal.aborted) return resolve();
        const done = () => {
          process.stdout.off("drain", done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        process.stdout.on("drain", done);
        signal.addEventListener("abort", done);
      }),
    [Symbol.dispose]() {
      for (const name of SIGNALS) process.off(name, end);
    },
  };
}
