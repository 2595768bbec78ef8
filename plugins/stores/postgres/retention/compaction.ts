// Builds the checkpoint of a compaction from the rows. It determines the rows to compact, their
// totals per quarter of an hour, and the points from which the chains continue.
import type { PrunePlan } from "tollgate/plugin";
import {
  decodeColumns,
  type ColumnRow,
  ALL_COLUMNS,
  CheckpointSums,
  estimatePrune,
  extendCheckpoint,
  type CheckpointRollup,
} from "tollgate/store";
import {
  retainedReserveHash,
  hashNotes,
  readCheckpoint,
  type NodeAnchor,
  type Checkpoint,
  type RetainedReserve,
} from "./checkpoint.ts";
import { parseBytea } from "../write/slow-path.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { nodeJoinSql, ROW_SELECT_SQL } from "../rows/row-sql.ts";

/** Number of batches, or of rows, per read. */
const BATCHES_PER_STRIDE = 2_000;
/** Approximate compaction speed, in entries per second. */
const ENTRIES_PER_SECOND = 30_000;

/** A range of whole batches from the oldest on. */
export interface CompactionRange {
  readonly from: number;
  /** The first entry that is kept. */
  readonly to: number;
  readonly firstAt: number;
  readonly lastAt: number;
}

/** Returns the oldest open call, by the sequence number of its batch. */
export async function oldestOpenCall(
  sql: RunSql,
  schema: string,
): Promise<{ seq: number; attempt: string; at: number } | undefined> {
  const [row] = await sql({
    text: `SELECT b.seq, e.attempt, e.at FROM ${schema}.open_call o
      JOIN ${schema}.ledger_row e ON e.attempt = o.attempt AND e.started_at = o.started_at AND e.kind = 0
      JOIN ${schema}.batch b ON b.node = e.node AND b.n = e.n WHERE b.seq IS NOT NULL ORDER BY b.seq, e.i LIMIT 1`,
  });
  return row && { seq: Number(row["seq"]), attempt: row["attempt"]!, at: Number(row["at"]) };
}

/**
 * Returns the range of batches whose entries are older than `before` and whose sequence numbers are
 * below `limit`. The range ends after `most` entries.
 */
export async function findCompactionRange(
  sql: RunSql,
  schema: string,
  of: {
    readonly from: number;
    readonly before: number;
    readonly limit: number;
    readonly most: number;
  },
): Promise<CompactionRange | undefined> {
  const { from, before, limit, most } = of;
  let cut: CompactionRange | undefined;
  for (let at = from, more = true; more;) {
    const batches = await sql({
      text: `SELECT b.seq, b.entries, min(e.at) AS since, max(e.at) AS till
        FROM (SELECT * FROM ${schema}.batch WHERE seq >= $1 AND entries > 0 ORDER BY seq LIMIT $2) b
        JOIN ${schema}.ledger_row e ON e.node = b.node AND e.n = b.n GROUP BY b.seq, b.entries ORDER BY b.seq`,
      values: [at, BATCHES_PER_STRIDE],
    });
    for (const batch of batches) {
      const [seq, since, till] = [batch["seq"], batch["since"], batch["till"]].map(Number) as [
        number,
        number,
        number,
      ];
      if (till >= before || seq >= limit) return cut;
      cut = {
        from,
        to: seq + Number(batch["entries"]),
        firstAt: Math.min(since, cut?.firstAt ?? Infinity),
        lastAt: Math.max(till, cut?.lastAt ?? -Infinity),
      };
      if (cut.to - from >= most) return cut;
    }
    more = batches.length === BATCHES_PER_STRIDE;
    at = cut?.to ?? at;
  }
  return cut;
}

/** Estimates the effect of a compaction. */
export async function planCompaction(
  sql: RunSql,
  schema: string,
  before: number,
  bytesNow: number,
): Promise<PrunePlan> {
  const from = (await readCheckpoint(sql, schema))?.nextSeq ?? 1;
  const open = await oldestOpenCall(sql, schema);
  const all = await findCompactionRange(sql, schema, {
    from,
    before,
    limit: Infinity,
    most: Infinity,
  });
  const cut =
    all && open && open.seq < all.to
      ? await findCompactionRange(sql, schema, { from, before, limit: open.seq, most: Infinity })
      : all;
  const [chain] = await sql({ text: `SELECT next_seq FROM ${schema}.chain` });
  return estimatePrune(
    cut && { rows: cut.to - from, firstAt: cut.firstAt, lastAt: cut.lastAt },
    { rows: Number(chain!["next_seq"]) - from, bytes: bytesNow },
    ENTRIES_PER_SECOND,
    cut?.to === all?.to ? undefined : open,
  );
}

/** The data with which the database replaces rows. */
export interface CompactionResult {
  readonly range: CompactionRange;
  readonly checkpoint: Checkpoint;
  readonly rollups: readonly CheckpointRollup[];
}

export async function buildCheckpoint(
  sql: RunSql,
  schema: string,
  cut: CompactionRange,
  at: number,
): Promise<CompactionResult> {
  const before = await readCheckpoint(sql, schema);
  const sums = await buildRollups(sql, schema, cut, before?.rollups ?? 0);
  const carried = await sql({
    text: `SELECT e.node, e.n, e.i, ${ALL_COLUMNS.map((name) => `e.${name}`).join(", ")} FROM ${schema}.retained_reserves_1($1, $2) c
      JOIN ${schema}.entry e ON e.node = c.node AND e.n = c.n AND e.i = c.i ORDER BY 1, 2, 3`,
    values: [cut.from, cut.to],
  });
  const [last] = await sql({
    text: `SELECT encode(chain_hash, 'hex') AS chain_hash FROM ${schema}.batch WHERE seq < $1 AND entries > 0 ORDER BY seq DESC LIMIT 1`,
    values: [cut.to],
  });
  return {
    range: cut,
    rollups: sums,
    checkpoint: {
      nextSeq: cut.to,
      link: last!["chain_hash"]!,
      ...extendCheckpoint(before, {
        firstAt: cut.firstAt,
        lastAt: cut.lastAt,
        rows: cut.to - cut.from,
        at,
        rollups: sums.length,
      }),
      retainedReserves: carried.map((row): RetainedReserve => [
        Number(row["node"]),
        Number(row["n"]),
        Number(row["i"]),
        retainedReserveHash(row),
      ]),
      anchors: await findAnchors(sql, schema, cut, before?.anchors ?? []),
    },
  };
}

async function buildRollups(
  sql: RunSql,
  schema: string,
  { from, to }: CompactionRange,
  n: number,
): Promise<CompactionResult["rollups"]> {
  const sums = new CheckpointSums();
  for (let after = from - 1, more = true; more;) {
    const rows = await sql({
      text: `SELECT b.seq + e.i AS seq, ${ROW_SELECT_SQL} FROM ${schema}.batch b JOIN ${schema}.entry e ON e.node = b.node AND e.n = b.n ${nodeJoinSql(schema)}
        WHERE b.seq >= coalesce((SELECT max(seq) FROM ${schema}.batch WHERE seq <= $1::bigint + 1), 0) AND b.seq < $2
          AND b.seq + e.i > $1::bigint AND e.kind <> 0 ORDER BY b.seq + e.i LIMIT $3`,
      values: [after, to, BATCHES_PER_STRIDE],
    });
    for (const row of rows) sums.add(decodeColumns(row as ColumnRow));
    more = rows.length === BATCHES_PER_STRIDE;
    after = Number(rows.at(-1)?.["seq"] ?? after);
  }
  const [newest] = await sql({
    text: `SELECT hash FROM ${schema}.checkpoint_rollup WHERE n = $1`,
    values: [n],
  });
  return sums.rollups(n, newest?.["hash"] ?? "");
}

/** Returns the end of each node's compacted batches. */
async function findAnchors(
  sql: RunSql,
  schema: string,
  { from, to }: CompactionRange,
  before: readonly NodeAnchor[],
): Promise<readonly NodeAnchor[]> {
  const rows: readonly Row[] = await sql({
    text: `SELECT DISTINCT ON (node) node, n, hash FROM ${schema}.batch WHERE seq >= $1 AND seq < $2 ORDER BY node, n DESC`,
    values: [from, to],
  });
  const found = new Map(before.map((anchor) => [anchor[0], anchor]));
  for (const row of rows) {
    const [node, n] = [Number(row["node"]), Number(row["n"])];
    found.set(node, [
      node,
      n,
      parseBytea(row["hash"]!).toString("hex"),
      await hashNotes(sql, schema, node, n),
    ]);
  }
  return [...found.values()].sort(([a], [b]) => a - b);
}
