// Reads and verifies the checkpoint that replaces compacted rows. The newest note in the chain
// contains the hash of the checkpoint and the last hash of its rollups.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { LedgerQuery, Problem } from "tollgate/plugin";
import {
  hashText,
  parseCheckpoint,
  RollupChain,
  verifyRetained,
  type CheckpointBase,
  type RetainedJob,
  addCheckpointRollups,
  type Totals,
} from "tollgate/store";
import type { ChainNote } from "./chain-note.ts";

export interface Checkpoint extends CheckpointBase {
  /** The last compacted commit. The chain continues from its hash. */
  readonly segment: number;
  readonly last: number;
  readonly hash: string;
  /** Retained reserves, each with the hash of its text. */
  readonly retainedReserves: readonly (readonly [seq: number, hash: string])[];
  /** Usage of calendar windows at the time of the checkpoint. */
  readonly meters: readonly (readonly [id: string, level: string])[];
  /**
   * Count of operator commands in compacted rows, and a hash over them. Undefined if the checkpoint
   * is older than this field.
   */
  readonly audit?: { readonly count: number; readonly hash: string };
  /** Jobs that were open at that time. Unset if there were none. */
  readonly jobs?: readonly RetainedJob[];
  /** Erasures that were recorded in compacted notes. */
  readonly erasures: readonly (readonly [seq: number, count: number, hash: string])[];
}

/** Selects the last compacted entry, or 0 if there is none. */
export const COMPACTED_UP_TO_SQL = "SELECT coalesce(max(last), 0) AS last FROM checkpoint";
export const readCompactedUpTo = (statement: StatementSync): number =>
  Number(statement.get()!["last"]);

/** Reads the checkpoint. Returns undefined if no rows have been compacted yet. */
export function readCheckpoint(db: DatabaseSync): Checkpoint | undefined {
  const text = db.prepare("SELECT text FROM checkpoint").get()?.["text"];
  return typeof text === "string" ? (JSON.parse(text) as Checkpoint) : undefined;
}

/**
 * @param note The newest note about a compaction.
 */
export function* verifyCheckpoint(
  db: DatabaseSync,
  note: ChainNote["compacted"],
): Generator<Problem, void> {
  const found = db.prepare("SELECT last, rollups, text FROM checkpoint").get();
  if (!found && !note) return;
  const wrong = (message: string): Problem => ({ path: "/checkpoint", message });
  const text = String(found?.["text"] ?? "");
  const base = parseCheckpoint<Checkpoint>(text);
  if (!note) yield wrong("The ledger has no record of a pruning.");
  else if (
    !found ||
    hashText(text) !== note.checkpoint ||
    found["last"] !== note.last ||
    found["rollups"] !== (base?.rollups ?? 0)
  )
    yield wrong(`The checkpoint of the rows up to ${note.last} was changed after it was written.`);
  const chain = new RollupChain("/checkpoint_rollup");
  const all = db.prepare(
    "SELECT n, quarter, text, hash FROM checkpoint_rollup WHERE n <= ? ORDER BY n",
  );
  for (const row of all.iterate(Number(found?.["rollups"] ?? 0)))
    yield* chain.add(
      Number(row["n"]),
      Number(row["quarter"]),
      String(row["text"]),
      String(row["hash"]),
    );
  if (note && chain.hash !== note.rollups)
    yield wrong("Totals of pruned rows are missing, or there are too many.");
  yield* verifyRetained("/retained_reserve", base?.retainedReserves ?? [], readRetained(db));
}

/** Returns the text of a retained reserve that its hash covers. */
export const retainedReserveText = (of: {
  readonly isSettled: unknown;
  readonly instance: unknown;
  readonly terms: unknown;
  readonly rows: unknown;
}): string => JSON.stringify([of.isSettled, of.instance, of.terms, of.rows]);

function* readRetained(db: DatabaseSync): Generator<readonly [seq: number, hash: string], void> {
  const all = db.prepare(
    "SELECT seq, is_settled AS isSettled, instance, terms, rows FROM retained_reserve ORDER BY seq",
  );
  for (const row of all.iterate())
    yield [Number(row["seq"]), hashText(retainedReserveText(row as never))];
}

/** Adds the rollups of compacted rows to totals. */
export const addCompactedRows = (db: DatabaseSync, totals: Totals, query: LedgerQuery): void =>
  addCheckpointRollups(totals, query, (from, to) =>
    db
      .prepare(
        "SELECT quarter, text FROM checkpoint_rollup WHERE quarter >= ? AND quarter < ? AND n <= (SELECT rollups FROM checkpoint)",
      )
      .all(from, to)
      .map(({ quarter, text }) => [Number(quarter), String(text)] as const),
  );
