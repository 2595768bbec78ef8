// Runs a compaction. It replaces a limited number of rows per transaction and records each
// transaction in the chain of the node.
import type { PruneResult, PruneProgress } from "tollgate/plugin";
import { hashBatch, noteChainLine, createSalt, hashText } from "tollgate/store";
import { readCheckpoint, type CompactionNote } from "./checkpoint.ts";
import {
  findCompactionRange,
  buildCheckpoint,
  oldestOpenCall,
  type CompactionResult,
} from "./compaction.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { numberArray, textArray } from "../connection/array-literal.ts";
import { assignNumbers, updateRollups } from "../read/store-reads.ts";

/** Maximum number of entries per transaction. */
const MAX_ENTRIES = 100_000;
/** Maximum number of consecutive failed tries. Most failures are temporary. */
const MAX_TRIES = 20;

interface CompactionNode {
  readonly node: number;
  n: number;
  head: Buffer;
}

export async function runCompaction(
  sql: RunSql,
  schema: string,
  before: number,
  progress: (of: PruneProgress) => void = () => {},
): Promise<Pick<PruneResult, "rows" | "longestStepMs">> {
  await assignNumbers(sql, schema);
  await updateRollups(sql, schema);
  let me: CompactionNode | undefined;
  let rows = 0;
  // Entries written from now on are left to a later run.
  const [chain] = await sql({ text: `SELECT next_seq FROM ${schema}.chain` });
  const end = Number(chain!["next_seq"]);
  for (let tries = 0; tries < MAX_TRIES;) {
    const from = (await readCheckpoint(sql, schema))?.nextSeq ?? 1;
    const limit = Math.min(end, (await oldestOpenCall(sql, schema))?.seq ?? Infinity);
    const cut = await findCompactionRange(sql, schema, { from, before, limit, most: MAX_ENTRIES });
    if (!cut) break;
    me ??= await insertCompactionNode(sql, schema);
    if (
      !(await applyCheckpoint(sql, schema, me, await buildCheckpoint(sql, schema, cut, Date.now())))
    ) {
      tries++;
      await updateRollups(sql, schema);
      continue;
    }
    tries = 0;
    rows += cut.to - cut.from;
    progress({ rows, total: rows });
  }
  await deleteUnusedTerms(sql, schema);
  await sql({ text: `SELECT ${schema}.drop_empty_partitions_1()` });
  return { rows, longestStepMs: 0 };
}

/** Number of terms checked at a time. Writing gateways wait for this long. */
const TERMS_PER_SWEEP = 2_000;

/** Deletes terms that no row refers to. */
async function deleteUnusedTerms(sql: RunSql, schema: string): Promise<void> {
  for (let at: Row | undefined = { p_node: "0", p_id: "0" }; at?.["p_node"] != null;)
    [at] = await sql({
      text: `SELECT p_node, p_id FROM ${schema}.delete_unused_terms_1($1::int, $2::bigint, $3)`,
      values: [at["p_node"], at["p_id"]!, TERMS_PER_SWEEP],
    });
}

/** Inserts a node row for the compaction. The node serves no clients. */
async function insertCompactionNode(sql: RunSql, schema: string): Promise<CompactionNode> {
  const [row] = await sql({
    text: `INSERT INTO ${schema}.node (id, state, last_heartbeat, lease) VALUES ('prune', 'left', '-infinity', '0') RETURNING epoch`,
  });
  return { node: Number(row!["epoch"]), n: 0, head: Buffer.alloc(0) };
}

/**
 * Applies a checkpoint. Returns false if the checkpoint is invalid because the ledger has changed.
 */
async function applyCheckpoint(
  sql: RunSql,
  schema: string,
  me: CompactionNode,
  { range, checkpoint, rollups }: CompactionResult,
): Promise<boolean> {
  const text = JSON.stringify(checkpoint);
  const [last] =
    rollups.length > 0
      ? [rollups.at(-1)![3]]
      : (
          await sql({
            text: `SELECT hash FROM ${schema}.checkpoint_rollup WHERE n = $1`,
            values: [checkpoint.rollups],
          })
        ).map(({ hash }) => hash!);
  const note = JSON.stringify({
    nextSeq: checkpoint.nextSeq,
    checkpoint: hashText(text),
    rollups: last ?? "",
  } satisfies CompactionNote);
  const salt = createSalt();
  const head = hashBatch(me.head, [noteChainLine("compacted", String(range.to), note, salt)]);
  const [row] = await sql({
    text: `SELECT ${schema}.compact_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::bigint[], $12::bigint[], $13::text[], $14::text[]) AS result`,
    values: [
      me.node,
      me.n + 1,
      head,
      note,
      salt,
      range.from,
      range.to,
      checkpoint.rollups,
      text,
      checkpoint.retainedReserves.map(([node, n, i]) => `${node}/${n}/${i}`).join(" "),
      numberArray(rollups.map(([n]) => n)),
      numberArray(rollups.map(([, quarter]) => quarter)),
      textArray(rollups.map(([, , its]) => its)),
      textArray(rollups.map(([, , , its]) => its)),
    ],
  });
  if (row!["result"] !== "done") return false;
  me.n++;
  me.head = head;
  return true;
}
