// How a ledger moves from one kind of store to another: one gives what it keeps in pieces, the other takes them in and goes on with a chain of its own,
// anchored at the hash of the one before.
import type { Price } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { AccountRecord } from "./account.ts";
import type { AuditEnd, AuditEntry } from "./audit.ts";
import type { KeyRecord } from "./key.ts";
import type { LedgerEntry, LedgerTotal } from "./ledger-entry.ts";

/** The part of a store that can be moved. Everything in it is called for `tollgate store copy`, and before `open`. */
export interface LedgerTransfer {
  /** On the store that is left. Gateways may be open on it. */
  openExport(): Promise<LedgerExport>;
  /** On the store that is moved into: empty, or where a move into it was interrupted. Until that is finished, `open` refuses it. */
  openImport(): Promise<LedgerImport>;
}

/** A ledger that gives itself away. */
export interface LedgerExport extends AsyncDisposable {
  /** Some rows behind a place; 0: from the beginning. A settle never comes without its reserve before it. */
  readRows(after: number): Promise<TransferredRows>;
  /** From now on no gateway writes to it. Rejects as `conflict`, with the code `in_use`, while a gateway does. */
  stopWrites(): Promise<void>;
  /** All that is no row, once it is quiet. */
  readRemainder(): Promise<TransferredRemainder>;
}

/** A ledger that is filled. */
export interface LedgerImport extends AsyncDisposable {
  /** The place behind which rows are missing. */
  readonly after: number;
  /** Durable when it resolves, with its place. */
  writeRows(rows: TransferredRows): Promise<void>;
  /**
   * Takes the rest, compares what its own rows come to with what the other store's come to, and is a ledger from then on. What differs is rejected
   * as `invalid`, and it stays what it was. `head`: the newest hash of its own chain.
   */
  finish(
    rest: TransferredRemainder,
  ): Promise<{ readonly head: Opt<string>; readonly totals: readonly LedgerTotal[] }>;
}

/** A page of rows, in the order of the ledger. */
export interface TransferredRows {
  /** Rows of this page. */
  readonly rows: readonly TransferredRow[];
  /** The place behind them. */
  readonly next: number;
  /** Whether rows follow after this page. */
  readonly more: boolean;
}

/** A row on its way: as a listing says it, with what its call took of meters, by their names. */
export interface TransferredRow extends Omit<LedgerEntry, "seq"> {
  /** Meters that the call counted against, and the amount taken from each. */
  readonly meterAmounts: readonly (readonly [meter: string, amount: bigint])[];
}

/** All that a ledger keeps besides its rows. */
export interface TransferredRemainder {
  /** All keys, including revoked keys. */
  readonly keys: readonly KeyRecord[];
  /** All accounts of the store, including ended accounts. */
  readonly accounts: readonly AccountRecord[];
  /** Price rows, by hash. */
  readonly prices: readonly (readonly [hash: string, price: Price])[];
  /** What operators did, the oldest first. */
  readonly audit: readonly (readonly [AuditEntry, AuditEnd | undefined])[];
  /** Counts of all limits. */
  readonly meters: readonly TransferredMeter[];
  /** What was last heard of calls that are open. */
  readonly lastProgress: readonly (readonly [
    attempt: string,
    usage: Usage,
    costNano: bigint | null,
  ])[];
  /** Values that were decided once for all instances. */
  readonly shared: readonly (readonly [name: string, value: Uint8Array])[];
  /** Sums that stand for rows that are gone, by quarters of an hour; absent: nothing was pruned. */
  readonly rollups?: Opt<TransferredRollups>;
  /** The newest hash of its chain; absent: it keeps none. */
  readonly head?: Opt<string>;
  /** What all that was settled comes to, by key, model, state and price. */
  readonly totals: readonly LedgerTotal[];
}

/** What a meter has counted: as the book of `tollgate/store` has it. */
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

/** Sums in the place of rows; `text` as `createSubtotals` of `tollgate/store` writes it. */
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
