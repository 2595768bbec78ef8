// How a ledger moves from one kind of store to another: one gives what it keeps in pieces, the other takes them in and goes on with a chain of its own,
// anchored at the hash of the one before.
import type { Price } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import type { Opt } from "../model/values.ts";
import type { AccountRecord } from "./account.ts";
import type { AuditEnd, AuditEntry } from "./audit.ts";
import type { KeyRecord } from "./key.ts";
import type { Entry, Total } from "./entry.ts";

/** The part of a store that can be moved. Everything in it is called for `tollgate store copy`, and before `open`. */
export interface LedgerMoving {
  /** On the store that is left. Gateways may be open on it. */
  out(): Promise<MovedOut>;
  /** On the store that is moved into: empty, or where a move into it was interrupted. Until that is finished, `open` refuses it. */
  in(): Promise<MovedIn>;
}

/** A ledger that gives itself away. */
export interface MovedOut extends AsyncDisposable {
  /** Some rows behind a place; 0: from the beginning. A settle never comes without its reserve before it. */
  rows(after: number): Promise<MovedRows>;
  /** From now on no gateway writes to it. Rejects as `conflict`, with the code `in_use`, while a gateway does. */
  quiet(): Promise<void>;
  /** All that is no row, once it is quiet. */
  rest(): Promise<MovedRest>;
}

/** A ledger that is filled. */
export interface MovedIn extends AsyncDisposable {
  /** The place behind which rows are missing. */
  readonly after: number;
  /** Durable when it resolves, with its place. */
  take(rows: MovedRows): Promise<void>;
  /**
   * Takes the rest, compares what its own rows come to with what the other store's come to, and is a ledger from then on. What differs is rejected
   * as `invalid`, and it stays what it was. `head`: the newest hash of its own chain.
   */
  finish(
    rest: MovedRest,
  ): Promise<{ readonly head: Opt<string>; readonly totals: readonly Total[] }>;
}

/** A page of rows, in the order of the ledger. */
export interface MovedRows {
  /** Rows of this page. */
  readonly rows: readonly MovedRow[];
  /** The place behind them. */
  readonly next: number;
  /** Whether rows follow after this page. */
  readonly more: boolean;
}

/** A row on its way: as a listing says it, with what its call took of meters, by their names. */
export interface MovedRow extends Omit<Entry, "seq"> {
  /** Meters that the call counted against, and the amount taken from each. */
  readonly taken: readonly (readonly [meter: string, amount: bigint])[];
}

/** All that a ledger keeps besides its rows. */
export interface MovedRest {
  /** All keys, including revoked keys. */
  readonly keys: readonly KeyRecord[];
  /** All accounts of the store, including ended accounts. */
  readonly accounts: readonly AccountRecord[];
  /** Price rows, by hash. */
  readonly prices: readonly (readonly [hash: string, price: Price])[];
  /** What operators did, the oldest first. */
  readonly audit: readonly (readonly [AuditEntry, AuditEnd | undefined])[];
  /** Counts of all limits. */
  readonly meters: readonly MovedMeter[];
  /** What was last heard of calls that are open. */
  readonly heard: readonly (readonly [attempt: string, usage: Usage, costNano: bigint | null])[];
  /** Values that were decided once for all instances. */
  readonly shared: readonly (readonly [name: string, value: Uint8Array])[];
  /** Sums that stand for rows that are gone, by quarters of an hour; absent: nothing was pruned. */
  readonly pruned?: Opt<MovedSums>;
  /** The newest hash of its chain; absent: it keeps none. */
  readonly head?: Opt<string>;
  /** What all that was settled comes to, by key, model, state and price. */
  readonly totals: readonly Total[];
}

/** What a meter has counted: as the book of `tollgate/store` has it. */
export interface MovedMeter {
  /** ID of the meter: unit, window, start, and scope. */
  readonly id: string;
  /** Rate: fill level of the bucket. Window: units used. */
  readonly level: bigint;
  /** Time at which `level` was correct, in Unix milliseconds. */
  readonly at: number;
  /** Limit that was claimed last. */
  readonly max: bigint;
  /** Level up to which threshold notices were delivered. */
  readonly told: bigint;
}

/** Sums in the place of rows; `text` as `createSubtotals` of `tollgate/store` writes it. */
export interface MovedSums {
  /** Number of rows that the sums replace. */
  readonly rows: number;
  /** Time of the first replaced row, in Unix milliseconds. */
  readonly since: number;
  /** Time of the last replaced row, in Unix milliseconds. */
  readonly till: number;
  /** Sums, by quarter of an hour. */
  readonly sums: readonly (readonly [quarter: number, text: string])[];
}
