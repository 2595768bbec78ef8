// Reads entries for reports. The reader has its own connection and thread, so reports never delay a
// commit. Long reads yield to short reads every few milliseconds.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type {
  LedgerEntry,
  LedgerQuery,
  LedgerState,
  ResultPage,
  PageRequest,
  Problem,
  LedgerTotal,
} from "tollgate/plugin";
import {
  RunningTotal,
  createTotals,
  rollupLevelFor,
  dimensionsOf,
  isSettledRow,
  type LedgerRow,
  matchesQuery,
  toPage,
  pageSize,
  type RowDimensions,
  toEntry,
  type Totals,
  type TotalsQuery,
  forEachSettledRow,
  decodeCommit,
  quarterStart,
} from "tollgate/store";
import { LedgerVerifier } from "./ledger-verifier.ts";
import {
  COMPACTED_UP_TO_SQL,
  readCompactedUpTo,
  readCheckpoint,
  addCompactedRows,
} from "../data/checkpoint.ts";
import { BatchReader, type ReadToken, YIELD } from "../data/batch-reader.ts";
import { readHead, verifyChain, type ChainHead } from "../data/chain.ts";
import { parseNote } from "../data/chain-note.ts";
import { verifyRecordChain } from "../data/record-chain.ts";
import { DimensionCache } from "../data/dimension-cache.ts";
import { createRowLookup, BATCH_COLUMNS, type StoredBatch } from "../data/stored-batch.ts";
import type { TotalsTarget, RollupGap } from "../sums/rollup-reader.ts";
import { MAX_UNSUMMARIZED, type Samples, Rollups, canUseRollups } from "../sums/rollups.ts";
import { createLabelResolver, type LabelResolver } from "../data/salted-text.ts";

/** Number of rows to read before yielding. */
const ROWS_PER_STRIDE = 2_000;

export class Reader {
  readonly #file: string;
  readonly #db: DatabaseSync;
  readonly #batches: BatchReader;
  readonly #closedReserve: StatementSync;
  readonly #rollups: Rollups;
  readonly #labelResolver: LabelResolver;
  readonly #dimensions = new DimensionCache();
  readonly #compactedUpTo: StatementSync;

  constructor({ file }: { file: string }) {
    this.#file = file;
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
    this.#batches = new BatchReader(this.#db, createRowLookup(this.#db));
    this.#labelResolver = createLabelResolver(this.#db);
    this.#compactedUpTo = this.#db.prepare(COMPACTED_UP_TO_SQL);
    this.#closedReserve = this.#db.prepare("SELECT 1 FROM closed_call WHERE reserve = ?");
    this.#rollups = new Rollups(this.#db, `${file}.rollups`);
  }

  async listEntries(
    query: LedgerQuery,
    page: PageRequest | undefined,
    still?: ReadToken,
  ): Promise<ResultPage<LedgerEntry>> {
    this.#labelResolver.forget();
    const speaks = query.label !== undefined;
    const size = pageSize(page);
    const after = Number(page?.after ?? 0);
    const found: LedgerEntry[] = [];
    for (const stored of this.#batches.matching(query, after + 1)) {
      if (stored === YIELD) {
        await setImmediate();
        if (still?.isWanted === false) break;
        continue;
      }
      decodeCommit(stored).forEach((row, i) => {
        const seq = stored.first + i;
        if (seq <= after) return;
        if (speaks) this.#resolveLabels(row);
        if (!this.#matchesQuery(row, seq, query)) return;
        if (!speaks) this.#resolveLabels(row);
        found.push(toEntry(row, seq));
      });
      if (found.length > size) break;
    }
    return toPage(found, size, ({ seq }) => String(seq));
  }

  async sumEntries(query: TotalsQuery, still?: ReadToken): Promise<readonly LedgerTotal[]> {
    this.#labelResolver.forget();
    const speaks =
      rollupLevelFor(query.by, query) === "labels" || rollupLevelFor(query.by, query) === "tags";
    const end = this.#batches.lastSeq();
    const pruned = readCompactedUpTo(this.#compactedUpTo);
    const speak = (of: RowDimensions): RowDimensions =>
      speaks ? { ...of, labels: this.#labelResolver.resolve(of.labels) } : of;
    const [sums, left] = await this.#readRollups(query, speak, still);
    addCompactedRows(this.#db, sums, query);
    const add = canUseRollups(query)
      ? this.#addSettledTo({ totals: sums, resolveLabels: speak }, query)
      : this.#addRowsTo({ totals: sums, resolveLabels: speak }, query);
    for (const [first, after] of left?.chapters ?? [])
      await forEachBatch(this.#batches.between(first, after), still, (stored) =>
        stored.first <= left!.after ? add(stored, left!.quarters) : 0,
      );
    const since = left?.after ?? 0;
    const { upTo, quarters } = left?.unsummarized ?? { upTo: end, quarters: undefined };
    // If there are few entries, a search by time would take longer than reading them all.
    const rest =
      upTo - since > MAX_UNSUMMARIZED ? query : { ...query, from: undefined, to: undefined };
    if (quarters?.size !== 0)
      await forEachBatch(this.#batches.matching(rest, since + 1), still, (stored) => {
        if (stored.first > upTo) return undefined;
        // The search can return the batch that contains `since` if no batch follows it.
        return stored.first > since ? add(stored, quarters) : 0;
      });
    // A compaction has replaced rows during the read, so the totals are computed again.
    if (readCompactedUpTo(this.#compactedUpTo) !== pruned) return this.sumEntries(query, still);
    void this.#rollups.update();
    return sums.totals();
  }

  /** Adds settled rows to the totals. Decodes only the fields that rollups need. */
  #addSettledTo({ totals, resolveLabels }: TotalsTarget, query: TotalsQuery): AddBatch {
    const { from = -Infinity, to = Infinity } = query;
    return (stored, of) =>
      forEachSettledRow(stored, (row, termsText, terms) => {
        if (row.at < from || row.at >= to || of?.has(quarterStart(row.at)) === false) return;
        const one = new RunningTotal();
        one.addRow(row);
        totals.addGroup(
          resolveLabels(this.#dimensions.get(row, termsText, terms)),
          one,
          row.at,
          query,
        );
      });
  }

  /** Adds whole rows to the totals, for queries about a single call or about open calls. */
  #addRowsTo({ totals, resolveLabels }: TotalsTarget, query: TotalsQuery): AddBatch {
    return (stored, of) => {
      const rows = decodeCommit(stored);
      rows.forEach((row, i) => {
        if (!isSettledRow(row, query.state) || of?.has(quarterStart(row.at)) === false) return;
        row.labels = resolveLabels(dimensionsOf(row)).labels;
        if (this.#matchesQuery(row, stored.first + i, query)) totals.add(row);
      });
      return rows.length;
    };
  }

  /** Updates the rollups with new entries, if there are at least `least`. */
  updateRollups(least?: number): Promise<void> {
    return this.#rollups.update(least);
  }

  /** Returns the totals that the rollups provide, and the gap that must be read from entries. */
  async #readRollups(
    query: TotalsQuery,
    speak: (of: RowDimensions) => RowDimensions,
    still: ReadToken | undefined,
  ): Promise<[Totals, RollupGap | undefined]> {
    const fresh = () => createTotals(query.by, query.zone);
    const sums = fresh();
    try {
      const reach = () => this.#batches.estimatedEntries(query);
      return [
        sums,
        await this.#rollups.addTo(query, { totals: sums, resolveLabels: speak }, reach, still),
      ];
    } catch {
      return [fresh(), undefined];
    }
  }

  async verify(): Promise<readonly Problem[]> {
    const { problems, sums } = await verifyLedger(this.#file, this.#rollups.samples());
    if (!sums) this.#rollups.rebuild();
    return problems;
  }

  containsHash(hash: string): boolean {
    const base = readCheckpoint(this.#db);
    const link = this.#db.prepare("SELECT 1 FROM segment WHERE hash = ? AND id > ?");
    return (
      base?.hash === hash ||
      link.get(hash, base?.segment ?? 0) !== undefined ||
      importedFrom(this.#db) === hash
    );
  }

  head(): ChainHead {
    return readHead(this.#db);
  }

  readState(): LedgerState {
    const pages = (of: string) => Number(this.#db.prepare(`PRAGMA ${of}`).get()?.[of]);
    const base = readCheckpoint(this.#db);
    const oldest = this.#db
      .prepare("SELECT min_at FROM segment WHERE id > ? ORDER BY id LIMIT 1")
      .get(base?.segment ?? 0);
    return {
      bytes: pages("page_size") * (pages("page_count") - pages("freelist_count")),
      prunedRows: base?.rows ?? 0,
      ...(oldest && { oldestAt: Number(oldest["min_at"]) }),
      ...(base && { prunedAt: base.at }),
    };
  }

  close(): void {
    this.#rollups.close();
    this.#db.close();
  }

  /** Replaces label hashes by their texts. Erased texts become `erased`. */
  #resolveLabels(row: LedgerRow): void {
    row.labels = this.#labelResolver.resolve(row.labels);
  }

  #matchesQuery(row: LedgerRow, seq: number, query: LedgerQuery): boolean {
    return matchesQuery(row, query, query.state === "open" && this.#isClosed(row, seq));
  }

  #isClosed(row: LedgerRow, seq: number): boolean {
    return row.kind === "reserve" && this.#closedReserve.get(seq) !== undefined;
  }
}

/** Returns the newest hash of the store that this ledger was imported from. */
function importedFrom(db: DatabaseSync): string | undefined {
  const row = db
    .prepare(
      'SELECT rows FROM batch WHERE rows LIKE \'[["n",%,{"imported":%\' ORDER BY first DESC LIMIT 1',
    )
    .get();
  return (row && parseNote(String(row["rows"]))?.note.imported?.head) ?? undefined;
}

/**
 * Adds a commit to totals, optionally restricted to some quarters of an hour. Returns the number of
 * rows in the commit.
 */
type AddBatch = (stored: StoredBatch, of: ReadonlySet<number> | undefined) => number;

/**
 * Calls `add` for each batch and yields to other work regularly. Stops when the caller no longer
 * waits.
 * @param add Returns the number of rows read, or undefined to stop.
 */
async function forEachBatch(
  batches: Iterable<StoredBatch | typeof YIELD>,
  still: ReadToken | undefined,
  add: (stored: StoredBatch) => number | undefined,
): Promise<void> {
  let read = 0;
  for (const stored of batches) {
    if (stored !== YIELD) {
      const rows = add(stored);
      if (rows === undefined) return;
      if ((read += rows) < ROWS_PER_STRIDE) continue;
    }
    read = 0;
    await setImmediate();
    if (still?.isWanted === false) return;
  }
}

/**
 * Verifies the ledger on one snapshot while the gateway continues to write. The `samples` were
 * taken before the snapshot.
 * @returns The problems, and whether the rollups are correct. If `sums` is false, rebuild the
 *   rollups.
 */
export async function verifyLedger(
  file: string,
  samples: Samples | undefined,
): Promise<{ problems: readonly Problem[]; sums: boolean }> {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  try {
    db.exec("BEGIN");
    const problems: Problem[] = [];
    let steps = 0;
    for (const problem of verifyChain(db, 1)) {
      if (problem) problems.push(problem);
      if (++steps % 500 === 0) await setImmediate();
    }
    problems.push(...verifyRecordChain(db));
    // If entries were changed, comparing them with rollups is pointless.
    if (problems.length > 0) return { problems, sums: true };
    const audit = new LedgerVerifier(db, samples);
    const batches = db.prepare(
      `SELECT ${BATCH_COLUMNS} FROM batch WHERE first > coalesce((SELECT last FROM checkpoint), 0) ORDER BY first`,
    );
    let read = 0;
    for (const stored of batches.iterate() as Iterable<unknown> as Iterable<StoredBatch>) {
      audit.add(stored);
      if ((read += stored.rows.length) < ROWS_PER_STRIDE * 100) continue;
      read = 0;
      await setImmediate();
    }
    const found = audit.problems();
    return { problems: found, sums: !found.some(({ path }) => path.startsWith("/rollups")) };
  } finally {
    db.close();
  }
}
