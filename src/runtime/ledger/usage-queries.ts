// Limits how clients query the ledger: sums, and the provider of a response. A query costs the
// store seconds, while a request costs microseconds. Therefore, few queries run at a time, one per
// key, and few wait. A query without a waiting client is aborted. Its slot becomes free only when
// the store has finished the query, so an abort does not allow the next query to start.
import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { Store } from "../../plugin/store/store.ts";

type RunQuery = <T>(
  key: string | undefined,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

/** Maximum number of running queries. They share one thread. */
const MAX_CONCURRENT = 4;

interface WaitingQuery {
  readonly key: string;
  begin(): void;
}

/** @param ms How long a client waits for a query, in milliseconds. */
export function createQueryLimiter(ms: number): RunQuery {
  const busy = new Set<string>();
  let waiting: WaitingQuery[] = [];

  function next(): void {
    while (busy.size < MAX_CONCURRENT) {
      const at = waiting.findIndex(({ key }) => !busy.has(key));
      if (at < 0) return;
      waiting.splice(at, 1)[0]!.begin();
    }
  }

  function enter(key: string): void {
    if (waiting.length >= BOUNDS.usageQueries.max) failBoundExceeded("usageQueries");
    let mine = 0;
    for (const one of waiting) if (one.key === key) mine++;
    if (mine >= BOUNDS.usageQueriesPerKey.max) failBoundExceeded("usageQueriesPerKey");
  }

  return async (key = "", signal, work) => {
    enter(key);
    const over = AbortSignal.any([AbortSignal.timeout(ms), ...(signal ? [signal] : [])]);
    return new Promise((resolve, reject) => {
      const one: WaitingQuery = {
        key,
        begin() {
          busy.add(key);
          const leave = () => {
            busy.delete(key);
            over.removeEventListener("abort", stop);
            next();
          };
          void work(over).then(resolve, reject).finally(leave);
        },
      };
      const stop = (): void => {
        waiting = waiting.filter((other) => other !== one);
        reject(abortErrorOf(signal));
      };
      if (over.aborted) return stop();
      over.addEventListener("abort", stop, { once: true });
      waiting.push(one);
      next();
    });
  };
}

function abortErrorOf(signal: AbortSignal | undefined): unknown {
  try {
    return signal?.aborted
      ? fail("canceled", "The client disconnected.")
      : fail("unavailable", "The ledger could not be read in time. Request a shorter time range.", {
          code: "ledger_unavailable",
          retryAfterMs: 1_000,
        });
  } catch (error) {
    return error;
  }
}

/** Wraps the store's read methods with the query limits. */
export const withQueryLimits = (
  store: Pick<Store, "listEntries" | "sumEntries" | "readLimits">,
  limiter: RunQuery,
): Pick<Store, "listEntries" | "sumEntries" | "readLimits"> => ({
  // This method reads only memory, so it costs the store no more than a request.
  ...(store.readLimits && { readLimits: (limits, at) => store.readLimits!(limits, at) }),
  listEntries: (query, page, of) =>
    limiter(query.key, of?.signal, (signal) => store.listEntries(query, page, { signal })),
  sumEntries: (query, of) =>
    limiter(query.key, of?.signal, (signal) => store.sumEntries(query, { signal })),
});
