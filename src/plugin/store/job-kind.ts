// Kinds of jobs. A frontend that runs jobs describes them, so that the host can list and cancel the
// jobs of all frontends in the same way, and reports how they ended.
import type { Opt } from "../../model/values.ts";
import type { RequestTrace } from "../../model/request-trace.ts";
import type { JobRecord } from "./job.ts";

/**
 * One kind of job that a frontend runs, such as batches. Records of this kind are in `ctx.jobs`. The
 * host calls the functions in any process, also for jobs that another gateway runs.
 */
export interface JobKind {
  /** Kind in the records, such as `batch`. One frontend of a gateway can have it. */
  readonly kind: string;
  /** States of records whose job has not ended. A record in any other state has ended. */
  readonly openStates: readonly string[];
  /**
   * Describes a job for operators. It must be pure. The result contains no prompts, responses, or
   * secrets. Returns undefined for a job whose creation has not ended, which is then not shown.
   */
  describe(record: JobRecord): Opt<JobDescription>;
  /**
   * Requests the cancellation of a job that has not ended. It resolves when the request is durable.
   * Repeating it changes nothing. Default: jobs of this kind cannot be canceled.
   */
  cancel?(record: JobRecord): Promise<void>;
}

/**
 * Status of a job, in one word that is the same for all kinds. The first three are open.
 *
 * - `queued`: no provider has received it.
 * - `running`: a provider runs it, or its results are read.
 * - `canceling`: its cancellation was requested.
 * - `completed`: it ended, and has results.
 * - `failed`: it ended without results.
 * - `expired`: its time limit passed before it was complete.
 * - `canceled`: it was canceled before it was complete.
 */
export type JobStatus =
  | "queued"
  | "running"
  | "canceling"
  | "completed"
  | "failed"
  | "expired"
  | "canceled";

/** Description of a job for operators. */
export interface JobDescription {
  /** ID as clients see it, such as `batch_…`. */
  readonly id: string;
  /** Status of the job. */
  readonly status: JobStatus;
  /** Model name, as the client wrote it. */
  readonly model?: Opt<string>;
  /** Names of the providers in gateway.yaml that run the job. */
  readonly providers?: Opt<readonly string[]>;
  /** Parts of the job that have ended, such as lines or percent. */
  readonly progress?: Opt<JobProgress>;
  /** Cost of the parts that have been billed, in billionths of a US dollar. Unset if unknown. */
  readonly costNano?: Opt<bigint>;
  /** Time at which the job ended, in Unix milliseconds. Set if it has ended. */
  readonly endedAt?: Opt<number>;
  /** Reason of a failure, for the client. */
  readonly message?: Opt<string>;
  /** The request that created the job. */
  readonly origin?: Opt<JobOrigin>;
  /**
   * Type of the event that reports the end to clients, such as `batch.completed`. Unset while the
   * job is open, and for a job whose end is not reported.
   */
  readonly event?: Opt<string>;
}

/** Parts of a job. */
export interface JobProgress {
  /** Number of all parts. */
  readonly total: number;
  /** Number of parts that have ended. */
  readonly done: number;
  /** Number of parts that have failed. They are included in `done`. */
  readonly failed: number;
}

/** The request that created a job. */
export interface JobOrigin {
  /** ID of the request. */
  readonly request: string;
  /** Trace of the request. */
  readonly trace?: Opt<RequestTrace>;
}

/** A job that ends, as `beforeJobEnds` of a frontend receives it. */
export interface EndedJob extends JobDescription {
  /** ID of its record. */
  readonly record: string;
  /** State that its record is about to have. */
  readonly state: string;
  /** Kind of the job. */
  readonly kind: string;
  /** ID of the key that created the job. */
  readonly key: string;
  /** The key's account when the job was created. */
  readonly account?: Opt<string>;
  /** Time at which the job was created, in Unix milliseconds. */
  readonly createdAt: number;
}
