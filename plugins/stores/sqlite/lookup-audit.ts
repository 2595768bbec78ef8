// Whether each entry is found where the lookups say that it is, and the lookups say no more than that.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { nth, type LedgerRow } from "tollgate/store";
import { chapterOf } from "./mention.ts";
import type { Stored } from "./stored.ts";

interface Link {
  readonly first: number;
  readonly since: number;
  readonly till: number;
}

export type Wrong = (path: string, message: string) => void;

export class LookupAudit {
  readonly #db: DatabaseSync;
  readonly #wrong: Wrong;
  readonly #call: StatementSync;
  readonly #done: StatementSync;
  readonly #adjustment: StatementSync;
  readonly #mention: StatementSync;
  /** Links in their order, beside the commits in theirs: one for each. */
  readonly #links: Iterator<Link, unknown>;
  /** Rows that each table has to have. */
  readonly #counted = { call: 0, done: 0, adjustment: 0, mention: 0 };
  #chapter = -1;
  #mentioned = new Set<string>();

  constructor(db: DatabaseSync, wrong: Wrong) {
    this.#db = db;
    this.#wrong = wrong;
    this.#call = db.prepare("SELECT 1 FROM call WHERE attempt = ? AND first = ?");
    this.#done = db.prepare("SELECT 1 FROM done WHERE reserve = ? AND first = ?");
    this.#adjustment = db.prepare(
      "SELECT 1 FROM adjustment WHERE attempt = ? AND nth = ? AND seq = ?",
    );
    this.#mention = db.prepare("SELECT 1 FROM mention WHERE key = ? AND chapter = ?");
    this.#links = db
      .prepare("SELECT first, since, till FROM segment ORDER BY id")
      .iterate() as unknown as Iterator<Link, unknown>;
  }

  /** Its times, and the keys that its chapter mentions. */
  commit({ first }: Stored, rows: readonly LedgerRow[]): void {
    const at = rows.map((row) => row.at);
    const said = this.#linkOf(first);
    if (said?.since !== Math.min(...at) || said.till !== Math.max(...at))
      this.#wrong(`/segment/${first}`, "Its times are not those of its entries.");
    if (this.#chapter !== chapterOf(first)) {
      this.#chapter = chapterOf(first);
      this.#mentioned = new Set();
    }
    for (const row of rows) {
      // As the file holds it: half a character is the same one as any other.
      const key = row.key.toWellFormed();
      if (this.#mentioned.has(key)) continue;
      this.#mentioned.add(key);
      this.#counted.mention++;
      if (!this.#mention.get(key, this.#chapter))
        this.#wrong(`/mention/${key}`, `Its entries from ${first} on are not found.`);
    }
  }

  #linkOf(first: number): Link | undefined {
    for (;;) {
      const next = this.#links.next();
      if (next.done) return undefined;
      if (next.value.first >= first) return next.value;
    }
  }

  reserve({ attempt }: LedgerRow, first: number): void {
    this.#counted.call++;
    if (!this.#call.get(attempt, first))
      this.#wrong(`/call/${attempt}`, "Its reserve is not found.");
  }

  /** `seq`: of its reserve. */
  settle({ attempt }: LedgerRow, seq: number, first: number): void {
    this.#counted.done++;
    if (!this.#done.get(seq, first)) this.#wrong(`/done/${attempt}`, "Its settle is not found.");
  }

  adjustment(row: LedgerRow, seq: number): void {
    this.#counted.adjustment++;
    if (!this.#adjustment.get(row.attempt, nth(row), seq))
      this.#wrong(`/adjustment/${row.attempt}`, "An adjustment is not found.");
  }

  counts(): void {
    for (const [table, n] of Object.entries(this.#counted)) {
      const there = this.#db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!["n"];
      if (there !== n)
        this.#wrong(`/${table}`, `There are ${there}, but the entries tell of ${n}.`);
    }
  }
}
