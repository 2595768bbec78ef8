// Deletes ledger rows that are older than `ledger.retention`. Checked hourly, with the current
// config.
import { problem } from "../../config/problems.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { GatewayConfig, LocatedProblem } from "../../config/gateway-config.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { getFault } from "../../model/error.ts";
import type { Logger } from "../../plugin/context.ts";
import type { Store } from "../../plugin/store/store.ts";

const INTERVAL_MS = 3_600_000;
/** Delay before the first run, in milliseconds, because a gateway has other work at startup. */
const FIRST_RUN_DELAY_MS = 2_000;

/**
 * Returns a config problem if `ledger.retention` is set and the store cannot prune. Call it in the
 * process that owns the store: a worker's borrowed store has no maintenance commands.
 */
export function findRetentionProblem(
  { locate }: Pick<LoadedConfig, "locate">,
  { ledger, store }: Pick<GatewayConfig, "ledger" | "store">,
  { maintenance }: Pick<Store, "maintenance">,
): LocatedProblem | undefined {
  if (ledger.retentionMs === undefined || maintenance?.prune) return undefined;
  return locate("ledger", problem.cannotPrune(store.use));
}

export function startRetention(
  { store, log }: { readonly store: Pick<Store, "maintenance">; readonly log: Logger },
  keepMs: () => number | undefined,
  scope: LifetimeScope,
): void {
  const look = async (): Promise<void> => {
    const keep = keepMs();
    if (keep === undefined) return;
    const done = await store.maintenance?.prune?.(wallClock() - keep);
    if (done && done.rows > 0)
      log.info({ rows: done.rows, bytes: done.bytes }, "old ledger rows replaced by rollups");
  };
  const failed = (error: unknown): void => {
    // An operator is pruning manually.
    if (getFault(error)?.code === "prune_under_way" || scope.signal.aborted) return;
    log.error({ err: error }, "pruning old ledger rows failed, will retry");
  };
  const first = setTimeout(() => void look().catch(failed), FIRST_RUN_DELAY_MS).unref();
  scope.defer(() => clearTimeout(first));
  scope.every(INTERVAL_MS, look, failed);
}
