// What a command that goes on until it is ended needs: an end by Ctrl-C, and one when the reader of a pipe has left.
import { setTimeout as sleep } from "node:timers/promises";

export interface LongRunning extends Disposable {
  /** Aborts at Ctrl-C, or when the process is told to end. */
  readonly signal: AbortSignal;
  /** Resolves after so long, or at the end. */
  sleep(ms: number): Promise<void>;
  /** Resolves when the reader has taken what was written, or at the end: what it does not read is not piled up. */
  waitForDrain(): Promise<void>;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export function startLongRunning(): LongRunning {
  const over = new AbortController();
  const end = () => over.abort();
  for (const signal of SIGNALS) process.on(signal, end);
  const { signal } = over;
  return {
    signal,
    sleep: (ms) => sleep(ms, undefined, { signal }).catch(() => {}),
    waitForDrain: () =>
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
