// Sums of days, hours and quarters of an hour, in a file beside the ledger: what was written is summed up once. All of it is told by the
// entries, so the file may be lost at any time. It has a lock of its own, and no commit of the ledger waits for it.
import { closeSync, openSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { RollupLevel } from "tollgate/store";

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;
export const QUARTER_HOUR_MS = 900_000;
export const quarterStart = (at: number): number =>
  Math.floor(at / QUARTER_HOUR_MS) * QUARTER_HOUR_MS;
export const hourStart = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS;
/** From the longest on; each is a multiple of the next one. The shortest is kept at the depth `calls` alone. */
export const SPANS_MS = [DAY_MS, HOUR_MS, QUARTER_HOUR_MS] as const;
export const LONG_SPANS_MS = [DAY_MS, HOUR_MS] as const;

/** Up to here, and with it, all entries are in the sums: the ledger's link there. */
export interface RollupPosition {
  readonly seq: number;
  readonly segment: number;
  readonly hash: string;
  /** When the last one of them was. */
  readonly at: number;
  /** Entries up to here were pruned: they are in none of them. */
  readonly compactedUpTo: number;
}
const NO_POSITION: RollupPosition = { seq: 0, segment: 0, hash: "", at: 0, compactedUpTo: 0 };

/** One sum. `sums` undefined: too many groups; what it came to is read from its entries. */
export interface SpanRollup {
  readonly start: number;
  readonly rollup: string | undefined;
}

/** What is said of a stretch once some of its rows are gone; nothing: none is left. */
export type TrimmedSpan = readonly [
  RollupLevel,
  span: number,
  start: number,
  left: { readonly sums: string | undefined } | undefined,
];

/** Another form of the file is another number, and the file is made anew. */
const FILE_VERSION = 4;

/**
 * rollup           what the rows of a stretch of time came to, at each level
 * quarter_chapter  in which chapters of the ledger the rows of a quarter of an hour are
 * position         which entries are in them
 */
const SCHEMA = `
  CREATE TABLE rollup (
    level TEXT NOT NULL, span INTEGER NOT NULL, start INTEGER NOT NULL, rollup TEXT,
    PRIMARY KEY (level, span, start)
  ) STRICT;
  CREATE TABLE quarter_chapter (quarter INTEGER NOT NULL, chapter INTEGER NOT NULL, PRIMARY KEY (quarter, chapter)) STRICT, WITHOUT ROWID;
  CREATE TABLE position (seq INTEGER NOT NULL, segment INTEGER NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL, compacted_up_to INTEGER NOT NULL) STRICT;
`;

export class RollupFile {
  readonly #db: DatabaseSync;
  readonly #statements;

  /** What is there and is no such file is thrown away. */
  constructor(path: string) {
    try {
      this.#db = openFile(path);
    } catch {
      for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
      this.#db = openFile(path);
    }
    const db = this.#db;
    this.#statements = {
      during: db.prepare(
        "SELECT start, rollup FROM rollup WHERE level = ? AND span = ? AND start >= ? AND start < ? ORDER BY start",
      ),
      one: db.prepare("SELECT rollup FROM rollup WHERE level = ? AND span = ? AND start = ?"),
      put: db.prepare(
        "INSERT INTO rollup (level, span, start, rollup) VALUES (?, ?, ?, ?) " +
          "ON CONFLICT (level, span, start) DO UPDATE SET rollup = excluded.rollup",
      ),
      drop: db.prepare("DELETE FROM rollup WHERE level = ? AND span = ? AND start = ?"),
      place: db.prepare(
        "INSERT INTO quarter_chapter (quarter, chapter) VALUES (?, ?) ON CONFLICT DO NOTHING",
      ),
      chapters: db.prepare("SELECT chapter FROM quarter_chapter WHERE quarter = ?"),
      quarters: db.prepare("SELECT DISTINCT quarter FROM quarter_chapter WHERE chapter <= ?"),
      leave: db.prepare("DELETE FROM quarter_chapter WHERE chapter < ?"),
      upTo: db.prepare(
        "INSERT INTO position (seq, segment, hash, at, compacted_up_to) VALUES (?, ?, ?, ?, ?)",
      ),
      said: db.prepare(
        "SELECT seq, segment, hash, at, compacted_up_to AS compactedUpTo FROM position",
      ),
    };
  }

  get position(): RollupPosition {
    return (this.#statements.said.get() as RollupPosition | undefined) ?? NO_POSITION;
  }

  /** Those that begin from `start` on and before `end`, in order. Where nothing was used, there is none. */
  rollupsBetween(depth: RollupLevel, span: number, start: number, end: number): SpanRollup[] {
    return this.#statements.during
      .all(depth, span, start, end)
      .map((row) => ({ start: Number(row["start"]), rollup: optionalText(row["rollup"]) }));
  }

  /** Undefined: none. */
  getRollup(
    depth: RollupLevel,
    span: number,
    start: number,
  ): { sums: string | undefined } | undefined {
    const row = this.#statements.one.get(depth, span, start);
    return row && { sums: optionalText(row["rollup"]) };
  }

  chaptersOf(quarter: number): number[] {
    return this.#statements.chapters.all(quarter).map(({ chapter }) => Number(chapter));
  }

  /** Those of rows that are in this chapter or in an earlier one. */
  quartersUpTo(chapter: number): number[] {
    return this.#statements.quarters.all(chapter).map(({ quarter }) => Number(quarter));
  }

  /** All of it at once, or nothing: also when they are not behind `after` any more. */
  write(
    after: RollupPosition,
    sums: Iterable<readonly [RollupLevel, span: number, start: number, sums: string | undefined]>,
    places: Iterable<readonly [quarter: number, chapter: number]>,
    upTo: RollupPosition,
  ): void {
    this.#updateFrom(after, upTo, () => {
      for (const [depth, span, start, text] of sums)
        this.#statements.put.run(depth, span, start, text ?? null);
      for (const [quarter, chapter] of places) this.#statements.place.run(quarter, chapter);
    });
  }

  /** After rows were pruned up to an entry: what is left of the stretches that had some. `edge`: the first chapter of which rows are left. */
  trim(
    after: RollupPosition,
    { pruned, edge, sums }: { pruned: number; edge: number; sums: Iterable<TrimmedSpan> },
  ): void {
    this.#updateFrom(after, { ...after, compactedUpTo: pruned }, () => {
      for (const [depth, span, start, left] of sums)
        if (left) this.#statements.put.run(depth, span, start, left.sums ?? null);
        else this.#statements.drop.run(depth, span, start);
      this.#statements.leave.run(edge);
    });
  }

  #updateFrom(after: RollupPosition, upTo: RollupPosition, work: () => void): void {
    const db = this.#db;
    db.exec("BEGIN IMMEDIATE");
    try {
      const { seq, compactedUpTo } = this.position;
      if (seq !== after.seq || (seq > 0 && compactedUpTo !== after.compactedUpTo))
        throw new Error("Others have summed it up.");
      work();
      db.exec("DELETE FROM position");
      this.#statements.upTo.run(upTo.seq, upTo.segment, upTo.hash, upTo.at, upTo.compactedUpTo);
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }

  /** As if nothing had been summed up yet. */
  clear(): void {
    this.#db.exec(
      "BEGIN IMMEDIATE; DELETE FROM rollup; DELETE FROM quarter_chapter; DELETE FROM position; COMMIT",
    );
  }

  close(): void {
    this.#db.close();
  }
}

const optionalText = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

function openFile(path: string): DatabaseSync {
  // Before SQLite makes it, so that no other user may read it.
  closeSync(openSync(path, "a", 0o600));
  const db = new DatabaseSync(path, { timeout: 1_000 });
  try {
    // A power cut may take the last sums with it, and they are made again.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const { user_version: version } = db.prepare("PRAGMA user_version").get() as {
      user_version: number;
    };
    if (version === 0) db.exec(`BEGIN; ${SCHEMA} PRAGMA user_version = ${FILE_VERSION}; COMMIT`);
    else if (version !== FILE_VERSION) throw new Error("These sums are of another version.");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
