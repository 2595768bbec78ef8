// What stands for rows that were pruned, and how the rest of the chain proves it: the newest note says the hash of the base and the
// last hash of the sums.
import { hash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";
import type { ChainNote } from "./chain-note.ts";

export interface Checkpoint {
  /** The last commit that is gone. The chain goes on from its hash. */
  readonly segment: number;
  readonly last: number;
  readonly hash: string;
  /** When the first row was written that is gone, and when the last one. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Rows that are gone. */
  readonly rows: number;
  /** When this was written. */
  readonly at: number;
  /** How many of the sums are in use; others are not yet, or never were. */
  readonly rollups: number;
  /** Reserves that are kept apart, each with the hash of its text. */
  readonly retainedReserves: readonly (readonly [seq: number, hash: string])[];
  /** What windows of the calendar had counted by then. */
  readonly meters: readonly (readonly [id: string, hash: string])[];
  /** What operators did in rows that are gone: how many, and a hash over all of it. Absent: written before that was kept. */
  readonly audit?: { readonly count: number; readonly hash: string };
  /** Of notes that are gone: what was erased. */
  readonly erasures: readonly (readonly [seq: number, count: number, hash: string])[];
}

export const hashText = (text: string): string => hash("sha256", text);

/** Sums follow on one another. */
export const rollupHash = (before: string, quarter: number, text: string): string =>
  hash("sha256", `${before}\n${quarter}\n${text}`);

/** The last entry that is gone; 0: none. */
export const COMPACTED_UP_TO_SQL = "SELECT coalesce(max(last), 0) AS last FROM checkpoint";
export const readCompactedUpTo = (statement: StatementSync): number =>
  Number(statement.get()!["last"]);

/** Undefined: nothing was pruned yet. */
export function readCheckpoint(db: DatabaseSync): Checkpoint | undefined {
  const text = db.prepare("SELECT text FROM checkpoint").get()?.["text"];
  return typeof text === "string" ? (JSON.parse(text) as Checkpoint) : undefined;
}

/** `said`: by the newest note that speaks of it. */
export function* verifyCheckpoint(
  db: DatabaseSync,
  said: ChainNote["compacted"],
): Generator<Problem, void> {
  const found = db.prepare("SELECT last, rollups, text FROM checkpoint").get();
  if (!found && !said) return;
  const wrong = (message: string): Problem => ({ path: "/checkpoint", message });
  const text = String(found?.["text"] ?? "");
  if (!said) yield wrong("No row of the ledger says that anything was pruned.");
  else if (
    !found ||
    hashText(text) !== said.checkpoint ||
    found["last"] !== said.last ||
    found["rollups"] !== rollupCountIn(text)
  )
    yield wrong(`What stands for the rows up to ${said.last} was changed after it was written.`);
  let before = "";
  const all = db.prepare(
    "SELECT n, quarter, text, hash FROM checkpoint_rollup WHERE n <= ? ORDER BY n",
  );
  for (const row of all.iterate(Number(found?.["rollups"] ?? 0))) {
    const its = rollupHash(before, Number(row["quarter"]), String(row["text"]));
    if (its !== row["hash"])
      yield {
        path: `/checkpoint_rollup/${row["n"]}`,
        message: "These sums were changed after they were written.",
      };
    before = String(row["hash"]);
  }
  if (said && before !== said.rollups)
    yield wrong("Sums of what was pruned are missing, or too many.");
  yield* verifyRetainedReserves(db, text);
}

/** Only what the base names, each as it was. */
function* verifyRetainedReserves(db: DatabaseSync, base: string): Generator<Problem, void> {
  const named = new Map(retainedReservesIn(base));
  for (const { seq, text } of readRetainedReserveTexts(db)) {
    if (named.get(seq) !== hashText(text))
      yield {
        path: `/retained_reserve/${seq}`,
        message: "This reserve is not what was kept of it.",
      };
    named.delete(seq);
  }
  for (const seq of named.keys())
    yield {
      path: `/retained_reserve/${seq}`,
      message: "This reserve was kept, and it is not there.",
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

/** What the hash of a carried reserve is of. */
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
