// Which commits may hold what a query asks for, in order, few at a time.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { LedgerQuery } from "tollgate/plugin";
import { CHAPTER } from "./mention.ts";
import { carriedIn, STORED, type Shelf, type Stored } from "./stored.ts";

/** Batches read in one go. */
const AT_ONCE = 16;
/** Entries that are looked through for a text in one go. */
const WINDOW = 65_536;
/** Here others may go first. */
export const PAUSE = Symbol("pause");

/** Where batches begin: from, and up to. */
type Span = readonly [number, number];
const END = Number.MAX_SAFE_INTEGER;

const apart = (spans: readonly Span[]): Span[] =>
  [...new Map(spans.map((span) => [span[0], span])).values()].sort(([a], [b]) => a - b);

/** What the text of their batches must hold. What upstream calls a call has no order that an index could keep up with. */
function holding({ key, account, upstreamId }: LedgerQuery): [where: string, texts: string[]] {
  const parts = ["1"];
  const texts: string[] = [];
  if (key !== undefined) {
    parts.push("instr(terms, ?)");
    texts.push(JSON.stringify(key));
  }
  if (account !== undefined) {
    parts.push("instr(terms, ?)");
    texts.push(JSON.stringify(account).slice(1, -1));
  }
  if (upstreamId !== undefined) {
    parts.push("instr(rows, ?)");
    texts.push(JSON.stringify(upstreamId));
  }
  return [parts.join(" AND "), texts];
}

export class Batches {
  readonly #db: DatabaseSync;
  readonly #shelf: Shelf;
  readonly #chapters: StatementSync;
  readonly #newest: StatementSync;
  readonly #stretch: StatementSync;
  readonly #base: StatementSync;

  constructor(db: DatabaseSync, shelf: Shelf) {
    this.#db = db;
    this.#shelf = shelf;
    this.#chapters = db.prepare("SELECT chapter FROM mention WHERE key = ? ORDER BY chapter");
    this.#stretch = db.prepare(
      `SELECT ${STORED} FROM batch WHERE first BETWEEN ? AND ? AND first > coalesce((SELECT last FROM base), 0) ORDER BY first LIMIT ${AT_ONCE}`,
    );
    this.#newest = db.prepare("SELECT last, low FROM segment ORDER BY id DESC LIMIT 1");
    this.#base = db.prepare("SELECT last FROM base");
  }

  /** The newest entry's. */
  last(): number {
    return Number(this.#newest.get()?.["last"] ?? 0);
  }

  /** Those that may hold what is asked for, from the one that holds `from` on. */
  *of(query: LedgerQuery, from: number): Generator<Stored | typeof PAUSE, void> {
    const [where, texts] = holding(query);
    const some = this.#db.prepare(
      `SELECT ${STORED} FROM batch WHERE first BETWEEN ? AND ? AND ${where} ORDER BY first LIMIT ${AT_ONCE}`,
    );
    const [since, till] = this.#during(query);
    const newest = this.last();
    // Reserves that are kept apart stand before all that is left.
    if (query.state !== "open")
      for (const stored of carriedIn(this.#db, query.attempt))
        if (stored.first >= from) yield stored;
    const gone = Number(this.#base.get()?.["last"] ?? 0);
    const least = Math.max(this.#shelf.holding(from)?.first ?? from, since, gone + 1);
    for (const [begin, end] of this.#spans(query)) {
      const last = Math.min(end, till, newest);
      for (let first = Math.max(begin, least); first <= last;) {
        const upTo = Math.min(last, first + WINDOW);
        // All at once: between two of these commits happen, and the log may be taken in.
        const found = some.all(first, upTo, ...texts) as unknown as Stored[];
        yield* found;
        const whole = found.length < AT_ONCE;
        first = whole ? upTo + 1 : found.at(-1)!.first + 1;
        if (whole && first <= last) yield PAUSE;
      }
    }
  }

  /** About how many entries its times are in. */
  reach(query: LedgerQuery): number {
    const [since, till] = this.#during(query);
    return Math.min(till, this.last()) - Math.max(since, 0);
  }

  /** Those that begin from `first` on and before `end`, but for what is gone and not swept yet. */
  *between(first: number, end: number): Generator<Stored, void> {
    for (let from = first; from < end;) {
      const found = this.#stretch.all(from, end - 1) as unknown as Stored[];
      yield* found;
      if (found.length < AT_ONCE) return;
      from = found.at(-1)!.first + 1;
    }
  }

  /** Where they may begin, in order. */
  #spans({ attempt, key, state }: LedgerQuery): Iterable<Span> {
    const at = (seq: number): Span => {
      const { first } = this.#shelf.holding(seq)!;
      return [first, first];
    };
    if (attempt !== undefined) {
      const { reserve, settle, adjusts } = this.#shelf.about(attempt) ?? { adjusts: [] };
      const seqs = [reserve, settle, ...adjusts].filter((seq) => seq !== undefined);
      return apart(seqs.map(at));
    }
    if (state === "open") {
      const low = Number(this.#newest.get()?.["low"] ?? 0);
      const listed = this.#db.prepare("SELECT seq FROM open WHERE seq < ? ORDER BY seq").all(low);
      return [...apart(listed.map(({ seq }) => at(Number(seq)))), [low, END]];
    }
    if (key !== undefined)
      return this.#chapters.all(key).map(({ chapter }): Span => {
        const first = Number(chapter) * CHAPTER;
        return [first, first + CHAPTER - 1];
      });
    return [[-END, END]];
  }

  /** Commits are nearly in the order of their times; what lies between the first and the last of them is looked at. */
  #during({ from, to }: LedgerQuery): Span {
    if (from === undefined && to === undefined) return [-END, END];
    const { since, till } = this.#db
      .prepare(
        "SELECT min(first) AS since, max(first) AS till FROM segment WHERE till >= ? AND since < ?",
      )
      .get(from ?? -END, to ?? END)!;
    return since === null ? [END, -END] : [Number(since), Number(till)];
  }
}
