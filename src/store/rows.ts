// The journal of a store that keeps rows as they are: an open call is its reserve's row and what was last heard of it.
import type { Reserve, Settle } from "../plugin/index.ts";
import type { OpenCall, Journal } from "./book.ts";
import type { Taken } from "./meter.ts";
import { reserved, settled, type Progress, type LedgerRow } from "./row.ts";

type At<C> = C & { at: number };

/** An open call that is its row. */
export interface OpenRow extends OpenCall {
  readonly row: LedgerRow;
  heard: Progress | undefined;
}

/** A journal of such rows. */
export type RowJournal = Journal<At<Reserve>, At<Settle>, OpenRow>;

/** An open call from its row, and from what was last heard of it. */
export const openRow = (row: LedgerRow, heard?: Progress): OpenRow => ({
  attempt: row.attempt,
  taken: row.taken,
  row,
  heard,
});

/** `write` says false when it has this row already: one reserve and one settle an attempt, each adjustment once. */
export const inRows = (
  write: (row: LedgerRow) => boolean,
  instance: () => string,
): Pick<RowJournal, "reserve" | "settle" | "adjust"> => ({
  reserve(command, taken: readonly Taken[]) {
    const row = reserved(command, instance(), taken);
    return write(row) ? openRow(row) : undefined;
  },
  settle: ({ row }, command) => void write(settled(row, command, instance())),
  adjust: write,
});
