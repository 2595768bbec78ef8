// A node from its beginning to its end: signs of life, and that those of others are missing.
import { LATEST_VERSION } from "../schema/migrations.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";

/** What a sign of life says besides. */
export interface HeartbeatInfo {
  /** What the instance says of itself from now on. */
  readonly info?: unknown;
  /** Its clock. */
  readonly at?: number;
}

/** What is heard with one. */
export interface HeartbeatResult {
  readonly versions: string;
  readonly databaseTime: number;
  /** Nodes that do not live and have left calls open. */
  readonly deadNodes: readonly string[];
}

/** `look`: the dead are looked for, too. Undefined: this node was taken for dead itself. */
export async function sendHeartbeat(
  sql: RunSql,
  schema: string,
  epoch: number,
  findsDead: boolean,
  { info, at }: HeartbeatInfo = {},
): Promise<HeartbeatResult | undefined> {
  const [row] = await sql({
    text: `SELECT array_to_string(${schema}.heartbeat_1($1::int, $2::boolean, $3::text, $4::bigint), ';') AS said`,
    values: [
      epoch,
      String(findsDead),
      info ? JSON.stringify(info) : null,
      at === undefined ? null : Math.floor(at),
    ],
  });
  const [live, versions, t, ...dead] = row!["said"]!.split(";") as [string, string, string];
  return live === "true" ? { versions, databaseTime: Number(t), deadNodes: dead } : undefined;
}

/** A row of its own, with a greater number than any before. */
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

/** In good order: what it has open may be settled at once. */
export async function markNodeLeft(sql: RunSql, schema: string, epoch: number): Promise<void> {
  await sql({
    text: `UPDATE ${schema}.node SET state = 'left' WHERE epoch = $1 AND state = 'live'`,
    values: [epoch],
  });
}
