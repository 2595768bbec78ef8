// The interface between a store that keeps complete rows and the kit, which implements retention,
// archives, erasure, verification, and transfer for it.
import type {
  AccountRecord,
  AuditLog,
  HeadersOut,
  JobStore,
  KeyRecord,
  Price,
  TransferredMeter,
  TransferredRemainder,
} from "../../plugin/index.ts";
import type { LedgerRow, Progress } from "../ledger-row.ts";
import type { CheckpointBase, CheckpointRollup, RetainedJob } from "./checkpoint.ts";

/** A row with its number in the ledger. */
export type NumberedRow = readonly [seq: number, row: LedgerRow];

/** The checkpoint of a store that keeps complete rows. */
export interface RowCheckpoint extends CheckpointBase {
  /** Number of the last compacted row, and the chain hash after it. */
  readonly last: number;
  readonly hash: string;
  /** Hash of the last rollup. */
  readonly rollupHash: string;
  /** Numbers of compacted reserves that are kept because later rows refer to their calls. */
  readonly retained: readonly number[];
  /** Usage of calendar windows in the compacted rows, by meter. */
  readonly windows: readonly (readonly [id: string, level: string])[];
  /** Jobs that were open at that time. Unset if there were none. */
  readonly jobs?: readonly RetainedJob[] | undefined;
}

/** The state of a ledger that follows from its rows up to `head`. */
export interface LedgerSnapshot {
  /** Number of the newest row. */
  readonly head: number;
  /** Open calls, with their last progress. */
  readonly openCalls: ReadonlyMap<string, Progress | undefined>;
  readonly meters: readonly TransferredMeter[];
}

/** Access to the data of a store that keeps complete rows. Each call is one atomic step. */
export interface LedgerBackend {
  /** A random value that the ledger keeps. Hashes of texts are salted with it. */
  readonly secret: string;
  /** Yields the rows after `after` by number. Retained reserves come first. */
  scanRows(after: number): AsyncIterable<NumberedRow> | Iterable<NumberedRow>;
  /** Returns the newest row, the open calls, and the meters, all at the same moment. */
  readSnapshot(): Promise<LedgerSnapshot>;
  isOpen(attempt: string): Promise<boolean> | boolean;
  /** Returns the reserve of a call, if the ledger still has it. */
  readReserve(attempt: string): Promise<LedgerRow | undefined>;
  /** Returns the given calls that have rows after `after`. */
  findContinued(attempts: readonly string[], after: number): Promise<ReadonlySet<string>>;
  /** Size of the ledger in bytes. */
  readBytes(): Promise<number>;
  readCheckpoint(): Promise<RowCheckpoint | undefined>;
  /** Returns all rollups, in order. */
  readRollups(): Promise<readonly CheckpointRollup[]>;
  /**
   * Stores a checkpoint, adds rollups, and deletes the rows up to `checkpoint.last`, except for
   * retained rows. Returns false and changes nothing if a correction was written after row `head`.
   */
  putCheckpoint(
    checkpoint: RowCheckpoint,
    rollups: readonly CheckpointRollup[],
    head: number,
  ): Promise<boolean>;
  /** Replaces the labels of a row, and of its call if it is open. */
  setLabels(seq: number, labels: HeadersOut): Promise<void>;
  readKeys(): Promise<readonly KeyRecord[]>;
  readAccounts(): Promise<readonly AccountRecord[]>;
  putKey(record: KeyRecord): Promise<void>;
  putAccount(record: AccountRecord): Promise<void>;
}

/** Additional access to a store whose ledger can be moved. Each call is one atomic step. */
export interface TransferBackend extends LedgerBackend {
  /** The audit log, if the store keeps one. */
  readonly audit?: AuditLog | undefined;
  /** The records of jobs, if the store keeps them. */
  readonly jobs?: JobStore | undefined;
  readPrices(): Promise<readonly (readonly [hash: string, price: Price])[]>;
  /** Returns the values that were decided once for all instances. */
  readShared(): Promise<TransferredRemainder["shared"]>;
  /**
   * Stops all writes until the returned lock is disposed. Rejects as `conflict` with the code
   * `in_use` while a gateway writes.
   */
  stopWrites(): Promise<AsyncDisposable>;
  /**
   * Begins an import or continues one, and returns its position. Rejects as `conflict` with the
   * code `not_empty` if the store contains a ledger.
   */
  beginImport(): Promise<number>;
  /** Writes rows that the store does not have, and the position `next`. */
  importRows(rows: readonly LedgerRow[], next: number): Promise<void>;
  /**
   * Writes all data except rows, rollups, and the audit log. Meters are written first, and then the
   * amounts that open calls reserve.
   */
  importRemainder(rest: TransferredRemainder): Promise<void>;
  /** Turns the import into a ledger. */
  finishImport(): Promise<void>;
}
