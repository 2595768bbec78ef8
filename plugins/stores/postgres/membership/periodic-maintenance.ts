// What has to be done now and again, by whichever gateway comes first: numbers, sums, partitions. Each is a function of the database that does
// nothing where there is nothing to do; one that fails is done the next time.
import type { RunSql } from "../connection/pipelined-connection.ts";
import { assignNumbersSoon, updateRollups } from "../read/store-reads.ts";

/** Entries are numbered so soon after they are written, where nothing asks for them earlier and no other gateway is at it. */
const NUMBERING_DELAY_MS = 250;
/** Where another gateway does it, this one looks once more whether its last entries were among them. */
const NUMBERING_RETRY_MS = 1_000;
/** Sums are brought up to date so often: what is newer is added from its rows. */
const ROLLUP_INTERVAL_MS = 10_000;
/** Next month's partitions are looked for so often. */
const PARTITION_INTERVAL_MS = 3_600_000;

export interface PeriodicMaintenance {
  start(): void;
  /** Rows were written. */
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
      every(PARTITION_INTERVAL_MS, () => sql({ text: `SELECT ${schema}.create_partitions_1(1)` }));
    },
    onRowsWritten: () => written(),
    stop: end,
  };
}
