// The one writer: it owns the file, keeps the book in memory, and makes one commit of each batch.
// After an error of the disk it never goes on with the same handle: it opens anew and reads what is really there.
import { closeSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { faultOf, type PageRequest } from "tollgate/plugin";
import { type Book, createBook, presumed, recoveryAt } from "tollgate/store";
import { createBallast } from "./ballast.ts";
import { checkTail } from "./chain.ts";
import { createJournal, type StoredCall, type SqliteJournal } from "./journal.ts";
import { begun, leftMeters } from "./left.ts";
import { lock } from "./lock.ts";
import { createLookups, type Lookups } from "./lookups.ts";
import { migrate } from "./schema.ts";
import {
  createUnpacker,
  settling,
  told,
  type Line,
  type ReserveLine,
  type SettleLine,
  type Verdicts,
} from "./wire.ts";

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
const RELAXED_MS = 20;
/** SQLite's own: another connection is writing. Nothing is broken, it only takes time. */
const BUSY = 5;
const FULL = 13;
const CONSTRAINT = 19;

interface Session {
  db: DatabaseSync;
  journal: SqliteJournal;
  book: Book<ReserveLine, SettleLine, StoredCall>;
  lookups: Lookups;
  /** Prepared once, like all that is said in every commit. */
  say: { [word in "begin" | "commit" | "save" | "release"]: StatementSync };
}

export function createWriter({ file, durability, ballastMb }: Settings, owner: string) {
  const held = lock(file);
  const ballast = createBallast(`${file}.ballast`, ballastMb);
  let session: Session | undefined;
  let dropped: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let lost: unknown;
  const unpack = createUnpacker();

  function begin(): Session & Opened {
    // Before SQLite makes it, so that no other user may read it.
    closeSync(openSync(file, "a", 0o600));
    const db = new DatabaseSync(file, { timeout: 1_000 });
    try {
      db.exec("PRAGMA journal_mode = WAL");
      db.exec(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`);
      if (durability === "power") db.exec("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1");
      migrate(db, file);
      checkTail(db, file);
      const journal = createJournal(db, owner);
      const book = createBook(journal, () => owner);
      const say = {
        begin: db.prepare("BEGIN IMMEDIATE"),
        commit: db.prepare("COMMIT"),
        save: db.prepare("SAVEPOINT batch"),
        release: db.prepare("RELEASE batch"),
      };
      const fresh: Session = { db, journal, book, lookups: createLookups(db), say };
      dropped = [];
      const opened = transaction(fresh, () => recover(fresh));
      session = fresh;
      return { ...fresh, ...opened };
    } catch (error) {
      db.close();
      throw explain(error, file);
    }
  }

  function recover({ db, book, journal }: Session): Opened {
    for (const meter of leftMeters(db)) book.load(meter);
    const found = [...journal.open()];
    for (const { call } of found) book.restore(call);
    const dead = found.filter(({ row }) => row.instance !== owner);
    const now = Date.now();
    const at = recoveryAt(dead, now);
    for (const { row, heard } of dead) book.apply(settling(presumed(row, heard, at)));
    return { epoch: begun(db, owner, now), presumed: dead.length };
  }

  /** All or nothing, in memory as on disk. */
  function transaction<T>({ db, journal, book, say }: Session, work: () => T): T {
    const relaxed = durability === "relaxed";
    if (!db.isTransaction) say.begin.run();
    if (relaxed) say.save.run();
    try {
      const result = work();
      journal.seal(book.changed(), dropped, book.open);
      (relaxed ? say.release : say.commit).run();
      journal.done();
      book.done();
      dropped = book.sweep();
      return result;
    } catch (error) {
      book.undo();
      journal.undo();
      if (db.isTransaction) db.exec(relaxed ? "ROLLBACK TO batch; RELEASE batch" : "ROLLBACK");
      throw error;
    }
  }

  function commit(): void {
    clearTimeout(timer);
    timer = undefined;
    if (session?.db.isTransaction) session.db.exec("COMMIT");
  }

  function abandon(): void {
    clearTimeout(timer);
    timer = undefined;
    try {
      session?.db.close();
    } catch {
      // It is the handle that is broken.
    }
    session = undefined;
  }

  /** Later, for `relaxed`. What fails now was acknowledged already: the next batch hears of it. */
  function commitSoon(): void {
    timer ??= setTimeout(() => {
      try {
        commit();
      } catch (error) {
        lost = error;
        abandon();
      }
    }, RELAXED_MS);
  }

  function first(): Opened {
    try {
      const { epoch, presumed } = begin();
      commit();
      return { epoch, presumed };
    } catch (error) {
      abandon();
      held.release();
      throw error;
    }
  }

  const opened = first();

  function once(batch: readonly Line[]): Verdicts {
    const current = session ?? begin();
    const { book, journal } = current;
    const work = () => batch.map((c) => book.apply(c));
    let verdicts;
    try {
      verdicts = transaction(current, work);
    } catch (error) {
      if (((error as { errcode?: number }).errcode ?? 0) % 256 !== CONSTRAINT) throw error;
      // It has a reserve that was there already, which hardly ever happens: then each is looked up.
      journal.careful = true;
      try {
        verdicts = transaction(current, work);
      } finally {
        journal.careful = false;
      }
    }
    if (durability === "relaxed")
      // A key that was handed out, or taken back, stays so.
      if (batch.some((c) => c.do === "key" || c.do === "price")) commit();
      else commitSoon();
    return told(batch, verdicts);
  }

  const lookups = () => (session ?? begin()).lookups;

  return {
    opened,
    key: (digest: string) => lookups().key(digest),
    price: (hash: string) => lookups().price(hash),
    keys: (page?: PageRequest) => lookups().keys(page),
    apply(text: string): Verdicts {
      // First of all: what was told of numbers holds, whatever becomes of the batch.
      const batch = unpack(text);
      // A sign of life is also the question whether new calls are taken.
      if (!ballast.ready() && batch.some((c) => c.do === "reserve" || c.do === "alive"))
        throw new Error(`There is no room left for ${file}. Calls under way are written down.`);
      if (lost) {
        const error = lost;
        lost = undefined;
        throw new Error("The last moments could not be written down.", { cause: error });
      }
      try {
        return once(batch);
      } catch (error) {
        const code = (error as { errcode?: number }).errcode;
        if (faultOf(error) && session?.db.isTransaction) commitSoon();
        if (faultOf(error) || code === BUSY) throw error;
        abandon();
        if (code === FULL) {
          ballast.release();
          throw error;
        }
        // Whether the commit happened is not known: on a new handle the batch happens now, or turns out to be a repeat.
        return once(batch);
      }
    },
    close(): void {
      try {
        commit();
      } finally {
        abandon();
        held.release();
      }
    },
  };
}

export type Writer = ReturnType<typeof createWriter>;

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
