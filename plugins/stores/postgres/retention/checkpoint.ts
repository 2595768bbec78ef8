// Reads and verifies the checkpoint that replaces compacted rows. The newest compaction note
// contains its hash and the last rollup hash. Each chain continues from its anchor.
import type { Problem } from "tollgate/plugin";
import {
  noteChainLine,
  rowChainLine,
  ALL_COLUMNS,
  hashText,
  parseCheckpoint,
  RollupChain,
  verifyRetained,
  type CheckpointBase,
  type CheckpointHashes,
} from "tollgate/store";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";

/** A reserve that is kept because later rows refer to its call, with the hash of its chain line. */
export type RetainedReserve = readonly [node: number, n: number, i: number, hash: string];
/**
 * The end of a node's compacted batches: number and hash of the last batch, and a hash over all
 * earlier notes. Notes are never deleted.
 */
export type NodeAnchor = readonly [node: number, n: number, head: string, notes: string];

export interface Checkpoint extends CheckpointBase {
  /** The first existing entry, and the chain hash before it. */
  readonly nextSeq: number;
  readonly link: string;
  readonly retainedReserves: readonly RetainedReserve[];
  readonly anchors: readonly NodeAnchor[];
}

/** The content of a compaction note in the chain. */
export interface CompactionNote extends CheckpointHashes {
  readonly nextSeq: number;
}

/** Reads the checkpoint. Returns undefined if no rows have been compacted yet. */
export async function readCheckpoint(sql: RunSql, schema: string): Promise<Checkpoint | undefined> {
  const [row] = await sql({ text: `SELECT text FROM ${schema}.checkpoint` });
  return row && (JSON.parse(row["text"]!) as Checkpoint);
}

/** Returns the hash of a retained reserve. */
export const retainedReserveHash = (row: Row): string =>
  hashText(rowChainLine(ALL_COLUMNS.map((name) => row[name] ?? null)));

/** Returns a hash over a node's notes up to batch number `n`. */
export async function hashNotes(
  sql: RunSql,
  schema: string,
  node: number,
  n: number,
): Promise<string> {
  const rows = await sql({
    text: `SELECT n, i, kind, id, text, salt FROM ${schema}.note WHERE node = $1 AND n <= $2 ORDER BY n, i`,
    values: [node, n],
  });
  return hashText(
    rows
      .map(
        ({ n: at, i, kind, id, text, salt }) =>
          `${at} ${i} ${noteChainLine(kind!, id!, text!, salt!)}`,
      )
      .join("\n"),
  );
}

/** Verifies that the checkpoint is unchanged and that no other compacted rows remain. */
export async function* verifyCheckpoint(
  sql: RunSql,
  schema: string,
): AsyncGenerator<Problem, void> {
  const wrong = (message: string): Problem => ({ path: "/base", message });
  const [found] = await sql({ text: `SELECT next_seq, rollups, text FROM ${schema}.checkpoint` });
  const notes = await sql({ text: `SELECT text FROM ${schema}.note WHERE kind = 'compacted'` });
  const note = notes
    .map(({ text }) => JSON.parse(text!) as CompactionNote)
    .reduce<CompactionNote | undefined>((a, b) => (a && a.nextSeq > b.nextSeq ? a : b), undefined);
  if (!found && !note) return;
  if (!note) return yield wrong("The ledger has no record of a pruning.");
  const base = found && parseCheckpoint<Checkpoint>(found["text"]!);
  if (
    !base ||
    hashText(found["text"]!) !== note.checkpoint ||
    Number(found["next_seq"]) !== note.nextSeq ||
    Number(found["rollups"]) !== base.rollups
  )
    return yield wrong(
      `The checkpoint of the rows before ${note.nextSeq} was changed after it was written.`,
    );
  yield* verifyRollups(sql, schema, base, note);
  for (const [node, n, , notes] of base.anchors)
    if ((await hashNotes(sql, schema, node, n)) !== notes)
      yield wrong(
        `The notes of node ${node} up to batch ${n} were changed after they were written.`,
      );
  yield* verifyRetainedReserves(sql, schema, base);
}

const ROLLUPS_PER_READ = 500;

async function* verifyRollups(
  sql: RunSql,
  schema: string,
  base: Checkpoint,
  note: CompactionNote,
): AsyncGenerator<Problem, void> {
  const chain = new RollupChain("/sums");
  for (let going = true; going;) {
    const rows = await sql({
      text: `SELECT n, quarter, text, hash FROM ${schema}.checkpoint_rollup WHERE n > $1 AND n <= $2 ORDER BY n LIMIT $3`,
      values: [chain.n, base.rollups, ROLLUPS_PER_READ],
    });
    for (const row of rows)
      yield* chain.add(Number(row["n"]), Number(row["quarter"]), row["text"]!, row["hash"]!);
    going = rows.length === ROLLUPS_PER_READ;
  }
  // One statement reads one snapshot. A compaction may add rollups concurrently.
  const [more] = await sql({
    text: `SELECT EXISTS (SELECT 1 FROM ${schema}.checkpoint_rollup x, ${schema}.checkpoint b WHERE x.n > b.rollups)::text AS are`,
  });
  if (chain.hash !== note.rollups || chain.n !== base.rollups || more!["are"] === "true")
    yield { path: "/base", message: "Totals of pruned rows are missing, or there are too many." };
}

/** Verifies that only reserves named in the checkpoint remain of the compacted rows, unchanged. */
async function* verifyRetainedReserves(
  sql: RunSql,
  schema: string,
  base: Checkpoint,
): AsyncGenerator<Problem, void> {
  const found: (readonly [id: string, hash: string])[] = [];
  for (const [node, n] of base.anchors)
    for (const row of await sql({
      text: `SELECT node, n, i, ${ALL_COLUMNS.join(", ")} FROM ${schema}.entry WHERE node = $1 AND n <= $2`,
      values: [node, n],
    }))
      found.push([`${row["node"]}/${row["n"]}/${row["i"]}`, retainedReserveHash(row)]);
  const named = base.retainedReserves.map(
    ([node, n, i, its]) => [`${node}/${n}/${i}`, its] as const,
  );
  yield* verifyRetained("/carried", named, found);
}
