// Records of batches. A record has no prompts and no responses: these are encrypted in the folder of
// files.
import {
  inputTokens,
  type BatchTarget,
  type JobOrigin,
  type JobProgress,
  type JobStore,
  type Usage,
} from "tollgate/plugin";
import { isOwned, listOwned, type Owner } from "./owned-records.ts";
import type { Content } from "./storage.ts";
import { isVersionConflict, parseJob, writeJob, type StoredJob } from "./stored-jobs.ts";

export const BATCH_KIND = "batch";

/**
 * State of a batch. `reserving`: its creation has not ended. `running`: providers run its lines.
 * `reading`: results are read. `finishing`: all lines are billed. The last four are final.
 */
export type BatchState =
  | "reserving"
  | "running"
  | "canceling"
  | "reading"
  | "finishing"
  | "completed"
  | "failed"
  | "expired"
  | "canceled";

const FINAL_STATES: ReadonlySet<string> = new Set(["completed", "failed", "expired", "canceled"]);
export const isFinal = (state: string): boolean => FINAL_STATES.has(state);

/** A file of the gateway that contains lines of a batch. */
export interface LineFile extends Content {
  readonly name: string;
}

/** A file with results. Its name is the ID of the client's file, without its prefix. */
export interface ResultFile extends LineFile {
  readonly filename: string;
  readonly expiresAt: number;
}

/**
 * A claimed line that has to be sent. `turn`: number of the next attempt to send it, because the row
 * of the attempt before may be settled. `at`: time in Unix milliseconds before which it is not sent.
 */
export type UnsentLine = readonly [n: number, turn: number, at: number];

/** Progress of the lines that the gateway sends itself. */
export interface DirectLines {
  /** Encrypted key of the logs with the results. */
  readonly key: string;
  /** Number of logs. */
  readonly logs: number;
  /** Number of the last line that was claimed. A claimed line is not sent again. */
  readonly claimed: number;
  /** Claimed lines that have to be sent. They are sent first when the run continues. */
  readonly unsent?: readonly UnsentLine[] | undefined;
  /** SHA-256 of the key of the client, which has to be valid while lines are sent. */
  readonly digest?: string | undefined;
}

/**
 * A part of the lines, which one provider runs. If its target is direct, the gateway sends the lines
 * itself, and the part has neither an input nor a reference.
 */
export interface ProviderBatch {
  /** Without headers, which are in the first text line of `input`. */
  readonly target: BatchTarget;
  /** Key with which the batch is found at the provider. */
  readonly key: string;
  readonly input: LineFile;
  readonly count: number;
  /** Sum of the lengths of all bodies. */
  readonly bytes: number;
  /** Highest cost of its lines whose price is known, in billionths of a US dollar. */
  readonly holdNano?: string | undefined;
  /**
   * `submitting`: it is unknown whether the provider has received the batch. `ended`: results can be
   * read, if `reference` is set.
   */
  readonly state: "planned" | "submitting" | "submitted" | "ended";
  readonly reference?: string | undefined;
  readonly counts?: { readonly succeeded: number; readonly failed: number } | undefined;
  readonly isCancelSent?: boolean | undefined;
  readonly outcome?: BatchOutcome | undefined;
  /** Whether reading the results failed so often that the next attempt is the last. */
  readonly isUnreadable?: boolean | undefined;
  /** Number of times that all its results were read and some were missing. */
  readonly incompleteReads?: number | undefined;
  /** Reason of a failure, for the client. */
  readonly message?: string | undefined;
}

/**
 * `lost`: it is unknown whether the provider ran the lines, or it has deleted the results.
 * `unreadable`: the results could not be read for a day. Both are billed as estimates.
 */
export type BatchOutcome = "completed" | "canceled" | "expired" | "failed" | "lost" | "unreadable";

export interface LineCounts {
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly canceled: number;
  readonly expired: number;
}

/** Tokens of a line, or the sum of all lines. */
export interface BatchUsage {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly reasoning: number;
}

export const tokensOf = (usage: Usage): BatchUsage => ({
  input: inputTokens(usage),
  cached: usage.cache_read ?? 0,
  output: usage.output ?? 0,
  reasoning: usage.reasoning ?? 0,
});

/** An error that concerns the whole input. */
export interface InputError {
  readonly code: string;
  readonly line: number | null;
  readonly message: string;
  readonly param: string | null;
}

/**
 * Data of a record. A store limits its size, so everything that grows with the lines is in files.
 */
export interface BatchData {
  readonly format: "openai" | "anthropic";
  /** Path of all lines. */
  readonly path: string;
  /** ID of the input file, without its prefix. */
  readonly inputFile?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Time after which output files expire, in milliseconds. */
  readonly keepMs: number;
  readonly expiresAt: number;
  /** Model that the first line names. */
  readonly model?: string | undefined;
  /** Path of the key's account when the batch was created. */
  readonly account?: string | undefined;
  readonly labels: Readonly<Record<string, string | undefined>>;
  /** Lines of the client, with the errors of invalid ones. */
  readonly lines: LineFile;
  /** Whether reading that file failed so often that the next attempt is the last. */
  readonly areLinesUnreadable?: boolean | undefined;
  readonly batches: readonly ProviderBatch[];
  /** Set if the gateway sends lines itself. */
  readonly direct?: DirectLines | undefined;
  readonly counts: LineCounts;
  readonly usage?: BatchUsage | undefined;
  readonly errors?: readonly InputError[] | undefined;
  /** IDs of the files with the results, without their prefix. */
  readonly outputFile?: string | undefined;
  readonly errorFile?: string | undefined;
  /** Request that created the batch. */
  readonly origin?: JobOrigin | undefined;
  /** Cost of all billed lines, in billionths of a US dollar. */
  readonly costNano?: string | undefined;
  /** The files with the results, whose records are created when the batch ends. */
  readonly results?: readonly ResultFile[] | undefined;
  /** Estimated cost of lost lines, in billionths of a US dollar. */
  readonly lostNano?: string | undefined;
  /** Times of state changes, in Unix milliseconds. */
  readonly times: { readonly [S in BatchState]?: number };
  readonly cancelRequestedAt?: number | undefined;
  /** Time until the next poll, in milliseconds. */
  readonly pollMs?: number | undefined;
  /** Number of steps that failed one after the other. */
  readonly failures?: number | undefined;
}

/** A batch with its record. */
export type StoredBatch = StoredJob<BatchData, BatchState>;

export const parseBatch = parseJob<BatchData, BatchState>;

/** Number of lines that the gateway sends itself, at the price of ordinary requests. */
export const countDirect = ({ batches }: StoredBatch): number =>
  batches.reduce((sum, { target, count }) => sum + (target.isDirect ? count : 0), 0);

/** While providers run the batch, the counts are those that they report. */
export function progressOf({ counts, batches, usage }: StoredBatch): JobProgress {
  const { total, succeeded, failed } = counts;
  if (usage) return { total, done: total, failed: total - succeeded };
  const sum = (member: "succeeded" | "failed") =>
    batches.reduce((all, one) => all + (one.counts?.[member] ?? 0), 0);
  const allFailed = failed + sum("failed");
  return { total, done: allFailed + sum("succeeded"), failed: allFailed };
}

/** A change of a batch, with the time at which its next step is due. */
export interface BatchChange {
  readonly state?: BatchState;
  readonly data?: Partial<BatchData>;
  /** In Unix milliseconds. `undefined`: no step is left. */
  readonly dueAt: number | undefined;
  /** Whether the engine that leased the batch keeps it. */
  readonly isLeased?: boolean;
}

export class BatchRecords {
  readonly #jobs: () => JobStore;

  constructor(jobs: () => JobStore) {
    this.#jobs = jobs;
  }

  async create(
    owner: Owner,
    id: string,
    of: {
      readonly state: BatchState;
      readonly data: BatchData;
      readonly attempt?: string | undefined;
      readonly createdAt: number;
      readonly dueAt: number | undefined;
    },
  ): Promise<StoredBatch> {
    const { state, attempt, createdAt, dueAt } = of;
    const { key, account } = owner;
    const record = {
      id,
      kind: BATCH_KIND,
      key,
      account,
      version: 1,
      createdAt,
      state,
      dueAt,
      attempt,
    };
    return writeJob(this.#jobs(), record, of.data);
  }

  /** Returns a batch of any owner. */
  async read(id: string): Promise<StoredBatch | undefined> {
    const record = await this.#jobs().find(id);
    return record && parseBatch(record);
  }

  async find(owner: Owner, id: string): Promise<StoredBatch | undefined> {
    const record = await this.#jobs().find(id);
    return record?.kind === BATCH_KIND && isOwned(record, owner) ? parseBatch(record) : undefined;
  }

  /** Returns a page of the owner's batches, the newest first. */
  list(
    owner: Owner,
    {
      limit,
      after,
      format,
    }: { limit: number; after?: string | undefined; format: BatchData["format"] },
  ): Promise<{ readonly items: readonly StoredBatch[]; readonly hasMore: boolean }> {
    return listOwned(this.#jobs(), owner, {
      kind: BATCH_KIND,
      limit,
      after,
      read(record) {
        const batch = parseBatch(record);
        return batch.format === format && batch.state !== "reserving" ? batch : undefined;
      },
    });
  }

  /**
   * Writes a change. Rejects with the code `version_conflict` if another gateway changed or leased
   * the batch.
   */
  async change(
    batch: StoredBatch,
    { state = batch.state, data, dueAt, isLeased = false }: BatchChange,
  ): Promise<StoredBatch> {
    const { record, state: _, ...before } = batch;
    const times = { ...before.times, ...(state !== batch.state && { [state]: Date.now() }) };
    const changed: BatchData = { ...before, times, ...data };
    const owner = isLeased ? record.owner : undefined;
    // A batch that has ended has no reservation.
    const attempt = isFinal(state) ? undefined : record.attempt;
    const next = { ...record, version: record.version + 1, state, dueAt, owner, attempt };
    return writeJob(this.#jobs(), next, changed);
  }

  /** Changes a batch that no engine has to hold. Called again if an engine changed it. */
  async update(
    batch: StoredBatch,
    change: (before: StoredBatch) => BatchChange | undefined,
  ): Promise<StoredBatch> {
    for (let before = batch; ;) {
      const wanted = change(before);
      if (!wanted) return before;
      try {
        return await this.change(before, wanted);
      } catch (error) {
        const changed = isVersionConflict(error) && (await this.read(batch.record.id));
        if (!changed) throw error;
        before = changed;
      }
    }
  }

  async delete({ record: { id, version } }: StoredBatch): Promise<void> {
    await this.#jobs().delete(id, version);
  }
}
