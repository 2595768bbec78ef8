// The journal of a store that keeps rows as they are: an open call is its reserve's row and what was last heard of it.
import type { Reserve, Settle } from "../plugin/index.ts";
import type { OpenCall, LedgerJournal } from "./ledger-rules.ts";
import type { MeterAmount } from "./meter.ts";
import { reserveRow, settleRow, type Progress, type LedgerRow } from "./ledger-row.ts";

type Timed<C> = C & { at: number };

/** An open call that is its row. */
export interface OpenRow extends OpenCall {
  readonly row: LedgerRow;
  progress: Progress | undefined;
}

/** A journal of such rows. */
export type RowJournal = LedgerJournal<Timed<Reserve>, Timed<Settle>, OpenRow>;

/** An open call from its row, and from what was last heard of it. */
export const createOpenRow = (row: LedgerRow, heard?: Progress): OpenRow => ({
  attempt: row.attempt,
  meterAmounts: row.meterAmounts,
  row,
  progress: heard,
});

/** `write` says false when it has this row already: one reserve and one settle an attempt, each adjustment once. */
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
