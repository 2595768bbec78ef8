// What clients ask of the ledger while it is written: sums, and which provider made an answer. A reading costs the store seconds where a
// request costs it microseconds, so few are under way at once, one of each key, and few wait. What no client waits for any more is
// told to stop, and its place is free when the store has let go of it: aborting a reading makes no room for the next one.
import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { Store } from "../../plugin/store/store.ts";

type RunQuery = <T>(
  key: string | undefined,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

/** Under way at once; they share one thread. */
const MAX_CONCURRENT = 4;

interface WaitingQuery {
  readonly key: string;
  begin(): void;
}

/** `ms`: how long a client waits for one. */
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
      ? fail("canceled", "The client went away.")
      : fail("unavailable", "The ledger could not be read in time. Ask for a shorter time.", {
          code: "ledger_unavailable",
          retryAfterMs: 1_000,
        });
  } catch (error) {
    return error;
  }
}

/** The store's readings behind a desk. */
export const withQueryLimits = (
  store: Pick<Store, "listEntries" | "sumEntries" | "readLimits">,
  limiter: RunQuery,
): Pick<Store, "listEntries" | "sumEntries" | "readLimits"> => ({
  // A look at what is in memory: it costs the store no more than a request does.
  ...(store.readLimits && { readLimits: (limits, at) => store.readLimits!(limits, at) }),
  listEntries: (query, page, of) =>
    limiter(query.key, of?.signal, (signal) => store.listEntries(query, page, { signal })),
  sumEntries: (query, of) =>
    limiter(query.key, of?.signal, (signal) => store.sumEntries(query, { signal })),
});
