// Replays the batches that an earlier process left in the spool folder, under a new node row. Open
// calls of that process are recovered, as for any dead node. Its budget leases are returned,
// because its spending is known after the replay.
import type { InstanceInfo, StoreCommand, CommandResult } from "tollgate/plugin";
import { insertNode, markNodeLeft } from "./membership/heartbeat.ts";
import type { RunSql } from "./connection/pipelined-connection.ts";
import { replayBatch } from "./offline/replay-buffer.ts";
import { returnLeases } from "./membership/lease-returns.ts";
import type { LeftSpool } from "./offline/spool.ts";

type ApplySlowPath = (batch: readonly StoreCommand[]) => Promise<readonly CommandResult[]>;

/**
 * Replays a spool and returns the number of commands that were sent. `as` returns a function that
 * writes as the given node.
 */
export async function replaySpool(
  sql: RunSql,
  schema: string,
  { instance, acknowledged, unsent }: LeftSpool,
  { leaseMs, as }: { readonly leaseMs: number; readonly as: (epoch: number) => ApplySlowPath },
): Promise<number> {
  const rows = await sql({
    text: `SELECT epoch, n, info FROM ${schema}.node WHERE id = $1 ORDER BY epoch`,
    values: [instance],
  });
  // Only one process uses a folder at a time, so the previous process has ended. There is no need
  // to wait until its lease expires.
  await sql({
    text: `UPDATE ${schema}.node SET state = 'dead' WHERE id = $1 AND state = 'live'`,
    values: [instance],
  });
  const known = new Map(rows.map(({ epoch, n }) => [Number(epoch), Number(n)]));
  const missing = acknowledged.filter(({ epoch, n }) => n > (known.get(epoch) ?? -1));
  const batches = [...missing.map(({ batch }) => batch), ...unsent];
  if (batches.length > 0) {
    const info = rows.at(-1)?.["info"];
    const facts = typeof info === "string" ? (JSON.parse(info) as InstanceInfo) : undefined;
    const epoch = await insertNode(sql, schema, instance, facts, leaseMs);
    const exactly = as(epoch);
    for (const batch of batches) await replayBatch(batch, exactly);
    await markNodeLeft(sql, schema, epoch);
  }
  await returnLeases(sql, schema, instance);
  return batches.reduce((sum, { length }) => sum + length, 0);
}
