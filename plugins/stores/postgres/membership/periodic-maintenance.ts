// Runs periodic maintenance: sequence numbers, rollups, and partitions. Any gateway can run it.
// Each task is a database function that does nothing if there is no work. A failed task is repeated
// at the next interval.
import type { RunSql } from "../connection/pipelined-connection.ts";
import { assignNumbersSoon, updateRollups } from "../read/store-reads.ts";

/**
 * Delay between writing entries and numbering them, in milliseconds. A report can cause it earlier.
 */
const NUMBERING_DELAY_MS = 250;
/**
 * If another gateway is numbering entries, this gateway waits and then checks that its own last
 * entries have numbers.
 */
const NUMBERING_RETRY_MS = 1_000;
/**
 * Interval of rollup updates, in milliseconds. Reports read entries that are newer than the rollups
 * from their rows.
 */
const ROLLUP_INTERVAL_MS = 10_000;
/** Interval of checks for next month's partitions, in milliseconds. */
const PARTITION_INTERVAL_MS = 3_600_000;

/** Interval at which meters without effect are removed, in milliseconds. */
const SWEEP_INTERVAL_MS = 60_000;
/** Number of meters of one statement, and of statements of one interval. */
const METERS_PER_SWEEP = 1_000;
const SWEEPS_PER_INTERVAL = 20;

/**
 * Creates the task that removes meters without effect. It goes on where it stopped, and begins
 * again after the last meter.
 */
function createMeterSweep(sql: RunSql, schema: string): () => Promise<void> {
  let after = "";
  return async () => {
    for (let n = 0; n < SWEEPS_PER_INTERVAL; n++) {
      const [row] = await sql({
        text: `SELECT reached FROM ${schema}.sweep_meters_1($1, $2)`,
        values: [after, METERS_PER_SWEEP],
      });
      after = row?.["reached"] ?? "";
      if (after === "") return;
    }
  };
}

export interface PeriodicMaintenance {
  start(): void;
  /** Called after rows were written. */
  onRowsWritten(): void;
  stop(): void;
}

export function createPeriodicMaintenance(sql: RunSql, schema: string): PeriodicMaintenance {
  let timers: NodeJS.Timeout[] = [];
  let numbering: NodeJS.Timeout | undefined;
  const every = (ms: number, work: () => Promise<unknown>) =>
    void timers.push(setInterval(() => void work().catch(() => undefined), ms).unref());
  const end = (): void => {
    clearTimeout(numbering);
    for (const timer of timers) clearInterval(timer);
    numbering = undefined;
    timers = [];
  };
  const written = (ms = NUMBERING_DELAY_MS): void => {
    numbering ??= setTimeout(async () => {
      numbering = undefined;
      const done = await assignNumbersSoon(sql, schema).catch(() => true);
      if (!done && timers.length > 0) written(NUMBERING_RETRY_MS);
    }, ms).unref();
  };
  return {
    start() {
      end();
      every(ROLLUP_INTERVAL_MS, () => updateRollups(sql, schema));
      every(SWEEP_INTERVAL_MS, createMeterSweep(sql, schema));
      every(PARTITION_INTERVAL_MS, () => sql({ text: `SELECT ${schema}.create_partitions_1(1)` }));
    },
    onRowsWritten: () => written(),
    stop: end,
  };
}
