// Runs prunes one at a time and reports what they freed.
import {
  fail,
  type LedgerMaintenance,
  type LedgerState,
  type PruneProgress,
  type PruneResult,
} from "../../plugin/index.ts";

/**
 * Creates `prune` of a store's maintenance.
 * @param run Compacts the rows.
 */
export function createPrune(
  readState: () => Promise<LedgerState>,
  run: (
    before: number,
    progress: (of: PruneProgress) => void,
  ) => Promise<Pick<PruneResult, "rows" | "longestStepMs">>,
): NonNullable<LedgerMaintenance["prune"]> {
  let running: Promise<PruneResult> | undefined;
  async function prune(
    before: number,
    progress: (of: PruneProgress) => void,
  ): Promise<PruneResult> {
    const { bytes } = await readState();
    const done = await run(before, progress);
    const now = await readState();
    return { ...done, bytes: Math.max(0, bytes - now.bytes), rowsSince: now.oldestAt };
  }
  return async (before, progress = () => {}) => {
    if (running)
      return fail("conflict", "Ledger pruning is already running.", { code: "prune_under_way" });
    return (running = prune(before, progress).finally(() => (running = undefined)));
  };
}
