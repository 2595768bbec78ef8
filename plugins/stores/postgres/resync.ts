// Leaves offline mode after the database is reachable again. Batches that were decided offline are
// sent. New calls are still decided locally until the database has everything.
import type { InstanceInfo } from "tollgate/plugin";
import type { OfflineMode } from "./offline/offline-mode.ts";
import type { RunSql } from "./connection/pipelined-connection.ts";
import { replayBatch } from "./offline/replay-buffer.ts";
import type { LocalNode } from "./local-node.ts";

/** Synchronizes the node and returns the number of commands that were sent. */
export async function resync(
  sql: RunSql,
  node: LocalNode,
  outage: OfflineMode,
  about: InstanceInfo | undefined,
): Promise<number> {
  // Usually the node's lease has expired during the outage. It joins under a new epoch, and what
  // the database lost is sent under that epoch too.
  if (!(await node.resume(sql, about))) {
    await node.join(sql, node.requirePosition().instance, about);
    // Reads the change counters, so that a key revoked during the outage is rejected from the first
    // call that the database decides.
    await node.heartbeat(sql);
  }
  for (;;) {
    const batch = outage.nextBatch;
    if (batch) {
      await replayBatch(batch, (facts) => node.applyAgain(sql, facts));
      outage.markReplayed(batch);
    } else if (outage.deciding) await outage.deciding;
    // No await may come in between: whatever is decided after this goes to the database.
    else return outage.end();
  }
}
