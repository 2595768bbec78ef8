// tollgate/store: the book of meters, for stores of third parties as for those that come with Tollgate. Rules, no I/O: a store
// hands it commands and gets verdicts; where rows are kept is a journal's matter.
// May import: lib, model, plugin. May not: a file, a clock, a database.
export type { AccountShelf } from "./accounts.ts";
export { auditedAs, auditInMemory } from "./audit.ts";
export { Amounts } from "./amounts.ts";
export * from "./book.ts";
export type { OpenCalls } from "./calls.ts";
export { isCalendar } from "./calendar.ts";
export { checkCommand } from "./check.ts";
export { depthOf, DEPTHS, factsOf, type Depth, type RowFacts } from "./facts.ts";
export { fromJson, toJson } from "./json.ts";
export { createMemoryJournal, journalReads, type MemoryJournal } from "./memory-journal.ts";
export { claimed, KEPT_MS, newMeter, taking, type Claim, type Meter, type Taken } from "./meter.ts";
export { keyCursor, pageOf, pageSize } from "./page.ts";
export * from "./row.ts";
export * from "./rows.ts";
export { createSubtotals, groupsOf, readSubtotals, type Subtotals } from "./subtotals.ts";
export * from "./totals.ts";
export { used } from "./used.ts";
export { isZone, zoneClock, type ZoneClock } from "../lib/zone.ts";
