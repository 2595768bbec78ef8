// What a node asks the database about slices, each in one statement.
import type { ThresholdReached } from "tollgate/plugin";
import { createLedgerRules, createMeter } from "tollgate/store";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { numberArray, textArray } from "../connection/array-literal.ts";
import { EMPTY_JOURNAL } from "../write/result-replay.ts";
import { recalledLeasesSql } from "../schema/budget-lease-sql.ts";

/** How a node is apart from its database: for how long it goes on alone, and with what part of what is left of a budget. */
export interface OfflineSettings {
  readonly maxMs: number;
  /** 0.02: two in a hundred. */
  readonly share: number;
}

/** A slice that is asked for. */
export interface LeaseRequest {
  readonly id: string;
  readonly max: bigint;
  /** What this node uses in a while; null: a standing slice. */
  readonly expectedUse: bigint | null;
  /** What one call takes. */
  readonly take: bigint;
}

/** Other nodes are asked for theirs of these meters. Says how many have any. */
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

/** Which of this node's another one needs, and how many nodes live. */
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

/** What this node has, by meter. */
export async function readOwnLeases(sql: RunSql, schema: string, node: string) {
  const rows = await sql({
    text: `SELECT meter, amount FROM ${schema}.budget_lease WHERE node = $1`,
    values: [node],
  });
  return rows.map(({ meter, amount }) => [meter!, BigInt(amount!)] as const);
}

/** This node draws on these meters: on which of them `from` nodes do, and how many nodes live. */
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

/** `apart`: what is taken may be spent while the database is away. */
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

/** What a node has set aside goes back, all of it or of these meters. A row for each, with what its meter says then. */
export const returnLeases = (
  sql: RunSql,
  schema: string,
  node: string,
  ids?: readonly string[],
): Promise<readonly Row[]> =>
  sql({
    text: `SELECT id, level, max, peak FROM ${schema}.return_lease_1($1, $2::text[])`,
    values: [node, ids === undefined ? null : textArray(ids)],
  });

/** The same of nodes that do not live, but for what they may spend apart. */
export const returnDeadLeases = (sql: RunSql, schema: string): Promise<readonly Row[]> =>
  sql({ text: `SELECT id, level, max, peak FROM ${schema}.return_dead_leases_1()` });

/** What was crossed when slices were added up: `peak` is what the meter had come to before. */
export function reachedThresholdsIn(rows: readonly Row[]): readonly ThresholdReached[] {
  const book = createLedgerRules(EMPTY_JOURNAL, () => "");
  for (const { id, level, max, peak } of rows)
    book.loadMeter({
      ...createMeter(id!),
      level: BigInt(level!),
      max: BigInt(max!),
      notifiedLevel: BigInt(peak!),
    });
  return book.undeliveredThresholds();
}
