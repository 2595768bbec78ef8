// The book of meters, as a store of a third party meets it.
import type { KeyRecord, Store, StoreCommand, CommandResult } from "tollgate/plugin";
import {
  checkCommand,
  mergeClaims,
  createLedgerRules,
  createMemoryJournal,
  createRollup,
  createTotals,
  rollupLevelFor,
  parseRollupGroups,
  createRowWriter,
  createJournalReads,
  createOpenRow,
  recoveredSettle,
  parseRollup,
  toMeterAmount,
  zoneClock,
  type RollupLevel,
  type LedgerJournal,
  type LedgerRow,
  type OpenRow,
  type RowJournal,
  type MeterAmount,
} from "tollgate/store";
import { is, type Same } from "./same.ts";

// ── over a journal that comes with it ──
const journal = createMemoryJournal(() => "me");
export const book = createLedgerRules(journal, () => "me");
export const reads: Pick<Store, "findKey" | "listKeys" | "listEntries" | "sumEntries"> =
  createJournalReads(journal);
export function apply(batch: readonly StoreCommand[]): readonly CommandResult[] {
  batch.forEach(checkCommand);
  return batch.map((command) => book.apply(command));
}
for (const call of book.openCalls.values()) {
  is<Same<typeof call, OpenRow>>();
  book.apply(recoveredSettle(call.row, call.progress, 0));
}
// @ts-expect-error  a batch is applied command by command
book.apply([]);
// @ts-expect-error  which process writes may change: it is asked
createLedgerRules(journal, "me");

// ── over one of its own ──
declare const rows: LedgerRow[];
export const own: RowJournal = {
  ...createRowWriter(
    (row) => rows.push(row) > 0,
    () => "me",
  ),
  hasReserve: () => false,
  closedCall: () => undefined,
  progress: (call, { usage, costNano = null }) => void (call.progress = { usage, costNano }),
  putKey: (record) => is<Same<typeof record, KeyRecord>>(),
  putPrice() {},
  recordHeartbeat() {},
};
createLedgerRules(own, () => "me").restoreCall(createOpenRow(rows[0]!));
// @ts-expect-error  a journal says whether it knows an attempt
export const half: LedgerJournal<never, never, never> = { ...own, hasReserve: undefined };

// ── sums ──
const sums = createTotals(["account"]);
sums.add(rows[0]!);
// @ts-expect-error  no such group
createTotals(["weather"]);
createTotals(["hour", "outcome", "labels"], "Europe/Berlin");
// @ts-expect-error  a zone has a name, it is no number of hours
createTotals(["hour"], 1);

// ── sums that a store keeps ──
const day = createRollup("keys");
day.add(rows[0]!);
day.merge(parseRollup(day.serialize()));
for (const [facts, amounts] of parseRollupGroups(day.serialize()))
  sums.addGroup(facts, amounts, 0, { key: "k" });
is<Same<ReturnType<typeof rollupLevelFor>, RollupLevel | undefined>>();
// @ts-expect-error  no such depth
createRollup("deeper");
// @ts-expect-error  which rows they are of is asked
sums.addGroup(...parseRollupGroups(day.serialize()).next().value!, 0);
// @ts-expect-error  a clock is of one zone
zoneClock(["UTC"]);

// ── meters that a database keeps ──
for (const claim of mergeClaims([], 0, book.meters)) {
  const taken = toMeterAmount(claim);
  is<Same<typeof taken, MeterAmount>>();
}
// @ts-expect-error  which window a claim meets depends on when it is asked for
mergeClaims([]);
