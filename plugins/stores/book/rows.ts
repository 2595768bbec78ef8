// The journal of a store that keeps rows as they are: an open call is its reserve's row and what was last heard of it.
import type { Reserve, Settle } from "tollgate/plugin";
import type { Call, Journal } from "./book.ts";
import type { Taken } from "./meter.ts";
import { reserved, settled, type Heard, type Row } from "./row.ts";

type At<C> = C & { at: number };

export interface OpenRow extends Call {
  readonly row: Row;
  heard: Heard | undefined;
}

export type RowJournal = Journal<At<Reserve>, At<Settle>, OpenRow>;

export const openRow = (row: Row, heard?: Heard): OpenRow => ({
  attempt: row.attempt,
  taken: row.taken,
  row,
  heard,
});

/** `write` says false when it has this row already: one reserve and one settle an attempt, each adjustment once. */
export const inRows = (
  write: (row: Row) => boolean,
  instance: () => string,
): Pick<RowJournal, "reserve" | "settle" | "adjust"> => ({
  reserve(command, taken: readonly Taken[]) {
    const row = reserved(command, instance(), taken);
    return write(row) ? openRow(row) : undefined;
  },
  settle: ({ row }, command) => void write(settled(row, command, instance())),
  adjust: write,
});
