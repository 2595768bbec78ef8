// The life cycle of a node: join, heartbeats, detection of expired nodes, and leave.
import { LATEST_VERSION } from "../schema/migrations.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";

/** Data that a heartbeat sends in addition. */
export interface HeartbeatInfo {
  /** New information about the instance. */
  readonly info?: unknown;
  /** The instance's clock, in milliseconds. */
  readonly at?: number;
}

/** The response to a heartbeat. */
export interface HeartbeatResult {
  readonly versions: string;
  readonly databaseTime: number;
  /** Nodes that are not alive and have open calls. */
  readonly deadNodes: readonly string[];
}

/**
 * @param findsDead Whether to look for nodes whose lease has expired.
 * @returns Undefined if this node's own lease has expired.
 */
export async function sendHeartbeat(
  sql: RunSql,
  schema: string,
  epoch: number,
  findsDead: boolean,
  { info, at }: HeartbeatInfo = {},
): Promise<HeartbeatResult | undefined> {
  const [row] = await sql({
    text: `SELECT array_to_string(${schema}.heartbeat_1($1::int, $2::boolean, $3::text, $4::bigint), ';') AS result`,
    values: [
      epoch,
      String(findsDead),
      info ? JSON.stringify(info) : null,
      at === undefined ? null : Math.floor(at),
    ],
  });
  const [live, versions, t, ...dead] = row!["result"]!.split(";") as [string, string, string];
  return live === "true" ? { versions, databaseTime: Number(t), deadNodes: dead } : undefined;
}

/** Inserts a node row. Its epoch is greater than the epochs of all earlier rows. */
export async function insertNode(
  sql: RunSql,
  schema: string,
  instance: string,
  about: unknown,
  leaseMs: number,
): Promise<number> {
  const [row] = await sql({
    text: `INSERT INTO ${schema}.node (id, info, schema_version, lease) VALUES ($1, $2, $3, make_interval(secs => $4)) RETURNING epoch`,
    values: [
      instance,
      about === undefined ? null : JSON.stringify(about),
      LATEST_VERSION,
      leaseMs / 1_000,
    ],
  });
  return Number(row!["epoch"]);
}

/** Marks a node as shut down cleanly. Other nodes may settle its open calls immediately. */
export async function markNodeLeft(sql: RunSql, schema: string, epoch: number): Promise<void> {
  await sql({
    text: `UPDATE ${schema}.node SET state = 'left' WHERE epoch = $1 AND state = 'live'`,
    values: [epoch],
  });
}
