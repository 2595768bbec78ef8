// Jobs: work that outlives a request and a process, such as a batch. A store keeps their records.
import type { Opt } from "../../model/values.ts";
import type { Limit } from "./limit.ts";
import type { PageRequest, ResultPage } from "./ledger-entry.ts";

/**
 * One job, as its job engine wrote it. A record contains no prompts, no responses, and no secrets in
 * plain text.
 */
export interface JobRecord {
  /** ID of the job, unique in the store. */
  readonly id: string;
  /** Kind of job, such as `batch`. An engine leases only the kinds that it runs. */
  readonly kind: string;
  /** ID of the key that created the job. */
  readonly key: string;
  /** Path of the key's account when the job was created. */
  readonly account?: Opt<string>;
  /** Number of the change, from 1. */
  readonly version: number;
  /** Time at which the job was created, in Unix milliseconds. */
  readonly createdAt: number;
  /** State of the job, as its engine names it. */
  readonly state: string;
  /**
   * Time from which an engine may lease the job, in Unix milliseconds. While a job is leased, it is
   * the end of the lease. Unset if nothing is left to do.
   */
  readonly dueAt?: Opt<number>;
  /** ID of the instance that leased the job. Unset if no instance has it. */
  readonly owner?: Opt<string>;
  /** ID of the job's own call in the ledger. Unset if the job costs nothing. */
  readonly attempt?: Opt<string>;
  /** The engine's own data as text, up to 64 KiB. Stores do not read it. */
  readonly data: string;
}

/** Filter for jobs. An unset member restricts nothing. */
export interface JobQuery {
  /** ID of the key. */
  readonly key?: Opt<string>;
  /** Path of the account, without the accounts that are nested under it. */
  readonly account?: Opt<string>;
  /** Kind of job. */
  readonly kind?: Opt<string>;
  /** State of the job. */
  readonly state?: Opt<string>;
  /** Order of their creation in the list. Default: `newest_first`. */
  readonly order?: Opt<"newest_first" | "oldest_first">;
}

/** Number of jobs of one kind in one state. */
export interface JobCount {
  /** Kind of the jobs. */
  readonly kind: string;
  /** State of the jobs. */
  readonly state: string;
  /** Number of jobs. */
  readonly count: number;
  /** Time at which the oldest of them was created, in Unix milliseconds. */
  readonly oldestAt: number;
}

/** A request for jobs that are due. */
export interface JobLeaseRequest {
  /** Current time in Unix milliseconds. A store of several instances may use its own clock. */
  readonly at: number;
  /** ID of the instance that leases the jobs. */
  readonly owner: string;
  /** Length of the lease. After that time, the job is due again. */
  readonly leaseMs: number;
  /** Maximum number of jobs. */
  readonly limit: number;
  /** Kinds of jobs that the engine runs. */
  readonly kinds: readonly string[];
}

/**
 * Records of jobs. Each method is one durable step. An engine that lost its lease cannot change a
 * job: every lease increases the version, and a change has to follow the stored version.
 */
export interface JobStore {
  /**
   * Writes a complete record. A change is rejected as `conflict` with the code `version_conflict` if
   * its version does not follow the stored one. Writing the same record again changes nothing.
   */
  put(record: JobRecord): Promise<void>;
  /** Returns the job with this ID. */
  find(id: string): Promise<JobRecord | undefined>;
  /**
   * Returns the jobs that match the query, the newest first unless the query has another order.
   * Cursors are those of `jobCursor`, so the cursor of one query is valid for another.
   */
  list(query: JobQuery, page?: PageRequest): Promise<ResultPage<JobRecord>>;
  /**
   * Leases jobs that are due, the longest overdue first. Each returned record has the next version,
   * the new owner, and the end of the lease in `dueAt`. Only one of several concurrent calls gets a
   * job.
   */
  lease(request: JobLeaseRequest): Promise<readonly JobRecord[]>;
  /** Returns the time at which the next job of these kinds is due. Unset if there is none. */
  nextDueAt(kinds: readonly string[]): Promise<number | undefined>;
  /** Counts the jobs of these kinds by kind and state. States without a job are left out. */
  count(kinds: readonly string[]): Promise<readonly JobCount[]>;
  /**
   * Deletes a job. Rejects as `conflict` with the code `version_conflict` if the stored version
   * differs. Deleting a job that does not exist changes nothing.
   */
  delete(id: string, version: number): Promise<void>;
}

/** Connects a reserve to a job. */
export interface JobReserve {
  /**
   * ID of the job's own call. A reserve with its own ID here reserves the sum of all lines. Its call
   * stays open when its process ends, until it is settled.
   */
  attempt: string;
  /**
   * For a line: amounts to take from the job's reservation, by unit. A line takes at most what the
   * job still reserves, and it is never denied.
   */
  take?: Opt<JobTake>;
}

/** Amounts that a line takes from the reservation of its job, by unit. */
export type JobTake = { readonly [U in Limit["unit"]]?: bigint };
