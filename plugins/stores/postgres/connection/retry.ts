// Again, while others are in the way or the database is away; not for longer than the host would wait.
import { setTimeout as sleep } from "node:timers/promises";
import type { RunSql, PipelinedConnection } from "./pipelined-connection.ts";
import { isUnavailable, isRetryableConflict, errorMessage } from "./errors.ts";

/** A batch is tried for so long; the host asks again after that. */
const RETRY_TIMEOUT_MS = 4_000;

/** A database that was asked in vain: how often for this work, since when, and what it said. */
export interface ConnectionFailure {
  readonly count: number;
  readonly elapsedMs: number;
  readonly reason: string;
}

/** `away` hears of each connection that broke; a throw of it ends the work. */
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
          reason: `The database cannot be reached: ${errorMessage(error)}`,
        });
      if (!(gone || isRetryableConflict(error)) || ms > RETRY_TIMEOUT_MS) throw error;
      await sleep(5 + Math.random() * (gone ? 200 : 45), undefined, { ref: false });
    }
  }
}

/** One after the other, in the order in which they were asked for, whatever becomes of those before. */
export function createSerialQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work, work);
    last = turn.catch(() => undefined);
    return turn;
  };
}
