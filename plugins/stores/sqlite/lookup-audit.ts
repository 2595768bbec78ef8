// Whether each entry is found where the lookups say that it is, and the lookups say no more than that.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { nth, type LedgerRow } from "tollgate/store";
import { chapterOf } from "./mention.ts";
import { readBase } from "./standing.ts";
import { noteOf } from "./note.ts";
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
  /** Rows up to here are gone, and what is said of them may be there still. */
  readonly #last: number;
  #chapter = -1;
  #mentioned = new Set<string>();

  constructor(db: DatabaseSync, wrong: Wrong) {
    this.#db = db;
    this.#wrong = wrong;
    this.#last = readBase(db)?.last ?? 0;
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
  commit({ first, rows: text }: Stored, rows: readonly LedgerRow[]): void {
    const noted = noteOf(text);
    const at = noted ? [noted.at] : rows.map((row) => row.at);
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
      if (this.#whole(this.#chapter)) this.#counted.mention++;
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
    const { call, done, adjustment, mention } = this.#counted;
    const apart = "IN (SELECT seq FROM carried WHERE over = 0)";
    this.#compare("call", call, `first > ? OR attempt IN (SELECT attempt FROM carried)`);
    this.#compare("done", done, `reserve > ? OR reserve ${apart}`);
    this.#compare("adjustment", adjustment, "seq > ?");
    this.#compare("mention", mention, "chapter > ?", this.#edge);
  }

  #compare(table: string, n: number, where: string, after = this.#last): void {
    const count = this.#db.prepare(`SELECT count(*) AS n FROM ${table} WHERE ${where}`);
    const there = count.get(after)!["n"];
    if (there !== n) this.#wrong(`/${table}`, `There are ${there}, but the entries tell of ${n}.`);
  }

  /** The chapter that a prune has cut in two: it may mention keys of its first half alone. */
  get #edge(): number {
    return this.#last === 0 ? -1 : chapterOf(this.#last + 1);
  }
  #whole(chapter: number): boolean {
    return chapter > this.#edge;
  }
}
