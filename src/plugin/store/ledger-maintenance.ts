// Maintenance of a ledger: backup, restore, archive, pruning, and erasure of personal data. All
// functions are optional. A command for an unsupported operation reports that the store does not
// support it.
import type { Usage } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { Problem } from "../problem.ts";

/**
 * Maintenance operations of a store. The host calls them for an operator's commands and for
 * `ledger: { retention }`, in the process that owns the store, while batches are written. No
 * operation may delay a batch for long.
 *
 * Each operation is independent, so a store implements only those that it supports. If an operation
 * throws, the error is the result of the command. A fault is reported with its own message.
 */
export interface LedgerMaintenance {
  /**
   * Writes all stored data, as one snapshot, into `file`. The file exists, is empty, and belongs to
   * the host. It is called for `tollgate backup`. If it rejects, the host deletes the file.
   */
  backup?(file: string): Promise<LedgerBackup>;
  /**
   * Restores a backup to the location from which `open` reads. It is called before `open`, on an
   * empty store. If the store is not empty, it rejects as `conflict`. The backup is verified first.
   * If it was altered, the call rejects as `invalid` and nothing is restored.
   */
  restore?(file: string): Promise<LedgerBackup>;
  /**
   * Writes all rows up to those that began at `before` into `file`, compressed, with a proof that
   * can be verified without the ledger. It is called for `tollgate ledger archive`, and before a
   * prune that requires an archive.
   */
  archive?(file: string, of: ArchiveRequest): Promise<ArchiveInfo>;
  /**
   * Reads an archive without the ledger, and returns its inconsistencies.
   * `tollgate ledger archive --verify` calls it, also before `open`.
   */
  readArchive?(file: string): Promise<ArchiveInfo & { readonly problems: readonly Problem[] }>;
  /**
   * Returns the rows that `prune` would remove and the obstacles to pruning. Does not change the
   * ledger.
   */
  planPrune?(before: number): Promise<PrunePlan>;
  /**
   * Replaces all rows from before `before` with rollups, up to the oldest open call. Totals,
   * budgets, and the proof do not change. It works in short steps between batches. `progress` is
   * called after each step and never throws. After a crash, the next `prune` continues where it
   * stopped.
   */
  prune?(before: number, progress?: (of: PruneProgress) => void): Promise<PruneResult>;
  /**
   * Returns the current state of the ledger. It must be fast, because `tollgate status` and other
   * displays call it.
   */
  readState?(): Promise<LedgerState>;
  /**
   * Permanently erases personal data from all stored data. The rows are kept, and the erased text
   * is replaced by "erased". The erasure is durable when the promise resolves. It is not an error
   * if nothing matches.
   */
  erase?(what: ErasureRequest): Promise<ErasureResult>;
  /**
   * Advice for operators about operations that the store does not implement, in one sentence each.
   * The advice is the result of the command.
   */
  readonly alternatives?: Opt<{
    readonly [K in "backup" | "restore" | "archive" | "prune" | "state" | "erase"]?: Opt<string>;
  }>;
}

/**
 * Data to erase. `hashes` of an earlier `ErasureResult` erase the same texts from an older copy of
 * the ledger.
 */
export type ErasureRequest =
  | { readonly label: { readonly name: string; readonly value: string } }
  /** Erases the name of the key, its own labels, and the labels of all its rows. */
  | { readonly key: string }
  /** Erases the name and the labels of the account itself. Rows have only the labels of keys. */
  | { readonly account: string }
  | { readonly hashes: readonly string[] };

/** Erased data, in a form that does not reveal it. */
export interface ErasureResult {
  /** Hashes of the erased texts. Pass them to `erase` to erase the same texts from an older copy. */
  readonly hashes: readonly string[];
}

/** Sum of all settled calls of some rows. */
export interface LedgerSum {
  /** Number of settled calls. */
  readonly calls: number;
  /** Units that the calls used. */
  readonly usage: Usage;
  /** Total cost in billionths of a US dollar, without calls that have no known price. */
  readonly costNano: bigint;
  /** Number of calls without a known price. */
  readonly unpriced: number;
}

/** Summary of a complete ledger in one snapshot. */
export interface LedgerBackup {
  /**
   * `seq` and hash of the newest row. The hash remains part of the ledger as it grows. Unset if the
   * store keeps no hashes.
   */
  readonly head?: Opt<{ readonly seq: number; readonly hash: string }>;
  /** Sum of all settled calls. */
  readonly total: LedgerSum;
  /** Hashes of all erased texts, as in `ErasureResult`. */
  readonly erasedHashes: readonly string[];
}

/** Rows that an archive contains. */
export interface ArchiveRequest {
  /** End of the archived period, not included, in Unix milliseconds. */
  readonly before: number;
  /** Whether the archive contains the values of labels. */
  readonly labels: boolean;
}

/** Summary of an archive. */
export interface ArchiveInfo {
  /** Number of rows. */
  readonly rows: number;
  /** Time of the first row, in Unix milliseconds. Unset if there is none. */
  readonly from?: Opt<number>;
  /** Time of the last row, in Unix milliseconds. Unset if there is none. */
  readonly to?: Opt<number>;
  /** Hash of the ledger row before the first archived row. */
  readonly previousHash: string;
  /** Hash of the last archived row. */
  readonly lastHash: string;
  /** Sum of all settled calls in the archive. */
  readonly total: LedgerSum;
}

/** Rows that `prune` would remove. */
export interface PrunePlan {
  /** Number of rows that would be removed. */
  readonly rows: number;
  /** Estimate of the storage that is freed, in bytes. */
  readonly bytes: number;
  /** Estimate of the duration, in milliseconds. */
  readonly ms: number;
  /** Time of the first row to remove, in Unix milliseconds. Unset if there is none. */
  readonly from?: Opt<number>;
  /** Time of the last row to remove, in Unix milliseconds. Unset if there is none. */
  readonly to?: Opt<number>;
  /** The oldest open call, if it prevents rows from being removed. */
  readonly open?: Opt<{ readonly attempt: string; readonly at: number }>;
}

/** Progress of a prune. */
export interface PruneProgress {
  /** Number of rows that have been removed. */
  readonly rows: number;
  /** Number of rows to remove in total. */
  readonly total: number;
}

/** Result of a prune. */
export interface PruneResult {
  /** Number of rows that were removed. */
  readonly rows: number;
  /** Bytes of storage that were freed. */
  readonly bytes: number;
  /** Longest time that a step delayed batches, in milliseconds. */
  readonly longestStepMs: number;
  /**
   * Time of the oldest row that is kept, in Unix milliseconds. Earlier rows were replaced by
   * rollups. Unset if nothing was ever pruned.
   */
  readonly rowsSince?: Opt<number>;
}

/** Size and age of a ledger. */
export interface LedgerState {
  /** Size of the ledger, in bytes. */
  readonly bytes: number;
  /**
   * Time at which the oldest existing row was written, in Unix milliseconds. Unset if there is
   * none.
   */
  readonly oldestAt?: Opt<number>;
  /** Number of rows that rollups have replaced since the beginning. */
  readonly prunedRows: number;
  /** Time of the last prune, in Unix milliseconds. */
  readonly prunedAt?: Opt<number>;
}

/** Storage that a store uses. Members that it does not know are unset. */
export interface StoreSize {
  /** Size of the ledger at its location, in bytes. */
  bytes?: Opt<number>;
  /** Disk space that is still available for the ledger, in bytes. */
  freeBytes?: Opt<number>;
  /** Time of the oldest row, in Unix milliseconds. */
  oldestAt?: Opt<number>;
}
