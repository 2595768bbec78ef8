// Whether every hash that rows say stands for a text, or for one that was erased and is said to be.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { LedgerRow } from "tollgate/store";
import type { Wrong } from "./lookup-audit.ts";
import { sumOf, type Note } from "./note.ts";
import { hashed } from "./words.ts";

type Count = NonNullable<Note["erased"]>;

/** Hashes that are known to be there, at a time. */
const MOST = 100_000;

export class WordAudit {
  readonly #db: DatabaseSync;
  readonly #wrong: Wrong;
  readonly #there: StatementSync;
  readonly #erased = new Map<number, Count>();
  readonly #known = new Set<string>();

  constructor(db: DatabaseSync, wrong: Wrong) {
    this.#db = db;
    this.#wrong = wrong;
    this.#there = db.prepare("SELECT 1 FROM word WHERE hash = ? AND gone IS NOT 0");
  }

  /** A note says so. */
  erased(seq: number, count: Count): void {
    this.#erased.set(seq, count);
  }

  add(rows: readonly LedgerRow[]): void {
    for (const { attempt, labels } of rows)
      for (const its of Object.values(labels) as string[]) {
        if (this.#known.has(its)) continue;
        if (this.#known.size >= MOST) this.#known.clear();
        this.#known.add(its);
        if (!this.#there.get(its))
          this.#wrong(`/word/${its}`, `What ${attempt} says in a label is not there.`);
      }
  }

  check(): void {
    const gone = new Map<number, string[]>();
    for (const row of this.#db.prepare("SELECT hash, salt, text, gone FROM word").iterate()) {
      const its = String(row["hash"]);
      // No row says it any more.
      if (row["gone"] === 0) continue;
      if (row["gone"] !== null) {
        const seq = Number(row["gone"]);
        const list = gone.get(seq);
        if (list) list.push(its);
        else gone.set(seq, [its]);
      } else if (hashed(String(row["salt"]), String(row["text"])) !== its)
        this.#wrong(`/word/${its}`, "It is not what rows said.");
    }
    for (const [seq, { count, sum }] of this.#erased) {
      const there = gone.get(seq) ?? [];
      gone.delete(seq);
      if (there.length !== count || sumOf(there) !== sum)
        this.#wrong(
          `/word`,
          `Of the ${count} texts that entry ${seq} says were erased, ${there.length} are.`,
        );
    }
    for (const [seq, { length }] of gone)
      this.#wrong(`/word`, `${length} texts are gone, and entry ${seq} does not say so.`);
  }
}
