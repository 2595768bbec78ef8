// Reads and verifies the checkpoint that replaces compacted rows. The newest note in the chain
// contains the hash of the checkpoint and the last hash of its rollups.
import { hash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";
import type { ChainNote } from "./chain-note.ts";

export interface Checkpoint {
  /** The last compacted commit. The chain continues from its hash. */
  readonly segment: number;
  readonly last: number;
  readonly hash: string;
  /** When the first and the last compacted row were written. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Number of compacted rows. */
  readonly rows: number;
  /** When the checkpoint was built. */
  readonly at: number;
  /**
   * Number of rollups in use. Rollups with higher numbers are staged by a later run or were never
   * used.
   */
  readonly rollups: number;
  /** Retained reserves, each with the hash of its text. */
  readonly retainedReserves: readonly (readonly [seq: number, hash: string])[];
  /** Usage of calendar windows at the time of the checkpoint. */
  readonly meters: readonly (readonly [id: string, hash: string])[];
  /**
   * Count of operator commands in compacted rows, and a hash over them. Undefined if the checkpoint
   * predates this field.
   */
  readonly audit?: { readonly count: number; readonly hash: string };
  /** Erasures that were recorded in compacted notes. */
  readonly erasures: readonly (readonly [seq: number, count: number, hash: string])[];
}

export const hashText = (text: string): string => hash("sha256", text);

/** Hashes a rollup together with the hash of its predecessor. */
export const rollupHash = (before: string, quarter: number, text: string): string =>
  hash("sha256", `${before}\n${quarter}\n${text}`);

/** Selects the last compacted entry, or 0 if there is none. */
export const COMPACTED_UP_TO_SQL = "SELECT coalesce(max(last), 0) AS last FROM checkpoint";
export const readCompactedUpTo = (statement: StatementSync): number =>
  Number(statement.get()!["last"]);

/** Reads the checkpoint. Returns undefined if nothing was compacted yet. */
export function readCheckpoint(db: DatabaseSync): Checkpoint | undefined {
  const text = db.prepare("SELECT text FROM checkpoint").get()?.["text"];
  return typeof text === "string" ? (JSON.parse(text) as Checkpoint) : undefined;
}

/**
 * Verifies the checkpoint.
 * @param said The newest note about a compaction.
 */
export function* verifyCheckpoint(
  db: DatabaseSync,
  said: ChainNote["compacted"],
): Generator<Problem, void> {
  const found = db.prepare("SELECT last, rollups, text FROM checkpoint").get();
  if (!found && !said) return;
  const wrong = (message: string): Problem => ({ path: "/checkpoint", message });
  const text = String(found?.["text"] ?? "");
  if (!said) yield wrong("The ledger has no record of a pruning.");
  else if (
    !found ||
    hashText(text) !== said.checkpoint ||
    found["last"] !== said.last ||
    found["rollups"] !== rollupCountIn(text)
  )
    yield wrong(`The checkpoint of the rows up to ${said.last} was changed after it was written.`);
  let before = "";
  const all = db.prepare(
    "SELECT n, quarter, text, hash FROM checkpoint_rollup WHERE n <= ? ORDER BY n",
  );
  for (const row of all.iterate(Number(found?.["rollups"] ?? 0))) {
    const its = rollupHash(before, Number(row["quarter"]), String(row["text"]));
    if (its !== row["hash"])
      yield {
        path: `/checkpoint_rollup/${row["n"]}`,
        message: "The totals were changed after they were written.",
      };
    before = String(row["hash"]);
  }
  if (said && before !== said.rollups)
    yield wrong("Totals of pruned rows are missing, or there are too many.");
  yield* verifyRetainedReserves(db, text);
}

/** Verifies that exactly the reserves named in the checkpoint are retained, unchanged. */
function* verifyRetainedReserves(db: DatabaseSync, base: string): Generator<Problem, void> {
  const named = new Map(retainedReservesIn(base));
  for (const { seq, text } of readRetainedReserveTexts(db)) {
    if (named.get(seq) !== hashText(text))
      yield {
        path: `/retained_reserve/${seq}`,
        message: "The reserve differs from its checkpoint.",
      };
    named.delete(seq);
  }
  for (const seq of named.keys())
    yield {
      path: `/retained_reserve/${seq}`,
      message: "The reserve is in the checkpoint, but it is missing.",
    };
}

function rollupCountIn(base: string): number {
  try {
    return (JSON.parse(base) as Checkpoint).rollups;
  } catch {
    return 0;
  }
}

function retainedReservesIn(base: string): Checkpoint["retainedReserves"] {
  try {
    return (JSON.parse(base) as Checkpoint).retainedReserves;
  } catch {
    return [];
  }
}

/** Returns the text of a retained reserve that its hash covers. */
export const retainedReserveText = (of: {
  readonly isSettled: unknown;
  readonly instance: unknown;
  readonly terms: unknown;
  readonly rows: unknown;
}): string => JSON.stringify([of.isSettled, of.instance, of.terms, of.rows]);

function* readRetainedReserveTexts(
  db: DatabaseSync,
): Generator<{ seq: number; text: string }, void> {
  const all = db.prepare(
    "SELECT seq, is_settled AS isSettled, instance, terms, rows FROM retained_reserve ORDER BY seq",
  );
  for (const row of all.iterate())
    yield { seq: Number(row["seq"]), text: retainedReserveText(row as never) };
}
