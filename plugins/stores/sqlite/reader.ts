// Reads for reports, on a connection and in a thread of its own, so that none of them ever keeps a commit waiting. Long
// readings give way to short ones every few milliseconds.
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { Entry, LedgerQuery, Listed, Page, Problem } from "tollgate/plugin";
import { listed, sizeOf } from "../book/page.ts";
import { matches, toEntry, type Row } from "../book/row.ts";
import { counts, totalling, type TotalsQuery } from "../book/totals.ts";
import { createAudit } from "./audit.ts";
import { headOf, links, type Head } from "./chain.ts";
import { CHAPTER } from "./mention.ts";
import { createShelf, rowsOf, STORED, type Stored } from "./stored.ts";

/** Rows, or commits, read in one go. */
const STRIDE = 2_000;

export function createReader({ file }: { file: string }) {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  const shelf = createShelf(db);
  const done = db.prepare("SELECT 1 FROM done WHERE reserve = ?");
  const newest = db.prepare("SELECT last, low FROM segment ORDER BY id DESC LIMIT 1");

  /** The batches that may hold what is asked for, from the one that holds `from` on. */
  function* batches(query: LedgerQuery, from: number): Generator<Stored, void> {
    const [where, values] = candidates(query);
    // One statement a batch: between two of them commits happen, and the log may be taken in.
    const next = db.prepare(
      `SELECT ${STORED} FROM batch b WHERE first >= ? AND ${where} ORDER BY first LIMIT 1`,
    );
    let first = shelf.holding(from)?.first ?? from;
    for (;;) {
      const found = next.get(first, ...values) as unknown as Stored | undefined;
      if (!found) return;
      yield found;
      first = found.first + 1;
    }
  }

  function candidates(query: LedgerQuery): [where: string, values: SQLInputValue[]] {
    const parts: string[] = ["1"];
    const values: SQLInputValue[] = [];
    const is = (part: string, ...more: SQLInputValue[]): void => {
      parts.push(part);
      values.push(...more);
    };
    if (query.key !== undefined)
      is(
        `first / ${CHAPTER} IN (SELECT chapter FROM mention WHERE key = ?) AND instr(iif(form = 1, rows, terms), ?)`,
        query.key,
        JSON.stringify(query.key),
      );
    if (query.attempt !== undefined) {
      const { reserve, settle, adjusts } = shelf.about(query.attempt) ?? { adjusts: [] };
      const seqs = [reserve, settle, ...adjusts].filter((seq) => seq !== undefined);
      is(
        "first IN (SELECT value FROM json_each(?))",
        JSON.stringify(seqs.map((seq) => shelf.holding(seq)!.first)),
      );
    }
    // What upstream calls it has no order that an index could keep up with: its text is looked for.
    if (query.upstreamId !== undefined) is("instr(rows, ?)", JSON.stringify(query.upstreamId));
    if (query.from !== undefined || query.to !== undefined)
      is(
        "first IN (SELECT first FROM segment WHERE till >= ? AND since < ?)",
        query.from ?? -Infinity,
        query.to ?? Infinity,
      );
    if (query.state === "open")
      is(
        "(first >= ? OR first IN (SELECT value FROM json_each(?)))",
        Number(newest.get()?.["low"] ?? 0),
        JSON.stringify(
          db
            .prepare("SELECT seq FROM open")
            .all()
            .map(({ seq }) => shelf.holding(Number(seq))!.first),
        ),
      );
    return [parts.join(" AND "), values];
  }

  const isOver = (row: Row, seq: number): boolean =>
    row.kind === "reserve" && done.get(seq) !== undefined;
  const asked = (row: Row, seq: number, query: LedgerQuery): boolean =>
    matches(row, query, query.state === "open" && isOver(row, seq));

  return {
    entries(query: LedgerQuery, page?: Page): Listed<Entry> {
      const size = sizeOf(page);
      const after = Number(page?.after ?? 0);
      const found: Entry[] = [];
      for (const stored of batches(query, after + 1)) {
        rowsOf(stored).forEach((row, i) => {
          const seq = stored.first + i;
          if (seq > after && asked(row, seq, query)) found.push(toEntry(row, seq));
        });
        if (found.length > size) break;
      }
      return listed(found, size, ({ seq }) => String(seq));
    },
    async totals({ by, ...query }: TotalsQuery) {
      const sums = totalling(by);
      const end = Number(newest.get()?.["last"] ?? 0);
      let read = 0;
      for (const stored of batches(query, 1)) {
        if (stored.first > end) break;
        const rows = rowsOf(stored);
        rows.forEach((row, i) => {
          if (counts(row, query.state) && asked(row, stored.first + i, query)) sums.add(row);
        });
        read += rows.length;
        if (read < STRIDE) continue;
        read = 0;
        await setImmediate();
      }
      return sums.totals();
    },
    verify: () => verify(file),
    holds: (hash: string): boolean =>
      db.prepare("SELECT 1 FROM segment WHERE hash = ?").get(hash) !== undefined,
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
