// A small pool of connections for reads, created on demand.
import pg from "pg";
import { PLANNER_SETTINGS } from "./connection-config.ts";
import type { RunSql, GetClientConfig, Row } from "./pipelined-connection.ts";
import { isUnavailable, failUnreachable } from "./errors.ts";

export interface ReadPool {
  readonly sql: RunSql;
  close(): Promise<void>;
}

/**
 * @param shared Whether a pooler shares the connections with other clients. Planner settings are
 *   then set for each query.
 */
export function createReadPool(
  connecting: GetClientConfig,
  most: number,
  shared = false,
): ReadPool {
  let pool: Promise<pg.Pool> | undefined;
  const made = async (): Promise<pg.Pool> => {
    const fresh = new pg.Pool({ ...(await connecting()), max: most, idleTimeoutMillis: 30_000 });
    // A connection that breaks while idle is replaced at the next use.
    fresh.on("error", () => {});
    return fresh;
  };
  return {
    sql: async ({ text, values = [] }) => {
      try {
        const question = { text, values: [...values] };
        const from = await (pool ??= made());
        return (await (shared ? queryWithClient(from, question) : from.query<Row>(question))).rows;
      } catch (error) {
        // Throw the fault of the store contract, so that callers can distinguish it from a defect.
        if (isUnavailable(error)) failUnreachable(error);
        throw error;
      }
    },
    async close() {
      const ended = pool;
      pool = undefined;
      await (await ended)?.end();
    },
  };
}

async function queryWithClient(
  pool: pg.Pool,
  question: pg.QueryConfig,
): Promise<pg.QueryResult<Row>> {
  const client = await pool.connect();
  let broken = true;
  try {
    await client.query(
      ["BEGIN", ...PLANNER_SETTINGS.map((setting) => `SET LOCAL ${setting}`)].join("; "),
    );
    const found = await client.query<Row>(question);
    await client.query("COMMIT");
    broken = false;
    return found;
  } finally {
    // A connection in the middle of a transaction is not reused.
    client.release(broken);
  }
}
