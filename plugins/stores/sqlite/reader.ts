// Reads for reports, on a connection and in a thread of its own, so that none of them ever keeps a commit waiting. Long
// readings give way to short ones every few milliseconds.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type {
  Entry,
  LedgerQuery,
  LedgerState,
  ResultPage,
  PageRequest,
  Problem,
  Total,
} from "tollgate/plugin";
import {
  Amounts,
  createTotals,
  depthOf,
  factsOf,
  isCounted,
  type LedgerRow,
  matches,
  pageOf,
  pageSize,
  type RowFacts,
  toEntry,
  type Totals,
  type TotalsQuery,
} from "tollgate/store";
import { Audit } from "./audit.ts";
import { PRUNED, prunedIn, readBase } from "./standing.ts";
import { Batches, PAUSE } from "./batches.ts";
import { headOf, links, type Head } from "./chain.ts";
import { noteOf } from "./note.ts";
import { checkKeys } from "./keyring.ts";
import { KnownFacts } from "./known-facts.ts";
import { prunedSums } from "./pruned.ts";
import { counted, createShelf, rowsOf, STORED, type Stored } from "./stored.ts";
import type { TakenInto, Unsummed } from "./summed.ts";
import { NEAR, type Samples, Sums, tellsSums } from "./sums.ts";
import { quarterOf } from "./sums-file.ts";
import { createSpoken, type Spoken } from "./words.ts";

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
  readonly #sums: Sums;
  readonly #spoken: Spoken;
  readonly #facts = new KnownFacts();
  readonly #pruned: StatementSync;

  constructor({ file }: { file: string }) {
    this.#file = file;
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
    this.#batches = new Batches(this.#db, createShelf(this.#db));
    this.#spoken = createSpoken(this.#db);
    this.#pruned = this.#db.prepare(PRUNED);
    this.#done = this.#db.prepare("SELECT 1 FROM done WHERE reserve = ?");
    this.#sums = new Sums(this.#db, `${file}.sums`);
  }

  async entries(query: LedgerQuery, page?: PageRequest, still?: Still): Promise<ResultPage<Entry>> {
    this.#spoken.forget();
    const speaks = query.label !== undefined;
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
        if (seq <= after) return;
        if (speaks) this.#speak(row);
        if (!this.#asked(row, seq, query)) return;
        if (!speaks) this.#speak(row);
        found.push(toEntry(row, seq));
      });
      if (found.length > size) break;
    }
    return pageOf(found, size, ({ seq }) => String(seq));
  }

  async totals(asked: TotalsQuery, still?: Still): Promise<readonly Total[]> {
    this.#spoken.forget();
    const speaks = depthOf(asked.by, asked) === "labels" || depthOf(asked.by, asked) === "tags";
    const end = this.#batches.last();
    const pruned = prunedIn(this.#pruned);
    const speak = (of: RowFacts): RowFacts =>
      speaks ? { ...of, labels: this.#spoken.labels(of.labels) } : of;
    const [sums, left] = await this.#summed(asked, speak, still);
    for (const [facts, amounts, at] of prunedSums(this.#db, asked))
      sums.take(facts, amounts, at, asked);
    const add = tellsSums(asked)
      ? this.#countedInto({ sums, speak }, asked)
      : this.#rowsInto({ sums, speak }, asked);
    for (const [first, after] of left?.chapters ?? [])
      await each(this.#batches.between(first, after), still, (stored) =>
        stored.first <= left!.after ? add(stored, left!.quarters) : 0,
      );
    const since = left?.after ?? 0;
    const { upTo, quarters } = left?.tail ?? { upTo: end, quarters: undefined };
    // Of a few entries, looking for times would take longer than reading them.
    const rest = upTo - since > NEAR ? asked : { ...asked, from: undefined, to: undefined };
    if (quarters?.size !== 0)
      await each(this.#batches.of(rest, since + 1), still, (stored) => {
        if (stored.first > upTo) return undefined;
        // Where nothing came after them, the last one of the sums is found.
        return stored.first > since ? add(stored, quarters) : 0;
      });
    // Sums were put in the place of rows meanwhile.
    if (prunedIn(this.#pruned) !== pruned) return this.totals(asked, still);
    void this.#sums.more();
    return sums.totals();
  }

  /** Of each commit what sums know of a row. */
  #countedInto({ sums, speak }: TakenInto, asked: TotalsQuery): AddStored {
    const { from = -Infinity, to = Infinity } = asked;
    return (stored, of) =>
      counted(stored, (row, said, terms) => {
        if (row.at < from || row.at >= to || of?.has(quarterOf(row.at)) === false) return;
        const one = new Amounts();
        one.row(row);
        sums.take(speak(this.#facts.of(row, said, terms)), one, row.at, asked);
      });
  }

  /** The whole rows, for what is asked of one call, or of open ones. */
  #rowsInto({ sums, speak }: TakenInto, asked: TotalsQuery): AddStored {
    return (stored, of) => {
      const rows = rowsOf(stored);
      rows.forEach((row, i) => {
        if (!isCounted(row, asked.state) || of?.has(quarterOf(row.at)) === false) return;
        row.labels = speak(factsOf(row)).labels;
        if (this.#asked(row, stored.first + i, asked)) sums.add(row);
      });
      return rows.length;
    };
  }

  /** What was written since the last time is summed up, if there is something to it. */
  sum(least?: number): Promise<void> {
    return this.#sums.more(least);
  }

  /** What sums tell, and what they do not. */
  async #summed(
    asked: TotalsQuery,
    speak: (of: RowFacts) => RowFacts,
    still: Still | undefined,
  ): Promise<[Totals, Unsummed | undefined]> {
    const fresh = () => createTotals(asked.by, asked.zone);
    const sums = fresh();
    try {
      const reach = () => this.#batches.reach(asked);
      return [sums, await this.#sums.take(asked, { sums, speak }, reach, still)];
    } catch {
      return [fresh(), undefined];
    }
  }

  async verify(): Promise<readonly Problem[]> {
    const { problems, sums } = await verify(this.#file, this.#sums.samples());
    if (!sums) this.#sums.anew();
    return problems;
  }

  holds(hash: string): boolean {
    const base = readBase(this.#db);
    const link = this.#db.prepare("SELECT 1 FROM segment WHERE hash = ? AND id > ?");
    return (
      base?.hash === hash ||
      link.get(hash, base?.segment ?? 0) !== undefined ||
      movedFrom(this.#db) === hash
    );
  }

  head(): Head {
    return headOf(this.#db);
  }

  state(): LedgerState {
    const pages = (of: string) => Number(this.#db.prepare(`PRAGMA ${of}`).get()?.[of]);
    const base = readBase(this.#db);
    const oldest = this.#db
      .prepare("SELECT since FROM segment WHERE id > ? ORDER BY id LIMIT 1")
      .get(base?.segment ?? 0);
    return {
      bytes: pages("page_size") * (pages("page_count") - pages("freelist_count")),
      prunedRows: base?.rows ?? 0,
      ...(oldest && { oldest: Number(oldest["since"]) }),
      ...(base && { prunedAt: base.at }),
    };
  }

  close(): void {
    this.#sums.close();
    this.#db.close();
  }

  /** Its labels as they were told, but for what is gone. */
  #speak(row: LedgerRow): void {
    row.labels = this.#spoken.labels(row.labels);
  }

  #asked(row: LedgerRow, seq: number, query: LedgerQuery): boolean {
    return matches(row, query, query.state === "open" && this.#isOver(row, seq));
  }

  #isOver(row: LedgerRow, seq: number): boolean {
    return row.kind === "reserve" && this.#done.get(seq) !== undefined;
  }
}

/** The newest hash of the store that the ledger was moved from. */
function movedFrom(db: DatabaseSync): string | undefined {
  const row = db
    .prepare(
      'SELECT rows FROM batch WHERE rows LIKE \'[["n",%,{"moved":%\' ORDER BY first DESC LIMIT 1',
    )
    .get();
  return (row && noteOf(String(row["rows"]))?.note.moved?.head) ?? undefined;
}

/** Adds a commit, of some quarters of an hour if they are said, and says how many rows it has. */
type AddStored = (stored: Stored, of: ReadonlySet<number> | undefined) => number;

/** Others may go first now and then; not wanted any more, it ends. `add`: how many rows were read; undefined: that is all. */
async function each(
  batches: Iterable<Stored | typeof PAUSE>,
  still: Still | undefined,
  add: (stored: Stored) => number | undefined,
): Promise<void> {
  let read = 0;
  for (const stored of batches) {
    if (stored !== PAUSE) {
      const rows = add(stored);
      if (rows === undefined) return;
      if ((read += rows) < STRIDE) continue;
    }
    read = 0;
    await setImmediate();
    if (still?.wanted === false) return;
  }
}

/**
 * On one snapshot, however long it takes, while the gateway goes on writing. `samples` are older than it. Says of the sums apart whether
 * they are to be made anew.
 */
export async function verify(
  file: string,
  samples: Samples | undefined,
): Promise<{ problems: readonly Problem[]; sums: boolean }> {
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
    if (problems.length > 0) return { problems, sums: true };
    const audit = new Audit(db, samples);
    const batches = db.prepare(
      `SELECT ${STORED} FROM batch WHERE first > coalesce((SELECT last FROM base), 0) ORDER BY first`,
    );
    let read = 0;
    for (const stored of batches.iterate() as Iterable<unknown> as Iterable<Stored>) {
      audit.add(stored);
      if ((read += stored.rows.length) < STRIDE * 100) continue;
      read = 0;
      await setImmediate();
    }
    const found = audit.problems();
    return { problems: found, sums: !found.some(({ path }) => path.startsWith("/sums")) };
  } finally {
    db.close();
  }
}
