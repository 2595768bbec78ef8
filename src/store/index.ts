// `tollgate/store`: the ledger rules and meters, for third-party stores and Tollgate's own stores.
// The rules perform no I/O: a store passes commands and receives results. The store's journal
// determines where rows are stored. May import lib, model, and plugin. Must not use files, a clock,
// or a database.
export type { AccountRepository } from "./accounts.ts";
export { toAuditedCommand, createMemoryAuditLog } from "./memory-journal.ts";
export * from "./ledger-rules.ts";
export type { OpenCalls } from "./open-calls.ts";
export { isCalendarPeriod } from "./meter.ts";
export { checkCommand } from "./accounts.ts";
export {
  rollupLevelFor,
  ROLLUP_LEVELS,
  dimensionsOf,
  type RollupLevel,
  type RowDimensions,
} from "./row-dimensions.ts";
export {
  createMemoryJournal,
  createJournalBackend,
  createJournalReads,
  type MemoryJournal,
} from "./memory-journal.ts";
export {
  mergeClaims,
  WINDOW_GRACE_MS,
  createMeter,
  meterId,
  needsWrite,
  toMeterAmount,
  type Claim,
  type Meter,
  type MeterAmount,
} from "./meter.ts";
export * from "./ledger-row.ts";
export * from "./row-journal.ts";
export { createRollup, parseRollupGroups, parseRollup, type Rollup } from "./rollup.ts";
export * from "./totals.ts";
export { meteredUsage } from "./metered-usage.ts";
export { decodeLineAmounts, encodeLineAmounts, isJobCall, reservedAmounts } from "./job-lines.ts";
export * from "../plugin/store/job-cursor.ts";
export * from "./job-table.ts";
export { isTimeZone, zoneClock, type ZoneClock } from "../lib/time/time-zone.ts";
export * from "./kit/archive.ts";
export * from "./kit/commit-text.ts";
export * from "./kit/column-codec.ts";
export * from "./kit/commit-text.ts";
export * from "./kit/salted-text.ts";
export * from "./kit/checkpoint.ts";
export * from "./kit/ledger-replay.ts";
export * from "./bigint-json.ts";
export * from "./kit/transfer.ts";
export * from "./kit/row-backend.ts";
export * from "./kit/row-maintenance.ts";
export * from "./kit/row-transfer.ts";
export { verifyRows } from "./kit/row-verify.ts";
