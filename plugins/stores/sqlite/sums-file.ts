// Sums of days, hours and quarters of an hour, in a file beside the ledger: what was written is summed up once. All of it is told by the
// entries, so the file may be lost at any time. It has a lock of its own, and no commit of the ledger waits for it.
import { closeSync, openSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Depth } from "tollgate/store";

export const DAY = 86_400_000;
export const HOUR = 3_600_000;
export const QUARTER = 900_000;
export const quarterOf = (at: number): number => Math.floor(at / QUARTER) * QUARTER;
export const hourOf = (at: number): number => Math.floor(at / HOUR) * HOUR;
/** From the longest on; each is a multiple of the next one. The shortest is kept at the depth `calls` alone. */
export const SPANS = [DAY, HOUR, QUARTER] as const;
export const LONGER = [DAY, HOUR] as const;

/** Up to here, and with it, all entries are in the sums: the ledger's link there. */
export interface UpTo {
  readonly seq: number;
  readonly segment: number;
  readonly hash: string;
  /** When the last one of them was. */
  readonly at: number;
  /** Entries up to here were pruned: they are in none of them. */
  readonly pruned: number;
}
const NOTHING: UpTo = { seq: 0, segment: 0, hash: "", at: 0, pruned: 0 };

/** One sum. `sums` undefined: too many groups; what it came to is read from its entries. */
export interface SpanSums {
  readonly start: number;
  readonly sums: string | undefined;
}

/** What is said of a stretch once some of its rows are gone; nothing: none is left. */
export type Trimmed = readonly [
  Depth,
  span: number,
  start: number,
  left: { readonly sums: string | undefined } | undefined,
];

/** Another form of the file is another number, and the file is made anew. */
const VERSION = 3;

/**
 * summed  what the rows of a stretch of time came to, at each depth
 * place   in which chapters of the ledger the rows of a quarter of an hour are
 * upto    which entries are in them
 */
const SCHEMA = `
  CREATE TABLE summed (
    depth TEXT NOT NULL, span INTEGER NOT NULL, start INTEGER NOT NULL, sums TEXT,
    PRIMARY KEY (depth, span, start)
  ) STRICT;
  CREATE TABLE place (quarter INTEGER NOT NULL, chapter INTEGER NOT NULL, PRIMARY KEY (quarter, chapter)) STRICT, WITHOUT ROWID;
  CREATE TABLE upto (seq INTEGER NOT NULL, segment INTEGER NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL, pruned INTEGER NOT NULL) STRICT;
`;

export class SumsFile {
  readonly #db: DatabaseSync;
  readonly #say;

  /** What is there and is no such file is thrown away. */
  constructor(path: string) {
    try {
      this.#db = opened(path);
    } catch {
      for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
      this.#db = opened(path);
    }
    const db = this.#db;
    this.#say = {
      during: db.prepare(
        "SELECT start, sums FROM summed WHERE depth = ? AND span = ? AND start >= ? AND start < ? ORDER BY start",
      ),
      one: db.prepare("SELECT sums FROM summed WHERE depth = ? AND span = ? AND start = ?"),
      put: db.prepare(
        "INSERT INTO summed (depth, span, start, sums) VALUES (?, ?, ?, ?) " +
          "ON CONFLICT (depth, span, start) DO UPDATE SET sums = excluded.sums",
      ),
      drop: db.prepare("DELETE FROM summed WHERE depth = ? AND span = ? AND start = ?"),
      place: db.prepare(
        "INSERT INTO place (quarter, chapter) VALUES (?, ?) ON CONFLICT DO NOTHING",
      ),
      chapters: db.prepare("SELECT chapter FROM place WHERE quarter = ?"),
      quarters: db.prepare("SELECT DISTINCT quarter FROM place WHERE chapter <= ?"),
      leave: db.prepare("DELETE FROM place WHERE chapter < ?"),
      upTo: db.prepare("INSERT INTO upto (seq, segment, hash, at, pruned) VALUES (?, ?, ?, ?, ?)"),
      said: db.prepare("SELECT seq, segment, hash, at, pruned FROM upto"),
    };
  }

  get upTo(): UpTo {
    return (this.#say.said.get() as UpTo | undefined) ?? NOTHING;
  }

  /** Those that begin from `start` on and before `end`, in order. Where nothing was used, there is none. */
  during(depth: Depth, span: number, start: number, end: number): SpanSums[] {
    return this.#say.during
      .all(depth, span, start, end)
      .map((row) => ({ start: Number(row["start"]), sums: textOf(row["sums"]) }));
  }

  /** Undefined: none. */
  one(depth: Depth, span: number, start: number): { sums: string | undefined } | undefined {
    const row = this.#say.one.get(depth, span, start);
    return row && { sums: textOf(row["sums"]) };
  }

  chapters(quarter: number): number[] {
    return this.#say.chapters.all(quarter).map(({ chapter }) => Number(chapter));
  }

  /** Those of rows that are in this chapter or in an earlier one. */
  quartersUpTo(chapter: number): number[] {
    return this.#say.quarters.all(chapter).map(({ quarter }) => Number(quarter));
  }

  /** All of it at once, or nothing: also when they are not behind `after` any more. */
  write(
    after: UpTo,
    sums: Iterable<readonly [Depth, span: number, start: number, sums: string | undefined]>,
    places: Iterable<readonly [quarter: number, chapter: number]>,
    upTo: UpTo,
  ): void {
    this.#changed(after, upTo, () => {
      for (const [depth, span, start, text] of sums)
        this.#say.put.run(depth, span, start, text ?? null);
      for (const [quarter, chapter] of places) this.#say.place.run(quarter, chapter);
    });
  }

  /** After rows were pruned up to an entry: what is left of the stretches that had some. `edge`: the first chapter of which rows are left. */
  trim(
    after: UpTo,
    { pruned, edge, sums }: { pruned: number; edge: number; sums: Iterable<Trimmed> },
  ): void {
    this.#changed(after, { ...after, pruned }, () => {
      for (const [depth, span, start, left] of sums)
        if (left) this.#say.put.run(depth, span, start, left.sums ?? null);
        else this.#say.drop.run(depth, span, start);
      this.#say.leave.run(edge);
    });
  }

  #changed(after: UpTo, upTo: UpTo, work: () => void): void {
    const db = this.#db;
    db.exec("BEGIN IMMEDIATE");
    try {
      const { seq, pruned } = this.upTo;
      if (seq !== after.seq || (seq > 0 && pruned !== after.pruned))
        throw new Error("Others have summed it up.");
      work();
      db.exec("DELETE FROM upto");
      this.#say.upTo.run(upTo.seq, upTo.segment, upTo.hash, upTo.at, upTo.pruned);
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }

  /** As if nothing had been summed up yet. */
  empty(): void {
    this.#db.exec(
      "BEGIN IMMEDIATE; DELETE FROM summed; DELETE FROM place; DELETE FROM upto; COMMIT",
    );
  }

  close(): void {
    this.#db.close();
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

function opened(path: string): DatabaseSync {
  // Before SQLite makes it, so that no other user may read it.
  closeSync(openSync(path, "a", 0o600));
  const db = new DatabaseSync(path, { timeout: 1_000 });
  try {
    // A power cut may take the last sums with it, and they are made again.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const { user_version: version } = db.prepare("PRAGMA user_version").get() as {
      user_version: number;
    };
    if (version === 0) db.exec(`BEGIN; ${SCHEMA} PRAGMA user_version = ${VERSION}; COMMIT`);
    else if (version !== VERSION) throw new Error("These sums are of another version.");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
