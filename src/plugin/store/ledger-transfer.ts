// Transfer of a ledger from one kind of store to another. One store exports its content in pieces.
// The other store imports them and continues with its own hash chain, which starts at the last hash
// of the exported ledger.
import type { Price } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { AccountRecord, KeyRecord } from "./account.ts";
import type { AuditEnd, AuditEntry } from "./audit.ts";
import type { JobRecord } from "./job.ts";
import type { LedgerEntry, LedgerTotal } from "./ledger-entry.ts";

/**
 * The part of a store that can be moved. `tollgate store copy` calls the functions below, before
 * `open`.
 */
export interface LedgerTransfer {
  /** Opens the export on the store that is left. Gateways may have this store open. */
  openExport(): Promise<LedgerExport>;
  /**
   * Opens the import on the new store. The store must be empty or contain an interrupted import.
   * `open` rejects the store until the import is finished.
   */
  openImport(): Promise<LedgerImport>;
}

/** A ledger that is being exported. */
export interface LedgerExport extends AsyncDisposable {
  /**
   * Returns a page of rows after a position. 0 starts at the beginning. A settle row never precedes
   * its reserve row.
   */
  readRows(after: number): Promise<TransferredRows>;
  /**
   * Stops all writes. No gateway writes to the store after that. Rejects as `conflict` with the
   * code `in_use` while a gateway is writing.
   */
  stopWrites(): Promise<void>;
  /** Returns all data except the rows. Called after writes were stopped. */
  readRemainder(): Promise<TransferredRemainder>;
}

/** A ledger that is being imported. */
export interface LedgerImport extends AsyncDisposable {
  /** Position after which rows are missing. */
  readonly after: number;
  /** Writes a page of rows. The rows and their position are durable when the promise resolves. */
  writeRows(rows: TransferredRows): Promise<void>;
  /**
   * Writes the remainder, compares the totals of the imported rows with the totals of the other
   * store, and turns the import into a ledger. If the totals differ, it rejects as `invalid`, and
   * the import remains unfinished. `head` is the newest hash of that chain.
   */
  finish(
    rest: TransferredRemainder,
  ): Promise<{ readonly head: Opt<string>; readonly totals: readonly LedgerTotal[] }>;
}

/** A page of rows, in the order of the ledger. */
export interface TransferredRows {
  /** Rows of this page. */
  readonly rows: readonly TransferredRow[];
  /** Position after the rows of this page. */
  readonly next: number;
  /** Whether rows follow after this page. */
  readonly more: boolean;
}

/**
 * A row in transfer: its listed form, with the amounts that its call took from meters, by meter
 * name.
 */
export interface TransferredRow extends Omit<LedgerEntry, "seq"> {
  /** Meters that the call counted against, and the amount taken from each. */
  readonly meterAmounts: readonly (readonly [meter: string, amount: bigint])[];
}

/** All data of a ledger except its rows. */
export interface TransferredRemainder {
  /** All keys, including revoked keys. */
  readonly keys: readonly KeyRecord[];
  /** All accounts of the store, including closed accounts. */
  readonly accounts: readonly AccountRecord[];
  /** Price rows, by hash. */
  readonly prices: readonly (readonly [hash: string, price: Price])[];
  /** Audit log entries, the oldest first. */
  readonly audit: readonly (readonly [AuditEntry, AuditEnd | undefined])[];
  /** Counts of all limits. */
  readonly meters: readonly TransferredMeter[];
  /** Last reported progress of calls that are open. */
  readonly lastProgress: readonly (readonly [
    attempt: string,
    usage: Usage,
    costNano: bigint | null,
  ])[];
  /** Records of jobs. Unset if the store keeps no jobs. */
  readonly jobs?: Opt<readonly JobRecord[]>;
  /** Values that were decided once for all instances, such as the secret that they share. */
  readonly shared: readonly (readonly [name: string, value: Uint8Array])[];
  /** Rollups that replace pruned rows, by quarter of an hour. Unset if nothing was pruned. */
  readonly rollups?: Opt<TransferredRollups>;
  /** Newest hash of the chain. Unset if the store keeps no jobs. */
  readonly head?: Opt<string>;
  /** Sums of all settled calls, by key, model, state, and price. */
  readonly totals: readonly LedgerTotal[];
}

/** Usage counted by one meter, as the ledger rules of `tollgate/store` define it. */
export interface TransferredMeter {
  /** ID of the meter: unit, window, start, and scope. */
  readonly id: string;
  /** Rate: fill level of the bucket. Window: units used. */
  readonly level: bigint;
  /** Time at which `level` was correct, in Unix milliseconds. */
  readonly at: number;
  /** Limit that was claimed last. */
  readonly max: bigint;
  /** Level up to which threshold notices were delivered. */
  readonly notifiedLevel: bigint;
}

/** Sums that replace rows, with `text` as `createSubtotals` of `tollgate/store` writes it. */
export interface TransferredRollups {
  /** Number of rows that the sums replace. */
  readonly rows: number;
  /** Time of the first replaced row, in Unix milliseconds. */
  readonly since: number;
  /** Time of the last replaced row, in Unix milliseconds. */
  readonly until: number;
  /** Sums, by quarter of an hour. */
  readonly sums: readonly (readonly [quarter: number, text: string])[];
}
