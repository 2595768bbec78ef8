// Batches of all owners, as their clients use them. An engine runs them.
import { fail, type Context, type RequestHead } from "tollgate/plugin";
import { MAX_REFERENCE_BYTES } from "./batch-engine.ts";
import { BatchPlanner, type BatchPlan } from "./batch-planner.ts";
import {
  BatchRecords,
  isFinal,
  type BatchData,
  type DirectLines,
  type InputError,
  type StoredBatch,
} from "./batch-record.ts";
import { createLogKey } from "./direct-log.ts";
import type { Owner } from "./owned-records.ts";
import type { Storage } from "./storage.ts";

/** Time in milliseconds within which a batch has to be created. An engine then deletes the rest. */
export const CREATE_MS = 30 * 60_000;
/** Time in milliseconds within which the lines of a batch run. */
const WINDOW_MS = 24 * 3_600_000;
/**
 * Maximum size of the data of a new record, in bytes of JSON, with the references that providers
 * return later. Stores accept 64 KiB.
 */
const MAX_DATA_BYTES = 62 * 1024;
/** Bytes that a provider batch adds while it runs: its reference, counts, and a message. */
const GROWTH_BYTES = MAX_REFERENCE_BYTES + 1_100;
/** Maximum length of the name of a model in a record, in characters. */
const MAX_MODEL = 256;

/** A request for a batch. */
export interface NewBatch extends Pick<
  BatchData,
  "format" | "path" | "inputFile" | "metadata" | "keepMs"
> {
  /** Passes each line to the planner. Returns errors that concern the whole input. */
  readLines(planner: BatchPlanner): Promise<readonly InputError[]>;
  /** Returns the model that the first line names. */
  model(): string | undefined;
}

export class BatchService {
  readonly #storage: Storage;
  readonly #ctx: Context;
  readonly records: BatchRecords;
  readonly #wake: () => void;
  readonly #allowsDirect: boolean;

  /**
   * @param wake Called when an engine has something to do.
   * @param allowsDirect Whether the gateway sends lines itself if no provider runs them in a batch.
   */
  constructor(storage: Storage, records: BatchRecords, wake: () => void, allowsDirect = false) {
    this.#allowsDirect = allowsDirect;
    this.#storage = storage;
    this.#ctx = storage.ctx;
    this.records = records;
    this.#wake = wake;
  }

  /** Creates a batch: plans its lines, and reserves their sum. */
  async create(owner: Owner, x: RequestHead, of: NewBatch): Promise<StoredBatch> {
    const jobLines =
      this.#ctx.jobLines ??
      fail("unavailable", "This gateway's store keeps no jobs.", { code: "no_jobs" });
    const createdAt = Date.now();
    const id = this.#storage.secrets.createId("batch", owner.name, createdAt);
    const attempt = `batch_${id}`;
    const planner = new BatchPlanner(this.#storage, jobLines, {
      owner,
      x,
      id,
      path: of.path,
      allowsDirect: this.#allowsDirect,
    });
    let reserved: StoredBatch | undefined;
    try {
      const errors = await of.readLines(planner);
      if (planner.total === 0 && errors.length === 0)
        fail("invalid", "The batch contains no requests.", { code: "empty_batch" });
      const plan = await planner.finish();
      const origin = { request: x.id, trace: x.trace };
      const hasDirect = plan.batches.some(({ target }) => target.isDirect);
      const direct = hasDirect ? this.#createDirect(owner, x, id) : undefined;
      const data = { ...dataOf(of, plan, createdAt), origin, direct };
      requireSmall(data);
      if (errors.length > 0) {
        await planner.discard();
        return await this.#createFailed(owner, id, createdAt, { ...data, batches: [], errors });
      }
      const dueAt = createdAt + CREATE_MS;
      const state = "reserving";
      const batch = await this.records.create(owner, id, {
        state,
        data,
        attempt,
        createdAt,
        dueAt,
      });
      reserved = batch;
      const [first] = plan.batches;
      const { claims, holdNano } = plan;
      if (first) {
        const job = { attempt, target: first.target, claims, holdNano };
        await jobLines.reserveJob(job, { parentRequest: x });
      }
      const running = await this.records.change(batch, { state: "running", dueAt: Date.now() });
      this.#wake();
      return running;
    } catch (error) {
      // After a reservation, an engine releases it and deletes the lines and the record.
      if (!reserved) await planner.discard();
      else await this.records.change(reserved, { dueAt: Date.now() }).catch(() => undefined);
      this.#wake();
      throw error;
    }
  }

  #createDirect(owner: Owner, { identity }: RequestHead, id: string): DirectLines {
    const key = createLogKey(this.#storage, owner, id);
    return { key, logs: 0, claimed: 0, digest: identity?.digest ?? undefined };
  }

  /** Creates the record of a batch whose input is invalid. */
  #createFailed(
    owner: Owner,
    id: string,
    createdAt: number,
    data: BatchData,
  ): Promise<StoredBatch> {
    const now = Date.now();
    const times = { ...data.times, failed: now };
    return this.records.create(owner, id, {
      state: "failed",
      data: { ...data, times },
      createdAt,
      dueAt: now + this.#storage.limits.batchMs,
    });
  }

  async find(owner: Owner, id: string, name = "batch"): Promise<StoredBatch> {
    const own = this.#storage.secrets.parseId(id, "batch", owner.name);
    const found = own === undefined ? undefined : await this.records.find(owner, own);
    if (!found || found.state === "reserving")
      return fail("not_found", `No such ${name}: ${id}`, { param: "id" });
    return found;
  }

  /**
   * Returns a page of the owner's batches, the newest first.
   * @param after ID of the batch before the page. It may have been deleted.
   */
  list(
    owner: Owner,
    { after, ...of }: { limit: number; after: string | undefined; format: BatchData["format"] },
  ): ReturnType<BatchRecords["list"]> {
    const { secrets } = this.#storage;
    const own = after && secrets.parseId(after.replace(/^msg/, ""), "batch", owner.name);
    if (after !== undefined && !own)
      fail("invalid", `Unknown batch ID "${after.slice(0, 64)}".`, { param: "after" });
    return this.records.list(owner, { ...of, after: own });
  }

  /** Requests the cancellation of a batch. A batch that has ended is returned unchanged. */
  async cancel(owner: Owner, id: string, name?: string): Promise<StoredBatch> {
    return this.#cancel(await this.find(owner, id, name));
  }

  /** Requests the cancellation of a batch of any owner. */
  async cancelBatch(batch: StoredBatch): Promise<void> {
    await this.#cancel(batch);
  }

  async #cancel(batch: StoredBatch): Promise<StoredBatch> {
    const now = Date.now();
    const canceled = await this.records.update(batch, (before) => {
      if (before.state !== "running") return undefined;
      // An engine that has the batch continues, and finds the request with its next change.
      const isLeased = before.record.owner !== undefined && before.record.dueAt! > now;
      const dueAt = isLeased ? before.record.dueAt : now;
      return { state: "canceling", data: { cancelRequestedAt: now }, dueAt, isLeased };
    });
    this.#wake();
    return canceled;
  }

  /** Deletes a batch that has ended, with its results. */
  async delete(owner: Owner, id: string, name?: string): Promise<StoredBatch> {
    const batch = await this.find(owner, id, name);
    if (!isFinal(batch.state))
      fail("invalid", "A batch can be deleted after it has ended. Cancel it first.", {
        code: "batch_not_ended",
      });
    const { files, blobs } = this.#storage;
    for (const file of [batch.outputFile, batch.errorFile]) {
      if (file === undefined) continue;
      await files.delete(file);
      await blobs.delete(file);
    }
    await this.records.delete(batch);
    return batch;
  }
}

/** Throws if the record of the batch would be too large for a store. */
function requireSmall(data: BatchData): void {
  const { batches } = data;
  const bytes = Buffer.byteLength(JSON.stringify(data)) + batches.length * GROWTH_BYTES;
  if (bytes > MAX_DATA_BYTES)
    fail(
      "too_large",
      `The description of the batch is larger than ${MAX_DATA_BYTES} bytes. Use less metadata, or create a batch for each model.`,
    );
}

function dataOf(of: NewBatch, plan: BatchPlan, createdAt: number): BatchData {
  const { lines, batches, account, labels, total, failed } = plan;
  return {
    format: of.format,
    path: of.path,
    inputFile: of.inputFile,
    metadata: of.metadata,
    keepMs: of.keepMs,
    expiresAt: createdAt + WINDOW_MS,
    model: of.model()?.slice(0, MAX_MODEL),
    account,
    labels,
    lines,
    batches,
    counts: { total, succeeded: 0, failed, canceled: 0, expired: 0 },
    times: {},
  };
}
