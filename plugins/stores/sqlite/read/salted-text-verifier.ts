// Verifies that every hash in the rows has a text, or a text whose erasure is recorded in a note.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type LedgerRow, hashSet, hashSalted } from "tollgate/store";
import type { AddProblem } from "./lookup-verifier.ts";
import { type ChainNote } from "../data/chain-note.ts";

type ErasedCount = NonNullable<ChainNote["erased"]>;

/** Maximum number of hashes that are remembered as present. */
const MAX_KNOWN_HASHES = 100_000;

export class SaltedTextVerifier {
  readonly #db: DatabaseSync;
  readonly #addProblem: AddProblem;
  readonly #findText: StatementSync;
  readonly #erased = new Map<number, ErasedCount>();
  readonly #knownHashes = new Set<string>();

  constructor(db: DatabaseSync, wrong: AddProblem) {
    this.#db = db;
    this.#addProblem = wrong;
    this.#findText = db.prepare(
      "SELECT 1 FROM salted_text WHERE hash = ? AND erased_at_seq IS NOT 0",
    );
  }

  /** Adds an erasure that a note records. */
  addErasure(seq: number, count: ErasedCount): void {
    this.#erased.set(seq, count);
  }

  add(rows: readonly LedgerRow[]): void {
    for (const { attempt, labels } of rows)
      for (const its of Object.values(labels) as string[]) {
        if (this.#knownHashes.has(its)) continue;
        if (this.#knownHashes.size >= MAX_KNOWN_HASHES) this.#knownHashes.clear();
        this.#knownHashes.add(its);
        if (!this.#findText.get(its))
          this.#addProblem(`/salted_text/${its}`, `The label text of ${attempt} is missing.`);
      }
  }

  check(): void {
    const gone = new Map<number, string[]>();
    for (const row of this.#db
      .prepare("SELECT hash, salt, text, erased_at_seq FROM salted_text")
      .iterate()) {
      const its = String(row["hash"]);
      // Cleared after compaction because no remaining row uses it.
      if (row["erased_at_seq"] === 0) continue;
      if (row["erased_at_seq"] !== null) {
        const seq = Number(row["erased_at_seq"]);
        const list = gone.get(seq);
        if (list) list.push(its);
        else gone.set(seq, [its]);
      } else if (hashSalted(String(row["salt"]), String(row["text"])) !== its)
        this.#addProblem(`/salted_text/${its}`, "The text differs from the rows.");
    }
    for (const [seq, { count, hash }] of this.#erased) {
      const there = gone.get(seq) ?? [];
      gone.delete(seq);
      if (there.length !== count || hashSet(there) !== hash)
        this.#addProblem(
          `/salted_text`,
          `Entry ${seq} erased ${count} texts, but ${there.length} of them still exist.`,
        );
    }
    for (const [seq, { length }] of gone)
      this.#addProblem(
        `/salted_text`,
        `${length} texts are missing, and entry ${seq} does not record their erasure.`,
      );
  }
}
