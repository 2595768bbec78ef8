// The book of meters, as a store of a third party meets it.
import type { KeyRecord, Store, StoreCommand, Verdict } from "tollgate/plugin";
import {
  checkCommand,
  claimed,
  createBook,
  createMemoryJournal,
  createSubtotals,
  createTotals,
  depthOf,
  groupsOf,
  inRows,
  journalReads,
  openRow,
  presumed,
  readSubtotals,
  taking,
  zoneClock,
  type Depth,
  type Journal,
  type LedgerRow,
  type OpenRow,
  type RowJournal,
  type Taken,
} from "tollgate/store";
import { is, type Same } from "./same.ts";

// ── over a journal that comes with it ──
const journal = createMemoryJournal(() => "me");
export const book = createBook(journal, () => "me");
export const reads: Pick<Store, "key" | "keys" | "entries" | "totals"> = journalReads(journal);
export function apply(batch: readonly StoreCommand[]): readonly Verdict[] {
  batch.forEach(checkCommand);
  return batch.map((command) => book.apply(command));
}
for (const call of book.open.values()) {
  is<Same<typeof call, OpenRow>>();
  book.apply(presumed(call.row, call.heard, 0));
}
// @ts-expect-error  a batch is applied command by command
book.apply([]);
// @ts-expect-error  which process writes may change: it is asked
createBook(journal, "me");

// ── over one of its own ──
declare const rows: LedgerRow[];
export const own: RowJournal = {
  ...inRows(
    (row) => rows.push(row) > 0,
    () => "me",
  ),
  knows: () => false,
  past: () => undefined,
  progress: (call, { usage, costNano = null }) => void (call.heard = { usage, costNano }),
  key: (record) => is<Same<typeof record, KeyRecord>>(),
  price() {},
  alive() {},
};
createBook(own, () => "me").restore(openRow(rows[0]!));
// @ts-expect-error  a journal says whether it knows an attempt
export const half: Journal<never, never, never> = { ...own, knows: undefined };

// ── sums ──
const sums = createTotals(["account"]);
sums.add(rows[0]!);
// @ts-expect-error  no such group
createTotals(["weather"]);
createTotals(["hour", "outcome", "labels"], "Europe/Berlin");
// @ts-expect-error  a zone has a name, it is no number of hours
createTotals(["hour"], 1);

// ── sums that a store keeps ──
const day = createSubtotals("keys");
day.add(rows[0]!);
day.take(readSubtotals(day.text()));
for (const [facts, amounts] of groupsOf(day.text())) sums.take(facts, amounts, 0, { key: "k" });
is<Same<ReturnType<typeof depthOf>, Depth | undefined>>();
// @ts-expect-error  no such depth
createSubtotals("deeper");
// @ts-expect-error  which rows they are of is asked
sums.take(...groupsOf(day.text()).next().value!, 0);
// @ts-expect-error  a clock is of one zone
zoneClock(["UTC"]);

// ── meters that a database keeps ──
for (const claim of claimed([], 0, book.meters)) {
  const taken = taking(claim);
  is<Same<typeof taken, Taken>>();
}
// @ts-expect-error  which window a claim meets depends on when it is asked for
claimed([]);
