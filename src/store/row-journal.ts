// A journal for stores that keep complete rows. An open call is its reserve row with its last
// progress.
import type { Reserve, Settle } from "../plugin/index.ts";
import type { OpenCall, LedgerJournal } from "./ledger-rules.ts";
import type { MeterAmount } from "./meter.ts";
import { reserveRow, settleRow, type Progress, type LedgerRow } from "./ledger-row.ts";

type Timed<C> = C & { at: number };

/** An open call with its reserve row. */
export interface OpenRow extends OpenCall {
  readonly row: LedgerRow;
  progress: Progress | undefined;
}

/** A journal of such rows. */
export type RowJournal = LedgerJournal<Timed<Reserve>, Timed<Settle>, OpenRow>;

/** Creates an open call from its row and its last progress. */
export const createOpenRow = (row: LedgerRow, heard?: Progress): OpenRow => ({
  attempt: row.attempt,
  meterAmounts: row.meterAmounts,
  row,
  progress: heard,
});

/**
 * Creates the write methods. `write` returns false if the row already exists: one reserve and one
 * settle per attempt, and each adjustment once.
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
