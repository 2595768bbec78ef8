// Reads for reports, on a connection and in a thread of its own, so that none of them ever keeps a commit waiting. Long
// readings give way to short ones every few milliseconds.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { Entry, LedgerQuery, ResultPage, PageRequest, Problem, Total } from "tollgate/plugin";
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
import { Audit } from "./audit.ts";
import { Batches, PAUSE } from "./batches.ts";
import { headOf, links, type Head } from "./chain.ts";
import { checkKeys } from "./keyring.ts";
import { createShelf, rowsOf, STORED, type Stored } from "./stored.ts";

/** Rows, or commits, read in one go. */
const STRIDE = 2_000;

/** Whether a caller waits for a reading; it is looked at between strides. */
export interface Still {
  readonly wanted: boolean;
}

export class Reader {
  readonly #file: string;
  readonly #db: DatabaseSync;
  readonly #batches: Batches;
  readonly #done: StatementSync;

  constructor({ file }: { file: string }) {
    this.#file = file;
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
    this.#batches = new Batches(this.#db, createShelf(this.#db));
    this.#done = this.#db.prepare("SELECT 1 FROM done WHERE reserve = ?");
  }

  async entries(query: LedgerQuery, page?: PageRequest, still?: Still): Promise<ResultPage<Entry>> {
    const size = pageSize(page);
    const after = Number(page?.after ?? 0);
    const found: Entry[] = [];
    for (const stored of this.#batches.of(query, after + 1)) {
      if (stored === PAUSE) {
        await setImmediate();
        if (still?.wanted === false) break;
        continue;
      }
      rowsOf(stored).forEach((row, i) => {
        const seq = stored.first + i;
        if (seq > after && this.#asked(row, seq, query)) found.push(toEntry(row, seq));
      });
      if (found.length > size) break;
    }
    return pageOf(found, size, ({ seq }) => String(seq));
  }

  async totals({ by, ...query }: TotalsQuery, still?: Still): Promise<readonly Total[]> {
    const sums = createTotals(by);
    const end = this.#batches.last();
    let read = 0;
    for (const stored of this.#batches.of(query, 1)) {
      if (stored === PAUSE) {
        await setImmediate();
        if (still?.wanted === false) break;
        continue;
      }
      if (stored.first > end) break;
      const rows = rowsOf(stored);
      rows.forEach((row, i) => {
        if (isCounted(row, query.state) && this.#asked(row, stored.first + i, query)) sums.add(row);
      });
      read += rows.length;
      if (read < STRIDE) continue;
      read = 0;
      await setImmediate();
      if (still?.wanted === false) break;
    }
    return sums.totals();
  }

  verify(): Promise<readonly Problem[]> {
    return verify(this.#file);
  }

  holds(hash: string): boolean {
    return (
      this.#db.prepare("SELECT 1 FROM segment WHERE hash = ? AND id > 0").get(hash) !== undefined
    );
  }

  head(): Head {
    return headOf(this.#db);
  }

  close(): void {
    this.#db.close();
  }

  #asked(row: LedgerRow, seq: number, query: LedgerQuery): boolean {
    return matches(row, query, query.state === "open" && this.#isOver(row, seq));
  }

  #isOver(row: LedgerRow, seq: number): boolean {
    return row.kind === "reserve" && this.#done.get(seq) !== undefined;
  }
}

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
    const audit = new Audit(db);
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
