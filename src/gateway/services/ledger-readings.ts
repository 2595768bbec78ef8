// What clients ask of the ledger while it is written: sums, and which provider made an answer. A reading costs the store seconds where a
// request costs it microseconds, so few are under way at once, one of each key, and few wait. What no client waits for any more is
// told to stop, and its place is free when the store has let go of it: aborting a reading makes no room for the next one.
import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import { exceed } from "../../model/excess.ts";
import type { Store } from "../../plugin/store.ts";

type Read = <T>(
  key: string | undefined,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

/** Under way at once; they share one thread. */
const AT_ONCE = 4;

interface Waiting {
  readonly key: string;
  begin(): void;
}

/** `ms`: how long a client waits for one. */
export function createDesk(ms: number): Read {
  const busy = new Set<string>();
  let waiting: Waiting[] = [];

  function next(): void {
    while (busy.size < AT_ONCE) {
      const at = waiting.findIndex(({ key }) => !busy.has(key));
      if (at < 0) return;
      waiting.splice(at, 1)[0]!.begin();
    }
  }

  function enter(key: string): void {
    if (waiting.length >= BOUNDS.readings.most) exceed("readings");
    let mine = 0;
    for (const one of waiting) if (one.key === key) mine++;
    if (mine >= BOUNDS.readingsPerKey.most) exceed("readingsPerKey");
  }

  return async (key = "", signal, work) => {
    enter(key);
    const over = AbortSignal.any([AbortSignal.timeout(ms), ...(signal ? [signal] : [])]);
    return new Promise((resolve, reject) => {
      const one: Waiting = {
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
        reject(gone(signal));
      };
      if (over.aborted) return stop();
      over.addEventListener("abort", stop, { once: true });
      waiting.push(one);
      next();
    });
  };
}

function gone(signal: AbortSignal | undefined): unknown {
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
export const desked = (
  store: Pick<Store, "entries" | "totals" | "counted">,
  desk: Read,
): Pick<Store, "entries" | "totals" | "counted"> => ({
  // A look at what is in memory: it costs the store no more than a request does.
  ...(store.counted && { counted: (limits, at) => store.counted!(limits, at) }),
  entries: (query, page, of) =>
    desk(query.key, of?.signal, (signal) => store.entries(query, page, { signal })),
  totals: (query, of) => desk(query.key, of?.signal, (signal) => store.totals(query, { signal })),
});
