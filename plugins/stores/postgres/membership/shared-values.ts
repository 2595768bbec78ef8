// State that all gateways share: values that the first gateway decides, and delivered thresholds.
import type { ThresholdOutbox, Store } from "tollgate/plugin";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { thresholdMeter, readUndeliveredThresholds } from "../read/store-reads.ts";

/** Creates a function that returns a shared value. The first written value is kept. */
export function createSharedValues(
  sql: RunSql,
  schema: string,
): NonNullable<Store["getOrCreateShared"]> {
  const find = async (name: string): Promise<Uint8Array | undefined> => {
    const [row] = await sql({
      text: `SELECT encode(value, 'base64') AS value FROM ${schema}.shared WHERE name = $1`,
      values: [name],
    });
    return row && Uint8Array.from(Buffer.from(row["value"]!, "base64"));
  };
  return async (name, make) => {
    const known = await find(name);
    if (known) return known;
    await sql({
      text: `INSERT INTO ${schema}.shared VALUES ($1, $2) ON CONFLICT DO NOTHING`,
      values: [name, Buffer.from(await make())],
    });
    return (await find(name))!;
  };
}

/**
 * Creates the outbox of thresholds.
 * @param write Runs a statement in the queue of this node's writes.
 */
export const createThresholdOutbox = (
  sql: RunSql,
  write: RunSql,
  schema: string,
): ThresholdOutbox => ({
  listUndelivered: () => readUndeliveredThresholds(sql, schema),
  async markDelivered(crossings) {
    for (const crossing of crossings)
      await write({
        text: `UPDATE ${schema}.meter SET notified_level = greatest(notified_level, $2::numeric) WHERE id = $1`,
        values: [thresholdMeter(crossing), String(crossing.used)],
      });
  },
});
