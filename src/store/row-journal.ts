// A journal for stores that keep complete rows. An open call is its reserve row with its last
// progress.
import type { Reserve, Settle, KeyRecord, ResultPage, Opt, PageRequest } from "../plugin/index.ts";
import type { OpenCall, LedgerJournal } from "./ledger-rules.ts";
import type { MeterAmount } from "./meter.ts";
import { reserveRow, settleRow, type Progress, type LedgerRow } from "./ledger-row.ts";

type Timed<C> = C & { at: number };

/** An open call with its reserve row. */
export interface OpenRow extends OpenCall {
  readonly row: LedgerRow;
  progress: Progress | undefined;
  lineAmounts?: readonly bigint[] | undefined;
}

/** A journal of such rows. */
export type RowJournal = LedgerJournal<Timed<Reserve>, Timed<Settle>, OpenRow>;

/** Creates an open call from its row and its last progress. */
export const createOpenRow = (row: LedgerRow, progress?: Progress): OpenRow => ({
  attempt: row.attempt,
  meterAmounts: row.meterAmounts,
  row,
  progress,
  job: row.job,
});

/**
 * Creates the write methods. `write` returns false if the row already exists. An attempt has one
 * reserve and one settle, and each adjustment exists once.
 */
export const createRowWriter = (
  write: (row: LedgerRow) => boolean,
  instance: () => string,
): Pick<RowJournal, "reserve" | "settle" | "adjust"> => ({
  reserve(command, taken: readonly MeterAmount[]) {
    const row = reserveRow(command, instance(), taken);
    return write(row) ? createOpenRow(row) : undefined;
  },
  settle: ({ row }, command) => void write(settleRow(row, command, instance())),
  adjust: write,
});

// Pages of a list: the items after a cursor, up to a page size.

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1_000;

/** Returns the requested page size, within limits. */
export const pageSize = (page: Opt<PageRequest>): number =>
  Math.max(1, Math.min(MAX_PAGE_SIZE, Math.floor(page?.limit ?? DEFAULT_PAGE_SIZE)));

/**
 * Creates a page. `found` may contain one item more than the page size. The additional item shows
 * that there is another page.
 */
export function toPage<T>(
  found: readonly T[],
  size: number,
  cursor: (item: T) => string,
): ResultPage<T> {
  if (found.length <= size) return { items: found };
  const items = found.slice(0, size);
  return { items, next: cursor(items[size - 1]!) };
}

/** Cursor of a key. Keys are listed in the order of their creation. */
export const keyCursor = ({ created, digest }: KeyRecord): string =>
  `${String(Math.floor(created)).padStart(16, "0")}:${digest}`;
