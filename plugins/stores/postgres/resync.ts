// Leaves offline mode when the database is reachable again. Batches that were decided offline are
// sent to the database. New calls are decided locally until the database has all batches.
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
  // The node's lease has usually expired during the outage. The node then joins under a new epoch,
  // and lost batches are sent under that epoch too.
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
    // No await is allowed before this line, because every command that is decided later is sent to
    // the database.
    else return outage.end();
  }
}
