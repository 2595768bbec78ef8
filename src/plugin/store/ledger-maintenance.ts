// What becomes of a ledger over the years: it is copied, put back, archived, cut, and a person is taken out of it. A store may do
// without any of this; the command then says what this store cannot.
import type { Usage } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { Problem } from "../problem.ts";

/**
 * Called by the host for an operator's commands and for `ledger: { retention }`, in the process that owns the store, while batches go on:
 * none of it may keep a batch waiting for long. Each of them stands for itself: a store offers those that it can do. What one throws
 * is the command's answer, a fault in its own words.
 */
export interface LedgerMaintenance {
  /**
   * Writes all that the store keeps, as of one moment, into `file`, which is there, is empty and is the host's own. Called for
   * `tollgate backup`. A rejection leaves a file that the host throws away.
   */
  backup?(file: string): Promise<LedgerBackup>;
  /**
   * Puts such a copy where `open` will find it. Called before `open`, on a store that has nothing; where there is something, it
   * rejects as `conflict`. The copy is looked through first: what is not as it was written is rejected as `invalid`, and nothing is put anywhere.
   */
  restore?(file: string): Promise<LedgerBackup>;
  /**
   * Writes all rows up to those that began at `before` into `file`, compressed, with a proof that needs no ledger. Called for
   * `tollgate ledger archive`, and before a prune that asks for it.
   */
  archive?(file: string, of: ArchiveRequest): Promise<ArchiveInfo>;
  /** Reads an archive alone, and says what of it cannot be true. Called before `open` too, by `tollgate ledger archive --verify`. */
  readArchive?(file: string): Promise<ArchiveInfo & { readonly problems: readonly Problem[] }>;
  /** What `prune` would do, and what is in its way. Changes nothing. */
  planPrune?(before: number): Promise<PrunePlan>;
  /**
   * Puts sums in the place of all rows from before `before`, as far as no open call began there. Sums, budgets and the proof stay what they
   * were. In short steps between batches; `progress` is called after each and never throws. After a crash the next call goes on.
   */
  prune?(before: number, progress?: (of: PruneProgress) => void): Promise<PruneResult>;
  /** What there is now, cheaply: asked by `tollgate status` and by whatever shows it. */
  readState?(): Promise<LedgerState>;
  /**
   * Takes text that a person may be known by out of everything that is kept, for good: rows stay, and what they say in its place is
   * "erased". Durable when it resolves. Nothing that fits is no error.
   */
  erase?(what: ErasureRequest): Promise<ErasureResult>;
  /** Of what it leaves out: what an operator does in its place, a sentence each. It is the command's answer. */
  readonly alternatives?: Opt<{
    readonly [K in "backup" | "restore" | "archive" | "prune" | "state" | "erase"]?: Opt<string>;
  }>;
}

/** What is taken out. `values`: what an earlier `Erased` gave, for a copy of the ledger from before that. */
export type ErasureRequest =
  | { readonly label: { readonly name: string; readonly value: string } }
  /** The key's name, its own labels, and the labels of all its rows. */
  | { readonly key: string }
  | { readonly hashes: readonly string[] };

/** What was taken out, in words that say nothing of it. */
export interface ErasureResult {
  /** Hashes of the erased texts. Pass them to `erase` to erase the same texts from an older copy. */
  readonly hashes: readonly string[];
}

/** What all settled calls of some rows come to. */
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

/** A whole ledger as it was at one moment. */
export interface LedgerBackup {
  /** The newest row's seq and hash; the hash is part of the ledger that goes on. Absent: the store keeps no hashes. */
  readonly head?: Opt<{ readonly seq: number; readonly hash: string }>;
  /** All that was settled. */
  readonly total: LedgerSum;
  /** What was erased from it so far, as `Erased` says it. */
  readonly erasedHashes: readonly string[];
}

/** Which rows an archive has. `labels: false` leaves out what labels say. */
export interface ArchiveRequest {
  /** End of the archived period, not included, in Unix milliseconds. */
  readonly before: number;
  /** Whether the archive contains the values of labels. */
  readonly labels: boolean;
}

/** What an archive says of itself. */
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

/** What `prune` would take out. */
export interface PrunePlan {
  /** Number of rows that would be removed. */
  readonly rows: number;
  /** Room that is given back, about. */
  readonly bytes: number;
  /** How long it would take, about. */
  readonly ms: number;
  /** Time of the first row to remove, in Unix milliseconds. Unset if there is none. */
  readonly from?: Opt<number>;
  /** Time of the last row to remove, in Unix milliseconds. Unset if there is none. */
  readonly to?: Opt<number>;
  /** The oldest open call, where it keeps rows from going. */
  readonly open?: Opt<{ readonly attempt: string; readonly at: number }>;
}

/** How far a prune is. */
export interface PruneProgress {
  /** Number of rows that have been removed. */
  readonly rows: number;
  /** Number of rows to remove in total. */
  readonly total: number;
}

/** What a prune has done. */
export interface PruneResult {
  /** Number of rows that were removed. */
  readonly rows: number;
  /** Bytes of storage that were freed. */
  readonly bytes: number;
  /** The longest that a step has kept batches waiting. */
  readonly longestStepMs: number;
  /** Rows from here on are there; before it, sums. Absent: nothing was ever pruned. */
  readonly rowsSince?: Opt<number>;
}

/** A ledger in numbers. */
export interface LedgerState {
  /** Size of the ledger, in bytes. */
  readonly bytes: number;
  /** When the oldest row that is there was written; absent: there is none. */
  readonly oldestAt?: Opt<number>;
  /** Rows that sums stand for, since the beginning. */
  readonly prunedRows: number;
  /** When rows were pruned last. */
  readonly prunedAt?: Opt<number>;
}

/** A store's room. What it does not know is absent. */
export interface StoreSize {
  /** Of the ledger, where it lies. */
  bytes?: Opt<number>;
  /** That it could still grow by. */
  freeBytes?: Opt<number>;
  /** Of its oldest row, in Unix milliseconds. */
  oldestAt?: Opt<number>;
}
