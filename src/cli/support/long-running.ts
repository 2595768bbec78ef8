// Support for commands that run until they are ended: by Ctrl-C, or by the reader of a pipe that
// closes it.
import { setTimeout as sleep } from "node:timers/promises";

export interface LongRunning extends Disposable {
  /** Aborts at Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
  /** Resolves after this time, or when the command ends. */
  sleep(ms: number): Promise<void>;
  /**
   * Resolves when the reader has consumed the output, or when the command ends. Waiting for this
   * keeps unread output from accumulating in memory.
   */
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
