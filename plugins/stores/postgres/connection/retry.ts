// Retries work after conflicts and connection failures, for no longer than the host waits.
import { setTimeout as sleep } from "node:timers/promises";
import type { RunSql, PipelinedConnection } from "./pipelined-connection.ts";
import { isUnavailable, isRetryableConflict, errorMessage } from "./errors.ts";

/** Maximum time that a batch is retried, in milliseconds. After that, the host retries. */
const RETRY_TIMEOUT_MS = 4_000;

/**
 * A failed attempt to reach the database: the number of failures for this work, the time since the
 * first attempt, and the reason.
 */
export interface ConnectionFailure {
  readonly count: number;
  readonly elapsedMs: number;
  readonly reason: string;
}

/**
 * @param onConnectionFailure Called for each broken connection. If it throws, the work ends.
 */
export async function withRetry<T>(
  line: PipelinedConnection,
  work: (sql: RunSql) => Promise<T>,
  onConnectionFailure: (trouble: ConnectionFailure) => void,
): Promise<T> {
  const began = performance.now();
  for (let times = 0; ;) {
    try {
      return await work(await line.connect());
    } catch (error) {
      const gone = isUnavailable(error);
      if (gone) line.disconnect();
      const ms = performance.now() - began;
      if (gone)
        onConnectionFailure({
          count: ++times,
          elapsedMs: ms,
          reason: `The database is unreachable: ${errorMessage(error)}`,
        });
      if (!(gone || isRetryableConflict(error)) || ms > RETRY_TIMEOUT_MS) throw error;
      await sleep(5 + Math.random() * (gone ? 200 : 45), undefined, { ref: false });
    }
  }
}

/**
 * Creates a queue that runs work one at a time, in call order. Failures do not affect later work.
 */
export function createSerialQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work, work);
    last = turn.catch(() => undefined);
    return turn;
  };
}
