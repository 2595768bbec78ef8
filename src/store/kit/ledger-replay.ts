// Replays rows in order to find what they leave: the calls that are open, and what calendar windows
// have counted.
import { isCalendarPeriod, createMeter, WINDOW_GRACE_MS, type MeterAmount } from "../meter.ts";
import type { LedgerRow } from "../ledger-row.ts";
import { meteredUsage } from "../metered-usage.ts";

/** A call that is open at this point of the ledger, with data of the store. */
export interface ReplayedCall<Data> {
  readonly meterAmounts: readonly MeterAmount[];
  readonly data: Data;
}

/** Replays the rows of a ledger. */
export class LedgerReplay<Data> {
  /** Open calls by attempt. */
  readonly open = new Map<string, ReplayedCall<Data>>();
  /** Usage of calendar windows, by meter. */
  readonly windows: Map<string, bigint>;

  /**
   * Starts where a checkpoint ends.
   * @param windows Usage of calendar windows in the checkpoint.
   */
  constructor(windows: Iterable<readonly [id: string, level: string]> = []) {
    this.windows = new Map(Array.from(windows, ([id, level]) => [id, BigInt(level)] as const));
  }

  reserve({ attempt, meterAmounts }: LedgerRow, data: Data): void {
    this.open.set(attempt, { meterAmounts, data });
  }

  /** Closes a call. Returns undefined if the call is not open. */
  settle(row: LedgerRow): ReplayedCall<Data> | undefined {
    const call = this.open.get(row.attempt);
    if (!call) return undefined;
    this.open.delete(row.attempt);
    for (const [id, amount] of call.meterAmounts)
      this.#count(id, meteredUsage(createMeter(id).unit, amount, row));
    return call;
  }

  /** Adds a correction. `reserve` is the reserve of its call. */
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

  #count(id: string, amount: bigint): void {
    if (isCalendarPeriod(createMeter(id).per))
      this.windows.set(id, (this.windows.get(id) ?? 0n) + amount);
  }
}
