// tollgate/store: the book of meters, for stores of third parties as for those that come with Tollgate. Rules, no I/O: a store
// hands it commands and gets verdicts; where rows are kept is a journal's matter.
// May import: lib, model, plugin. May not: a file, a clock, a database.
export type { AccountRepository } from "./accounts.ts";
export { toAuditedCommand, createMemoryAuditLog } from "./memory-audit-log.ts";
export { RunningTotal } from "./running-total.ts";
export * from "./ledger-rules.ts";
export type { OpenCalls } from "./open-calls.ts";
export { isCalendarPeriod } from "./calendar-window.ts";
export { checkCommand } from "./check-command.ts";
export {
  rollupLevelFor,
  ROLLUP_LEVELS,
  dimensionsOf,
  type RollupLevel,
  type RowDimensions,
} from "./row-dimensions.ts";
export { fromJson, toJson } from "./bigint-json.ts";
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
export * from "./ledger-row.ts";
export * from "./row-journal.ts";
export { createRollup, parseRollupGroups, parseRollup, type Rollup } from "./rollup.ts";
export * from "./totals.ts";
export { meteredUsage } from "./metered-usage.ts";
export { isTimeZone, zoneClock, type ZoneClock } from "../lib/time/time-zone.ts";
