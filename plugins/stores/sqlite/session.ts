// One handle on the file, with the book that it keeps: a batch is one commit, in memory as on disk. After an error of the disk a
// session is thrown away, and the next one reads what is really there.
import { closeSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { createBook, presumed, recoveryAt, type Book } from "tollgate/store";
import { checkTail } from "./chain.ts";
import { refuseHalf } from "./half.ts";
import { SqliteJournal, type StoredCall } from "./journal.ts";
import { begun, leftMeters } from "./left.ts";
import { createLookups, type Lookups } from "./lookups.ts";
import { migrate, refuseNewer } from "./schema.ts";
import { settling, type Line, type ReserveLine, type SettleLine } from "./wire.ts";
import type { Limit, LimitCount, LimitCrossing, Verdict } from "tollgate/plugin";

export interface Settings {
  file: string;
  durability: "power" | "process" | "relaxed";
  ballastMb: number;
}

export interface Opened {
  epoch: number;
  presumed: number;
}

/**
 * power     every commit is on the disk before it is acknowledged (synchronous = FULL)
 * process   every commit is with the system before it is acknowledged: it survives kill -9, and a power cut may
 *           take the last moments (NORMAL)
 * relaxed   acknowledged at once, committed within 20 ms (NORMAL): a crash may take those
 * Never OFF: that would risk the file, not only its last moments.
 */
const SYNCHRONOUS = { power: "FULL", process: "NORMAL", relaxed: "NORMAL" } as const;
const CONSTRAINT = 19;

export class Session {
  readonly db: DatabaseSync;
  readonly lookups: Lookups;
  /** What was done when it began. */
  readonly opened: Opened;
  readonly #owner: string;
  readonly #relaxed: boolean;
  readonly #journal: SqliteJournal;
  readonly #book: Book<ReserveLine, SettleLine, StoredCall>;
  /** Prepared once, like all that is said in every commit. */
  readonly #say: { [word in "begin" | "commit" | "save" | "release"]: StatementSync };
  #dropped: readonly string[] = [];

  /** `recovers`: what others have left open is presumed. */
  constructor({ file, durability }: Settings, owner: string, recovers = true) {
    this.#owner = owner;
    this.#relaxed = durability === "relaxed";
    refuseNewer(file);
    refuseHalf(file);
    // Before SQLite makes it, so that no other user may read it.
    closeSync(openSync(file, "a", 0o600));
    const db = (this.db = new DatabaseSync(file, { timeout: 1_000 }));
    try {
      // Of a file that begins: what is pruned is given back page by page, and not by writing all of it anew.
      db.exec("PRAGMA auto_vacuum = INCREMENTAL");
      db.exec("PRAGMA journal_mode = WAL");
      db.exec(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`);
      // What is taken away is overwritten where it stood.
      db.exec("PRAGMA secure_delete = FAST");
      if (durability === "power") db.exec("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1");
      migrate(db, file);
      checkTail(db, file);
      this.#journal = new SqliteJournal(db, owner);
      this.#book = createBook(this.#journal, () => owner);
      this.#say = {
        begin: db.prepare("BEGIN IMMEDIATE"),
        commit: db.prepare("COMMIT"),
        save: db.prepare("SAVEPOINT batch"),
        release: db.prepare("RELEASE batch"),
      };
      this.lookups = createLookups(db);
      this.opened = this.#transaction(() => this.#recover(recovers));
    } catch (error) {
      db.close();
      throw explain(error, file);
    }
  }

  apply(batch: readonly Line[]): readonly Verdict[] {
    const work = () => batch.map((c) => this.#book.apply(c));
    try {
      return this.#transaction(work);
    } catch (error) {
      if (((error as { errcode?: number }).errcode ?? 0) % 256 !== CONSTRAINT) throw error;
      // It has a reserve that was there already, which hardly ever happens: then each is looked up.
      this.#journal.careful = true;
      try {
        return this.#transaction(work);
      } finally {
        this.#journal.careful = false;
      }
    }
  }

  counted(limits: readonly Limit[], at: number): readonly LimitCount[] {
    return this.#book.counted(limits, at);
  }

  /** What the ledger does with itself: all of it or nothing, like a batch. */
  step<T>(work: (db: DatabaseSync, journal: SqliteJournal) => T): T {
    return this.#transaction(() => work(this.db, this.#journal));
  }

  untold(): readonly LimitCrossing[] {
    return this.#book.untold();
  }

  heardOf(crossings: readonly LimitCrossing[]): void {
    this.#transaction(() => this.#book.told(crossings));
  }

  #recover(recovers: boolean): Opened {
    if (!recovers) return { epoch: 0, presumed: 0 };
    for (const meter of leftMeters(this.db)) this.#book.load(meter);
    const found = [...this.#journal.open()];
    for (const { call } of found) this.#book.restore(call);
    const dead = found.filter(({ row }) => row.instance !== this.#owner);
    const now = Date.now();
    const at = recoveryAt(dead, now);
    for (const { row, heard } of dead) this.#book.apply(settling(presumed(row, heard, at)));
    return { epoch: begun(this.db, this.#owner, now), presumed: dead.length };
  }

  /** All or nothing, in memory as on disk. */
  #transaction<T>(work: () => T): T {
    const db = this.db;
    const journal = this.#journal;
    const book = this.#book;
    const say = this.#say;
    const relaxed = this.#relaxed;
    if (!db.isTransaction) say.begin.run();
    if (relaxed) say.save.run();
    try {
      const result = work();
      journal.seal(book.changed(), this.#dropped, book.open);
      (relaxed ? say.release : say.commit).run();
      journal.done();
      book.done();
      this.#dropped = book.sweep();
      return result;
    } catch (error) {
      book.undo();
      journal.undo();
      if (db.isTransaction) db.exec(relaxed ? "ROLLBACK TO batch; RELEASE batch" : "ROLLBACK");
      throw error;
    }
  }
}

const CORRUPT = 11;
const NOT_A_DATABASE = 26;

function explain(error: unknown, file: string): unknown {
  const code = (error as { errcode?: number }).errcode;
  return code === CORRUPT || code === NOT_A_DATABASE
    ? new Error(
        `The ledger ${file} is damaged (${(error as Error).message}). Restore a copy of it, save what can be saved with ` +
          `"sqlite3 ${file} .recover", or move it away to begin a new one.`,
        { cause: error },
      )
    : error;
}
