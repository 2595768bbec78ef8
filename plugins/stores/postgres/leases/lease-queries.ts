// Database queries of a gateway that uses budget leases. Each is one statement.
import type { RunSql } from "../connection/pipelined-connection.ts";
import { numberArray, textArray } from "../connection/array-literal.ts";
import { recalledLeasesSql } from "../schema/budget-lease-sql.ts";
import type { OfflineSettings } from "../offline/offline-mode.ts";

export interface LeaseRequest {
  readonly id: string;
  readonly max: bigint;
  /**
   * Amount that this node is expected to use soon. null requests a lease that is held for offline
   * mode.
   */
  readonly expectedUse: bigint | null;
  /** Amount of one call. */
  readonly take: bigint;
}

/** Asks other nodes to return their leases on these meters. Returns the number of leases. */
export async function recallLeases(
  sql: RunSql,
  schema: string,
  ids: readonly string[],
): Promise<number> {
  const [row] = await sql({
    text: `SELECT ${schema}.recall_leases_1($1::text[])::text AS many`,
    values: [textArray(ids)],
  });
  return Number(row!["many"]);
}

/** Returns which leases of this node were recalled, and the number of live nodes. */
export async function readRecalled(sql: RunSql, schema: string, node: string) {
  const [row] = await sql({ text: recalledLeasesSql(schema), values: [node] });
  return {
    live: Math.max(1, Number(row!["live"])),
    back: JSON.parse(row!["back"]!) as readonly string[],
  };
}

export async function hasAnyLease(sql: RunSql, schema: string): Promise<boolean> {
  const [row] = await sql({
    text: `SELECT EXISTS (SELECT 1 FROM ${schema}.budget_lease)::text AS are`,
  });
  return row!["are"] === "true";
}

/** Returns this node's leases, by meter. */
export async function readOwnLeases(sql: RunSql, schema: string, node: string) {
  const rows = await sql({
    text: `SELECT meter, amount FROM ${schema}.budget_lease WHERE node = $1`,
    values: [node],
  });
  return rows.map(({ meter, amount }) => [meter!, BigInt(amount!)] as const);
}

/**
 * Reports that this node uses these meters. Returns those that at least `from` nodes use, and the
 * number of live nodes.
 */
export async function reportUse(
  sql: RunSql,
  schema: string,
  { node, ids, from }: { node: string; ids: readonly string[]; from: number },
) {
  const [row] = await sql({
    text: `SELECT live::text AS live, to_json(hot)::text AS hot FROM ${schema}.report_use_1($1, $2::text[], $3)`,
    values: [node, textArray(ids), from],
  });
  return {
    live: Math.max(1, Number(row!["live"])),
    hot: new Set(JSON.parse(row!["hot"]!) as readonly string[]),
  };
}

/**
 * @param of If `apart` is set, the leases may be spent in offline mode.
 */
export const takeLeases = (
  sql: RunSql,
  schema: string,
  of: {
    readonly node: string;
    readonly apart: Pick<OfflineSettings, "share"> | undefined;
    readonly wanted: readonly LeaseRequest[];
  },
) =>
  sql({
    text: `SELECT id, amount, level, reserved, max, peak FROM ${schema}.take_lease_1($1, $2::boolean, $3::numeric, $4::text[], $5::numeric[], $6::numeric[], $7::numeric[])`,
    values: [
      of.node,
      String(of.apart !== undefined),
      String(of.apart?.share ?? 0),
      textArray(of.wanted.map(({ id }) => id)),
      numberArray(of.wanted.map(({ max }) => max)),
      numberArray(of.wanted.map(({ expectedUse }) => expectedUse)),
      numberArray(of.wanted.map(({ take: each }) => each)),
    ],
  });
