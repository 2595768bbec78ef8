// tollgate/store: the book of meters, for stores of third parties as for those that come with Tollgate. Rules, no I/O: a store
// hands it commands and gets verdicts; where rows are kept is a journal's matter.
// May import: lib, model, plugin. May not: a file, a clock, a database.
export type { AccountRepository } from "./accounts.ts";
export { toAuditedCommand, createMemoryAuditLog } from "./audit.ts";
export { RunningTotal } from "./amounts.ts";
export * from "./book.ts";
export type { OpenCalls } from "./calls.ts";
export { isCalendarPeriod } from "./calendar.ts";
export { checkCommand } from "./check.ts";
export {
  rollupLevelFor,
  ROLLUP_LEVELS,
  dimensionsOf,
  type RollupLevel,
  type RowDimensions,
} from "./facts.ts";
export { fromJson, toJson } from "./json.ts";
export { createMemoryJournal, createJournalReads, type MemoryJournal } from "./memory-journal.ts";
export {
  mergeClaims,
  WINDOW_GRACE_MS,
  createMeter,
  toMeterAmount,
  type Claim,
  type Meter,
  type MeterAmount,
} from "./meter.ts";
export { keyCursor, toPage, pageSize } from "./page.ts";
export * from "./row.ts";
export * from "./rows.ts";
export { createRollup, parseRollupGroups, parseRollup, type Rollup } from "./subtotals.ts";
export * from "./totals.ts";
export { meteredUsage } from "./used.ts";
export { isTimeZone, zoneClock, type ZoneClock } from "../lib/zone.ts";
