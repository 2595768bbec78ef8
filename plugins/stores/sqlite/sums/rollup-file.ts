// Stores rollups by day, hour, and quarter in a file next to the ledger, so that reports do not
// read all entries. Rollups are derived from the entries, so the file can be deleted at any time.
// It has its own lock, and ledger commits never wait for it.
import { closeSync, openSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { RollupLevel } from "tollgate/store";

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;
export const QUARTER_HOUR_MS = 900_000;
export const hourStart = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS;
/**
 * Span lengths, longest first. Each is a multiple of the next. Quarters are stored only at the
 * level `calls`.
 */
export const SPANS_MS = [DAY_MS, HOUR_MS, QUARTER_HOUR_MS] as const;
export const LONG_SPANS_MS = [DAY_MS, HOUR_MS] as const;

/**
 * Position in the ledger up to which the rollups contain all entries. The entry at this position is
 * included. `segment` and `hash` are its chain link.
 */
export interface RollupPosition {
  readonly seq: number;
  readonly segment: number;
  readonly hash: string;
  /** Time of the last entry. */
  readonly at: number;
  /** Entries up to this entry were compacted and are in no rollup. */
  readonly compactedUpTo: number;
}
const NO_POSITION: RollupPosition = { seq: 0, segment: 0, hash: "", at: 0, compactedUpTo: 0 };

/**
 * The rollup of one time span. If `rollup` is undefined, it has too many groups, and the entries
 * must be read.
 */
export interface SpanRollup {
  readonly start: number;
  readonly rollup: string | undefined;
}

/**
 * The remainder of a time span after some of its rows were compacted. If `left` is undefined, no
 * rows remain in the span.
 */
export type TrimmedSpan = readonly [
  RollupLevel,
  span: number,
  start: number,
  left: { readonly sums: string | undefined } | undefined,
];

/** Version of the file format. A file with another version is rebuilt. */
const FILE_VERSION = 4;

/**
 * rollup           totals of the rows in a time span, at each level
 * quarter_chapter  the chapters of the ledger that contain the rows of a quarter of an hour
 * position         the ledger position up to which entries are included
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

  /**
   * Opens the file. If the file is damaged or has another format, it is deleted and created again.
   */
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
      position: db.prepare(
        "SELECT seq, segment, hash, at, compacted_up_to AS compactedUpTo FROM position",
      ),
    };
  }

  get position(): RollupPosition {
    return (this.#statements.position.get() as RollupPosition | undefined) ?? NO_POSITION;
  }

  /**
   * Returns rollups whose span starts at or after `start` and before `end`, in order. Spans without
   * usage have no rollup.
   */
  rollupsBetween(depth: RollupLevel, span: number, start: number, end: number): SpanRollup[] {
    return this.#statements.during
      .all(depth, span, start, end)
      .map((row) => ({ start: Number(row["start"]), rollup: optionalText(row["rollup"]) }));
  }

  /** Returns a rollup, or undefined if there is none. */
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

  /** Returns the quarters with rows in this chapter or an earlier chapter. */
  quartersUpTo(chapter: number): number[] {
    return this.#statements.quarters.all(chapter).map(({ quarter }) => Number(quarter));
  }

  /**
   * Writes rollups and the new position in one transaction.
   * @throws If the current position is no longer `after`.
   */
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

  /**
   * Updates the affected time spans after rows were compacted up to entry `pruned`. `after` is the
   * position that the file must have. `edge` is the first chapter with remaining rows.
   */
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
        throw new Error("Another process updated the rollups.");
      work();
      db.exec("DELETE FROM position");
      this.#statements.upTo.run(upTo.seq, upTo.segment, upTo.hash, upTo.at, upTo.compactedUpTo);
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }

  /** Deletes all rollups and resets the position. */
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
  // Creates the file before SQLite does, so that other users cannot read it.
  closeSync(openSync(path, "a", 0o600));
  const db = new DatabaseSync(path, { timeout: 1_000 });
  try {
    // A power failure may lose the last rollups. They are then computed again from the entries.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const { user_version: version } = db.prepare("PRAGMA user_version").get() as {
      user_version: number;
    };
    if (version === 0) db.exec(`BEGIN; ${SCHEMA} PRAGMA user_version = ${FILE_VERSION}; COMMIT`);
    else if (version !== FILE_VERSION) throw new Error("The rollups are of another version.");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
