// The database is back: what this node has done alone is told, while new calls are still decided here, until there is none that the database does
// not know.
import type { InstanceInfo } from "tollgate/plugin";
import type { OfflineMode } from "./offline/offline-mode.ts";
import type { RunSql } from "./connection/pipelined-connection.ts";
import { replayBatch } from "./offline/replay-buffer.ts";
import type { LocalNode } from "./local-node.ts";

/** Says how many commands were told. */
export async function resync(
  sql: RunSql,
  node: LocalNode,
  outage: OfflineMode,
  about: InstanceInfo | undefined,
): Promise<number> {
  // It was taken for dead meanwhile, mostly: it goes on under another number, and what the database has lost is told under that one, too.
  if (!(await node.resume(sql, about))) {
    await node.join(sql, node.requirePosition().instance, about);
    // A key that was revoked meanwhile is refused from the first call on that the database decides.
    await node.heartbeat(sql);
  }
  for (;;) {
    const batch = outage.nextBatch;
    if (batch) {
      await replayBatch(batch, (facts) => node.applyAgain(sql, facts));
      outage.markReplayed(batch);
    } else if (outage.deciding) await outage.deciding;
    // Nothing may come in between: what is decided after this goes to the database.
    else return outage.end();
  }
}
