// Reads for reports, on a connection and in a thread of its own, so that none of them ever keeps a commit waiting. Long
// readings give way to short ones every few milliseconds.
import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { Entry, LedgerQuery, ResultPage, PageRequest, Problem } from "tollgate/plugin";
import {
  createTotals,
  isCounted,
  type LedgerRow,
  matches,
  pageOf,
  pageSize,
  toEntry,
  type TotalsQuery,
} from "tollgate/store";
import { createAudit } from "./audit.ts";
import { headOf, links, type Head } from "./chain.ts";
import { checkKeys } from "./keyring.ts";
import { CHAPTER } from "./mention.ts";
import { createShelf, rowsOf, STORED, type Stored } from "./stored.ts";

/** Rows, or commits, read in one go, and batches. */
const STRIDE = 2_000;
const AT_ONCE = 16;
/** Entries that are looked through for a text in one go. */
const WINDOW = 65_536;
/** Here others may go first. */
const PAUSE = Symbol("pause");

/** Whether a caller waits for a reading; it is looked at between strides. */
export interface Still {
  readonly wanted: boolean;
}

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

export function createReader({ file }: { file: string }) {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  const shelf = createShelf(db);
  const done = db.prepare("SELECT 1 FROM done WHERE reserve = ?");
  const chapters = db.prepare("SELECT chapter FROM mention WHERE key = ? ORDER BY chapter");
  const newest = db.prepare("SELECT last, low FROM segment ORDER BY id DESC LIMIT 1");

  /** The batches that may hold what is asked for, from the one that holds `from` on. */
  function* batches(query: LedgerQuery, from: number): Generator<Stored | typeof PAUSE, void> {
    const [where, texts] = holding(query);
    const some = db.prepare(
      `SELECT ${STORED} FROM batch WHERE first BETWEEN ? AND ? AND ${where} ORDER BY first LIMIT ${AT_ONCE}`,
    );
    const [since, till] = during(query);
    const newestSeq = Number(newest.get()?.["last"] ?? 0);
    const least = Math.max(shelf.holding(from)?.first ?? from, since);
    for (const [begin, end] of spans(query)) {
      const last = Math.min(end, till, newestSeq);
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

  /** Where they may begin, in order. */
  function spans({ attempt, key, state }: LedgerQuery): Iterable<Span> {
    const at = (seq: number): Span => {
      const { first } = shelf.holding(seq)!;
      return [first, first];
    };
    if (attempt !== undefined) {
      const { reserve, settle, adjusts } = shelf.about(attempt) ?? { adjusts: [] };
      const seqs = [reserve, settle, ...adjusts].filter((seq) => seq !== undefined);
      return apart(seqs.map(at));
    }
    if (state === "open") {
      const low = Number(newest.get()?.["low"] ?? 0);
      const listed = db.prepare("SELECT seq FROM open WHERE seq < ? ORDER BY seq").all(low);
      return [...apart(listed.map(({ seq }) => at(Number(seq)))), [low, END]];
    }
    if (key !== undefined)
      return chapters.all(key).map(({ chapter }): Span => {
        const first = Number(chapter) * CHAPTER;
        return [first, first + CHAPTER - 1];
      });
    return [[-END, END]];
  }

  /** Commits are nearly in the order of their times; what lies between the first and the last of them is looked at. */
  function during({ from, to }: LedgerQuery): Span {
    if (from === undefined && to === undefined) return [-END, END];
    const { since, till } = db
      .prepare(
        "SELECT min(first) AS since, max(first) AS till FROM segment WHERE till >= ? AND since < ?",
      )
      .get(from ?? -END, to ?? END)!;
    return since === null ? [END, -END] : [Number(since), Number(till)];
  }

  const isOver = (row: LedgerRow, seq: number): boolean =>
    row.kind === "reserve" && done.get(seq) !== undefined;
  const asked = (row: LedgerRow, seq: number, query: LedgerQuery): boolean =>
    matches(row, query, query.state === "open" && isOver(row, seq));

  return {
    async entries(
      query: LedgerQuery,
      page?: PageRequest,
      still?: Still,
    ): Promise<ResultPage<Entry>> {
      const size = pageSize(page);
      const after = Number(page?.after ?? 0);
      const found: Entry[] = [];
      for (const stored of batches(query, after + 1)) {
        if (stored === PAUSE) {
          await setImmediate();
          if (still?.wanted === false) break;
          continue;
        }
        rowsOf(stored).forEach((row, i) => {
          const seq = stored.first + i;
          if (seq > after && asked(row, seq, query)) found.push(toEntry(row, seq));
        });
        if (found.length > size) break;
      }
      return pageOf(found, size, ({ seq }) => String(seq));
    },
    async totals({ by, ...query }: TotalsQuery, still?: Still) {
      const sums = createTotals(by);
      const end = Number(newest.get()?.["last"] ?? 0);
      let read = 0;
      for (const stored of batches(query, 1)) {
        if (stored === PAUSE) {
          await setImmediate();
          if (still?.wanted === false) break;
          continue;
        }
        if (stored.first > end) break;
        const rows = rowsOf(stored);
        rows.forEach((row, i) => {
          if (isCounted(row, query.state) && asked(row, stored.first + i, query)) sums.add(row);
        });
        read += rows.length;
        if (read < STRIDE) continue;
        read = 0;
        await setImmediate();
        if (still?.wanted === false) break;
      }
      return sums.totals();
    },
    verify: () => verify(file),
    holds: (hash: string): boolean =>
      db.prepare("SELECT 1 FROM segment WHERE hash = ? AND id > 0").get(hash) !== undefined,
    head: (): Head => headOf(db),
    close: () => db.close(),
  };
}

export type Reader = ReturnType<typeof createReader>;

/** On one snapshot, however long it takes, while the gateway goes on writing. */
async function verify(file: string): Promise<readonly Problem[]> {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  try {
    db.exec("BEGIN");
    const problems: Problem[] = [];
    let steps = 0;
    for (const problem of links(db, 1)) {
      if (problem) problems.push(problem);
      if (++steps % 500 === 0) await setImmediate();
    }
    problems.push(...checkKeys(db));
    // Sums over entries that were changed would say nothing more.
    if (problems.length > 0) return problems;
    const audit = createAudit(db);
    const batches = db.prepare(`SELECT ${STORED} FROM batch ORDER BY first`);
    let read = 0;
    for (const stored of batches.iterate() as Iterable<unknown> as Iterable<Stored>) {
      audit.add(stored);
      if ((read += stored.rows.length) < STRIDE * 100) continue;
      read = 0;
      await setImmediate();
    }
    return audit.problems();
  } finally {
    db.close();
  }
}
