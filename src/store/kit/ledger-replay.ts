// Replays rows in order, to compute the open calls and the counts of calendar windows.
import type { Problem, TransferredMeter } from "../../plugin/index.ts";
import type { RetainedJob } from "./checkpoint.ts";
import { createMeter, isSumOfRows, WINDOW_GRACE_MS, type MeterAmount } from "../meter.ts";
import type { LedgerRow } from "../ledger-row.ts";
import {
  changeLineAmounts,
  isJobCall,
  reservedAmounts,
  returnedToJob,
  settledUsage,
} from "../job-lines.ts";

/** A call that is open at this point of the ledger, with data of the store. */
export interface ReplayedCall<Data> {
  readonly meterAmounts: readonly MeterAmount[];
  readonly data: Data;
  /** For a job's own call: amounts that its lines took, in the order of `meterAmounts`. */
  lineAmounts?: readonly bigint[] | undefined;
}

/** Replays the rows of a ledger. */
export class LedgerReplay<Data> {
  /** Open calls by attempt. */
  readonly open = new Map<string, ReplayedCall<Data>>();
  /** Usage of calendar windows, by meter. */
  readonly windows: Map<string, bigint>;
  /** Amounts that the lines of open jobs took in the rows of a checkpoint. */
  readonly #retainedLines: ReadonlyMap<string, readonly bigint[]>;

  /**
   * Starts where a checkpoint ends.
   * @param windows Usage of calendar windows in the checkpoint.
   * @param jobs Jobs that were open at its end.
   */
  constructor(
    windows: Iterable<readonly [id: string, level: string]> = [],
    jobs: readonly RetainedJob[] = [],
  ) {
    this.#retainedLines = new Map(
      jobs.map(([attempt, amounts]) => [attempt, amounts.map(BigInt)] as const),
    );
    this.windows = new Map(Array.from(windows, ([id, level]) => [id, BigInt(level)] as const));
  }

  reserve(row: LedgerRow, data: Data): void {
    const { attempt, meterAmounts } = row;
    this.open.set(attempt, { meterAmounts, data });
    const job = this.#jobOf(row);
    if (job)
      job.lineAmounts = changeLineAmounts(
        job,
        meterAmounts.map(([, amount]) => amount),
      );
  }

  /** Opens a call whose reserve is retained. Its job, if any, already counts its amounts. */
  retain({ attempt, meterAmounts }: LedgerRow, data: Data): void {
    const lineAmounts = this.#retainedLines.get(attempt);
    this.open.set(attempt, { meterAmounts, data, lineAmounts });
  }

  /** Returns the jobs that are open, for a checkpoint. */
  openJobs(): RetainedJob[] {
    return [...this.open].flatMap(([attempt, { lineAmounts }]) =>
      lineAmounts ? [[attempt, lineAmounts.map(String)] as const] : [],
    );
  }

  /** Closes a call. Returns undefined if the call is not open. */
  settle(row: LedgerRow): ReplayedCall<Data> | undefined {
    const call = this.open.get(row.attempt);
    if (!call) return undefined;
    this.open.delete(row.attempt);
    const job = this.#jobOf(row);
    const returned: bigint[] = [];
    for (const [id, amount] of reservedAmounts(call)) {
      const used = settledUsage(row, createMeter(id).unit, amount, row);
      if (job) returned.push(-returnedToJob(row.state, amount, used));
      this.#count(id, used);
    }
    if (job) job.lineAmounts = changeLineAmounts(job, returned);
    return call;
  }

  /** Returns the open call of a line's job. */
  #jobOf(row: LedgerRow): ReplayedCall<Data> | undefined {
    return row.job === undefined || isJobCall(row) ? undefined : this.open.get(row.job);
  }

  /** Adds a correction. `reserve`: the reserve of its call. */
  adjust(
    { costNano }: LedgerRow,
    reserve: { readonly meterAmounts: readonly MeterAmount[] } | undefined,
  ): void {
    for (const [id] of reserve?.meterAmounts ?? [])
      if (createMeter(id).unit === "nano_usd") this.#count(id, costNano ?? 0n);
  }

  /** Returns the usage of the windows that count at `at`. Meters of other windows are dropped. */
  liveWindows(at: number): (readonly [id: string, level: bigint])[] {
    return [...this.windows].filter(
      ([id, level]) => level !== 0n && createMeter(id).end + WINDOW_GRACE_MS >= at,
    );
  }

  /**
   * Compares stored meters with the usage in the rows. Called after all rows were added.
   * @param latest Time of the newest row.
   */
  *verifyWindows(
    meters: Iterable<Pick<TransferredMeter, "id" | "level">>,
    latest: number,
    now: number,
  ): Generator<Problem, void> {
    const found = new Set<string>();
    for (const { id, level } of meters) {
      found.add(id);
      const meter = createMeter(id);
      // The meter of a window that ended long ago may have been dropped, and restarted when the
      // clock was set back.
      // An operator may have reset a member, which no row contains.
      if (meter.member || !isSumOfRows(meter) || meter.end + WINDOW_GRACE_MS < latest) continue;
      const sum = this.windows.get(id) ?? 0n;
      if (level !== sum)
        yield {
          path: `/meter/${id}`,
          message: `The meter counts ${level}, but its entries sum up to ${sum}.`,
        };
    }
    // The meter of a current window is never dropped.
    for (const [id, sum] of this.liveWindows(Math.max(latest, now)))
      if (!found.has(id))
        yield {
          path: `/meter/${id}`,
          message: `The meter is missing, but its entries sum up to ${sum}.`,
        };
  }

  /**
   * Returns the part of the meters' usage that does not come from the rows: the usage of compacted
   * rows.
   */
  compactedWindows(
    meters: readonly Pick<TransferredMeter, "id" | "level">[],
  ): (readonly [id: string, level: string])[] {
    return meters.flatMap(({ id, level }) => {
      const before = level - (this.windows.get(id) ?? 0n);
      return isSumOfRows(createMeter(id)) && before !== 0n ? [[id, String(before)] as const] : [];
    });
  }

  #count(id: string, amount: bigint): void {
    if (isSumOfRows(createMeter(id))) this.windows.set(id, (this.windows.get(id) ?? 0n) + amount);
  }
}
