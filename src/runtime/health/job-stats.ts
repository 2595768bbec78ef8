// Counts open jobs for the live stats. The store is queried only when stats are read.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { JobStats } from "../../plugin/gateway-stats.ts";
import { withTimeout } from "../ledger/queued-command.ts";
import type { Services } from "../services.ts";

const TIMEOUT_MS = 1_000;
/** How long counts are reused, in milliseconds. */
const REUSE_MS = 5_000;

/**
 * Creates a function that returns the open jobs by kind. It returns undefined if no frontend runs
 * jobs, or if the store does not respond within 1 s.
 */
export function createJobStatsReader({
  jobs,
  jobRegistry,
}: Pick<Services, "jobs" | "jobRegistry">): () => Promise<readonly JobStats[] | undefined> {
  let last: { readonly at: number; readonly stats: readonly JobStats[] } | undefined;
  return async () => {
    const { kinds } = jobRegistry.current;
    if (!jobs || kinds.size === 0) return undefined;
    if (last && wallClock() - last.at < REUSE_MS) return last.stats;
    const counts = await withTimeout(TIMEOUT_MS, jobs.count([...kinds.keys()])).catch(
      () => undefined,
    );
    if (!counts) return undefined;
    const stats = [...kinds.values()].map(({ kind, openStates }): JobStats => {
      const open = counts.filter((one) => one.kind === kind && openStates.includes(one.state));
      return {
        kind,
        open: open.reduce((sum, one) => sum + one.count, 0),
        oldestAt: open.length > 0 ? Math.min(...open.map((one) => one.oldestAt)) : undefined,
      };
    });
    last = { at: wallClock(), stats };
    return stats;
  };
}
