// Runs batches. Each process of a gateway has an engine. An engine leases a batch, takes its next step, and writes
// the result, so that another gateway continues where one stopped.
import {
  fail,
  getFault,
  type BatchClient,
  type Context,
  type EndpointBatches,
  type ErrorKind,
  type JobLines,
} from "tollgate/plugin";
import type {
  BatchChange,
  BatchOutcome,
  BatchRecords,
  ProviderBatch,
  StoredBatch,
} from "./batch-record.ts";
import { BATCH_KIND, isFinal, parseBatch } from "./batch-record.ts";
import { readResults } from "./batch-results.ts";
import { deleteLogs } from "./direct-log.ts";
import { DirectRun, type DirectEnd } from "./direct-run.ts";
import { LeaseLoop, backoffMs, nextPollMs } from "./lease-loop.ts";
import { readLineFile } from "./line-files.ts";
import type { LinePace } from "./line-pace.ts";
import { splitLines } from "./line-text.ts";
import { ownerNameOf, type Owner } from "./owned-records.ts";
import { readHeaders } from "./part-headers.ts";
import type { Storage } from "./storage.ts";
import { isVersionConflict, toRecordMessage } from "./stored-jobs.ts";

/** Length of a lease in milliseconds. A long step renews it. */
const LEASE_MS = 60_000;
/** Time between two polls in milliseconds: at first, and at most. */
const POLL_MS = { first: 100, most: 60_000 };
/** Time in milliseconds after which a batch that fails at every step ends. */
const GIVE_UP_MS = 3 * 24 * 3_600_000;
/**
 * Time in milliseconds and number of failed steps after which results count as unreadable. Both are
 * needed, so that a gateway that was stopped for a day tries again.
 */
const UNREADABLE = { ms: 24 * 3_600_000, failures: 20 };
/** Maximum length of a provider's message in a record, in characters. */
const MAX_MESSAGE = 300;
/** Maximum length of a reference in a record, in bytes, as the plugin contract limits it. */
export const MAX_REFERENCE_BYTES = 2 * 1024;
/** Number of batches whose steps one engine takes at the same time. */
const CONCURRENT_STEPS = 4;

/** Number of batches whose lines one engine sends at the same time. */
const MAX_DIRECT_BATCHES = 32;
/** Time in milliseconds after which a batch is tried again if there are more. */
const DIRECT_RETRY_MS = 5_000;
/** Time in milliseconds between two polls of providers while the engine sends other lines. */
const DIRECT_POLL_MS = 30_000;
/** Time in milliseconds for which a batch sends lines while others wait for its place. */
const DIRECT_SLICE_MS = 60_000;
const NO_DIRECT_MESSAGE = "The gateway does not run requests of batches for this model any more.";

/** Errors that a repeated request would get again. The provider did not accept the request. */
const PERMANENT_ERRORS: ReadonlySet<ErrorKind> = new Set([
  "invalid",
  "unsupported",
  "forbidden",
  "not_found",
  "too_large",
  "mismatch",
  "upstream_auth",
  "upstream_quota",
]);

export class BatchEngine {
  readonly #storage: Storage;
  readonly #records: BatchRecords;
  readonly #loop: LeaseLoop;
  readonly #pace: LinePace | undefined;
  /** Steps that send lines. They last as long as their batches, so no other batch waits for them. */
  readonly #directSteps = new Set<Promise<void>>();
  /** Time at which a batch had to wait, because too many others sent lines. */
  #crowdedAt = -Infinity;
  /** Looks for work now. */
  readonly wake: () => void;

  /** @param pace Pace of the lines that the gateway sends itself. If undefined, it sends none. */
  constructor(storage: Storage, records: BatchRecords, pace?: LinePace) {
    this.#storage = storage;
    this.#records = records;
    this.#pace = pace;
    const { ctx } = storage;
    this.#loop = new LeaseLoop({
      ctx,
      jobs: () => storage.jobs,
      kind: BATCH_KIND,
      leaseMs: LEASE_MS,
      concurrent: CONCURRENT_STEPS,
      run: async (record) => this.#startStep(parseBatch(record)),
      onPaused: (err) => ctx.log.warn({ err }, "batch engine paused, will retry"),
    });
    this.wake = () => this.#loop.wake();
  }

  /** Starts after the gateway has started. */
  start(): void {
    this.#loop.start();
    this.#storage.ctx.onDispose(() => Promise.all(this.#directSteps));
  }

  async #startStep(leased: StoredBatch): Promise<void> {
    if (!hasOpenDirect(leased)) return this.#takeStep(leased);
    // A batch that ends sends no lines.
    const isEnding = leased.state === "canceling" || Date.now() > leased.expiresAt;
    if (this.#directSteps.size >= MAX_DIRECT_BATCHES && !isEnding) {
      this.#crowdedAt = Date.now();
      await this.#records.change(leased, { dueAt: Date.now() + DIRECT_RETRY_MS });
      return undefined;
    }
    const step: Promise<void> = this.#takeStep(leased)
      .catch((err: unknown) => this.#storage.ctx.log.warn({ err }, "batch step failed"))
      .finally(() => {
        this.#directSteps.delete(step);
        this.wake();
      });
    this.#directSteps.add(step);
  }

  async #takeStep(leased: StoredBatch): Promise<void> {
    const step = new BatchStep(this.#storage, this.#records, leased, {
      pace: this.#pace,
      isCrowded: () => Date.now() < this.#crowdedAt + 2 * DIRECT_RETRY_MS,
    });
    try {
      await step.run();
    } catch (err) {
      if (isVersionConflict(err)) return;
      await step.postpone(err);
    } finally {
      step.end();
    }
  }
}

/** State of an engine that its steps read. */
interface EngineState {
  readonly pace: LinePace | undefined;
  /** Whether other batches wait to send lines. */
  readonly isCrowded: () => boolean;
}

/** One step of a batch, by the engine that leased it. */
class BatchStep {
  readonly #storage: Storage;
  readonly #ctx: Context;
  readonly #jobLines: JobLines;
  readonly #records: BatchRecords;
  readonly #owner: Owner;
  readonly #engine: EngineState;
  readonly #aborter = new AbortController();
  /** Aborts when the client cancels the batch during the step. */
  readonly #canceler = new AbortController();
  readonly #renewal: NodeJS.Timeout;
  #batch: StoredBatch;
  #isSubmitting = false;
  /** Whether lines are sent. They end before the step stops. */
  #isSending = false;
  /** Whether the step ended so that another batch can send lines. */
  #hasYielded = false;
  /** Index of the provider batch whose results are read. Undefined while the lines are read. */
  #readingPart: number | undefined;
  /** Whether the results were read and some are missing. */
  #isIncomplete = false;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(storage: Storage, records: BatchRecords, batch: StoredBatch, engine: EngineState) {
    this.#engine = engine;
    this.#storage = storage;
    this.#ctx = storage.ctx;
    this.#jobLines = storage.ctx.jobLines!;
    this.#records = records;
    this.#batch = batch;
    const { key, account } = batch.record;
    this.#owner = { key, account: account ?? undefined, name: ownerNameOf(key, account) };
    this.#renewal = setInterval(() => void this.#renew(), LEASE_MS / 3).unref();
    this.#ctx.signal.addEventListener("abort", this.#stop, { once: true });
    if (this.#ctx.signal.aborted) this.#stop();
  }

  end(): void {
    clearInterval(this.#renewal);
    this.#ctx.signal.removeEventListener("abort", this.#stop);
    this.#aborter.abort();
  }

  /** Stops, because the config is replaced. A submission ends first, so that its result is known. */
  #stop = (): void => {
    if (!this.#isSubmitting && !this.#isSending) this.#aborter.abort();
  };

  async run(): Promise<void> {
    const { state } = this.#batch;
    if (isFinal(state)) return this.#deleteBatch();
    if (state === "reserving") return this.#abandon();
    if (state === "running" || state === "canceling") {
      if (hasOpenDirect(this.#batch)) await this.#runDirect();
      else await this.#advanceAll();
      if (!this.#batch.batches.every((one) => one.state === "ended")) return this.#poll();
      await this.#writeLeased({ state: "reading", data: { failures: 0 } });
    }
    if (this.#batch.state === "reading") {
      const data = await readResults({
        storage: this.#storage,
        owner: this.#owner,
        batch: this.#batch,
        signal: this.#aborter.signal,
        onPart: (index) => (this.#readingPart = index),
        onIncomplete: () => (this.#isIncomplete = true),
      });
      await this.#writeLeased({ state: "finishing", data });
    }
    await this.#finish();
  }

  async #advanceAll(): Promise<void> {
    for (let index = 0; index < this.#batch.batches.length; index++) await this.#advance(index);
  }

  /** Sends the lines that the gateway runs itself, and polls providers in between. */
  async #runDirect(): Promise<void> {
    const { pace, isCrowded } = this.#engine;
    if (!pace) return this.#endDirect({ outcome: "failed", message: NO_DIRECT_MESSAGE });
    await this.#changeDirect({ state: "submitted" });
    this.#isSending = true;
    const run = new DirectRun({
      storage: this.#storage,
      jobLines: this.#jobLines,
      owner: this.#owner,
      pace,
      signal: this.#aborter.signal,
      canceled: this.#canceler.signal,
      batch: () => this.#batch,
      write: (change) => this.#writeLeased(change),
    });
    let end: DirectEnd = "later";
    let [pollAt, sliceEnd] = [0, Date.now() + DIRECT_SLICE_MS];
    try {
      while (end === "later" && !this.#hasYielded && !this.#ctx.signal.aborted) {
        if (Date.now() >= pollAt) pollAt = Date.now() + (await this.#advanceOthers());
        end = await run.run(Math.min(sliceEnd, this.#isWaiting() ? pollAt : Infinity));
        if (Date.now() < sliceEnd) continue;
        this.#hasYielded = end === "later" && isCrowded();
        sliceEnd = Date.now() + DIRECT_SLICE_MS;
      }
    } finally {
      await run.close();
      this.#isSending = false;
      if (this.#ctx.signal.aborted) this.#stop();
    }
    if (end !== "later") await this.#endDirect(end);
  }

  /**
   * Polls providers while the engine sends other lines. A provider that fails does not stop them.
   * Returns the time in milliseconds until the next poll.
   */
  async #advanceOthers(): Promise<number> {
    try {
      await this.#advanceAll();
      return DIRECT_POLL_MS;
    } catch (err) {
      if (this.#aborter.signal.aborted || isVersionConflict(err)) throw err;
      const fault = getFault(err);
      const ms = Math.max(DIRECT_POLL_MS, fault?.retryAfterMs ?? 0);
      this.#ctx.log.warn(
        { batch: this.#batch.record.id, retryInMs: ms, err: fault ? fault.message : err },
        "provider batch failed, will retry",
      );
      return ms;
    }
  }

  /** Whether providers run lines of the batch. */
  #isWaiting(): boolean {
    return this.#batch.batches.some(({ target, state }) => !target.isDirect && state !== "ended");
  }

  #endDirect({ outcome, message }: Exclude<DirectEnd, "later">): Promise<void> {
    return this.#changeDirect({ state: "ended", outcome, message });
  }

  #changeDirect(change: Partial<ProviderBatch>): Promise<void> {
    const batches = this.#batch.batches.map((part) =>
      part.target.isDirect && part.state !== "ended" ? { ...part, ...change } : part,
    );
    return this.#writeLeased({ data: { batches } });
  }

  /** Ends the step. The next one polls the providers. */
  #poll(): Promise<void> {
    if (this.#ctx.signal.aborted) return this.#write({ dueAt: Date.now() });
    // Later than the batches that wait, so that these come first.
    if (this.#hasYielded) return this.#write({ dueAt: Date.now() + 2 * DIRECT_RETRY_MS });
    const { pollMs = POLL_MS.first } = this.#batch;
    const next = nextPollMs(pollMs, POLL_MS.most);
    return this.#write({ data: { failures: 0, pollMs: next }, dueAt: Date.now() + pollMs });
  }

  /** Postpones the batch after an error. */
  async postpone(err: unknown): Promise<void> {
    if (this.#ctx.signal.aborted) return this.#write({ dueAt: Date.now() }).catch(() => undefined);
    const { failures = 0, record, expiresAt } = this.#batch;
    const fault = getFault(err);
    const ms = backoffMs(failures, 15 * 60_000);
    this.#ctx.log.warn(
      { batch: record.id, state: record.state, retryInMs: ms, err: fault ? fault.message : err },
      "batch step failed, will retry",
    );
    const dueAt = Date.now() + Math.max(ms, fault?.retryAfterMs ?? 0);
    const isHopeless = Date.now() > expiresAt + GIVE_UP_MS;
    const reading = this.#readingPart;
    const counted = this.#batch.batches.map((part, index) =>
      index === reading && this.#isIncomplete ? countIncompleteRead(part) : part,
    );
    const batches = isHopeless ? counted.map(giveUp) : counted;
    const data = this.#isUnreadable(failures)
      ? {
          failures: 0,
          ...(reading === undefined && { areLinesUnreadable: true }),
          batches: batches.map((part, index) =>
            index === reading ? { ...part, isUnreadable: true } : part,
          ),
        }
      : { failures: failures + 1, batches };
    await this.#write({ data, dueAt }).catch(() => undefined);
  }

  /** Whether the lines, or the results of a part, could not be read for too long. */
  #isUnreadable(failures: number): boolean {
    const { state, times } = this.#batch;
    const isLate = Date.now() > (times.reading ?? 0) + UNREADABLE.ms;
    return state === "reading" && failures >= UNREADABLE.failures && isLate;
  }

  /** Takes the next step of a provider batch. */
  async #advance(index: number): Promise<void> {
    const part = this.#batch.batches[index]!;
    if (part.state === "ended" || part.target.isDirect) return;
    const isCanceled = this.#batch.state === "canceling";
    const isExpired = Date.now() > this.#batch.expiresAt;
    if (part.state === "planned" && (isCanceled || isExpired))
      return this.#change(index, { state: "ended", outcome: isCanceled ? "canceled" : "expired" });
    const opened = this.#jobLines.openBatches(part.target, this.#aborter.signal);
    if (!opened) {
      const message = `The provider ${part.target.provider} is not available any more.`;
      const outcome = part.state === "planned" ? "failed" : "lost";
      return this.#change(index, { state: "ended", outcome, message });
    }
    const { batches, client } = opened;
    if (part.state === "planned") return this.#submit(index, batches, client);
    if (part.state === "submitting") return this.#recoverSubmission(index, batches, client);
    if ((isCanceled || isExpired) && part.isCancelSent !== true) {
      await batches.cancel(part.reference!, client);
      await this.#change(index, { isCancelSent: true });
    }
    const status = await batches.poll(part.reference!, client);
    const counts = status.counts ?? undefined;
    if (status.state !== "ended") return this.#change(index, { counts });
    const outcome = status.outcome ?? "completed";
    return this.#change(index, {
      state: "ended",
      outcome,
      counts,
      message: status.message ?? undefined,
    });
  }

  async #submit(index: number, batches: EndpointBatches, client: BatchClient): Promise<void> {
    const { target, key, count, bytes, input } = this.#batch.batches[index]!;
    // Read first: a part whose file cannot be read is not submitted, so it stays planned.
    const headers = await readHeaders(this.#storage, this.#owner, input);
    this.#aborter.signal.throwIfAborted();
    this.#isSubmitting = true;
    await this.#change(index, { state: "submitting" });
    const lines = () => this.#readInput(input);
    const { model, path } = target;
    const of = { key, model, path, headers, count, bytes, lines };
    try {
      const reference = await batches.submit(of, client);
      requireShortReference(reference);
      await this.#change(index, { state: "submitted", reference });
    } catch (error) {
      const fault = getFault(error);
      if (!fault || !PERMANENT_ERRORS.has(fault.kind)) throw error;
      await this.#change(index, { state: "ended", outcome: "failed", message: fault.message });
    } finally {
      this.#isSubmitting = false;
      if (this.#ctx.signal.aborted) this.#stop();
    }
  }

  /** Continues after a submission whose result is unknown. */
  async #recoverSubmission(
    index: number,
    batches: EndpointBatches,
    client: BatchClient,
  ): Promise<void> {
    if (!batches.find) {
      const message = "It is unknown whether the provider received the lines.";
      return this.#change(index, { state: "ended", outcome: "lost", message });
    }
    const reference = await batches.find(this.#batch.batches[index]!.key, client);
    if (reference != null) {
      requireShortReference(reference);
      return this.#change(index, { state: "submitted", reference });
    }
    return this.#submit(index, batches, client);
  }

  async *#readInput(file: ProviderBatch["input"]) {
    const content = await readLineFile(this.#storage, this.#owner, file);
    for await (const { bytes, number } of splitLines(content))
      if (number > 1)
        yield { id: bytes.subarray(0, 8).toString(), body: bytes.subarray(9).toString() };
  }

  /** Ends a batch: all its lines are billed. */
  async #finish(): Promise<void> {
    const { batches, record, lostNano, results = [], times } = this.#batch;
    const state = finalState(this.#batch);
    // Only the gateway that has the batch gets here, so no other one creates files for it.
    for (const { name, expiresAt, ...file } of results)
      await this.#storage.files.create(this.#owner, name, times.finishing!, {
        ...file,
        expiresAt,
        purpose: "batch_output",
        mime: "application/jsonl",
      });
    if (record.attempt != null && batches.length > 0) {
      const isUnreadable = batches.some((one) => one.outcome === "unreadable");
      const outcome = isUnreadable ? "unreadable" : state === "completed" ? "ok" : state;
      await this.#jobLines.settleJob(record.attempt, {
        costNano: BigInt(lostNano ?? "0"),
        outcome,
      });
    }
    // Deleted before the batch ends, so that no crash leaves them for as long as the batch is kept.
    await this.#deleteLines();
    await this.#write({ state, dueAt: Date.now() + this.#storage.limits.batchMs });
    for (const { target, reference } of batches) {
      const opened = this.#jobLines.openBatches(target, this.#aborter.signal);
      if (reference !== undefined)
        await opened?.batches
          .discard?.(reference, opened.client)
          .catch((err: unknown) =>
            this.#ctx.log.warn({ batch: record.id, err }, "provider batch not deleted"),
          );
    }
  }

  /** Ends a batch whose creation was interrupted. Its client did not receive its ID. */
  async #abandon(): Promise<void> {
    const { record, batches } = this.#batch;
    if (record.attempt != null && batches.length > 0)
      await this.#jobLines
        .settleJob(record.attempt, { costNano: 0n, outcome: "canceled" })
        .catch((error: unknown) => {
          // It was not reserved.
          if (getFault(error)?.code !== "unknown_attempt") throw error;
        });
    await this.#deleteLines();
    await this.#deleteBatch();
  }

  async #deleteLines(): Promise<void> {
    const { lines, batches } = this.#batch;
    for (const { name } of [lines, ...batches.map((one) => one.input)])
      await this.#storage.blobs.delete(name);
    await deleteLogs(this.#storage, this.#batch);
  }

  async #deleteBatch(): Promise<void> {
    await this.#writing;
    await this.#records.delete(this.#batch);
  }

  #change(index: number, change: Partial<ProviderBatch>): Promise<void> {
    const { message } = change;
    const short =
      message === undefined
        ? change
        : { ...change, message: toRecordMessage(message, MAX_MESSAGE) };
    const batches = this.#batch.batches.map((one, i) => (i === index ? { ...one, ...short } : one));
    return this.#writeLeased({ data: { batches } });
  }

  /**
   * Extends the lease. The step ends if another engine has the batch, or can have it. Results of
   * lines that were sent are then lost, so an error of the store alone does not end it.
   */
  async #renew(): Promise<void> {
    try {
      await this.#writeLeased({});
    } catch (err) {
      const { id, dueAt = 0 } = this.#batch.record;
      if (isVersionConflict(err) || Date.now() >= (dueAt ?? 0)) return this.#aborter.abort(err);
      this.#ctx.log.warn({ batch: id, err }, "batch lease not renewed, will retry");
    }
  }

  #writeLeased(change: Omit<BatchChange, "dueAt" | "isLeased">): Promise<void> {
    return this.#write({ ...change, dueAt: Date.now() + LEASE_MS, isLeased: true });
  }

  /** Writes one change after the other, because each has the next version. */
  async #write(change: BatchChange): Promise<void> {
    const writing = this.#writing.then(() => this.#writeNow(change));
    this.#writing = writing.catch(() => undefined);
    await writing;
  }

  async #writeNow(change: BatchChange): Promise<void> {
    try {
      this.#batch = await this.#records.change(this.#batch, change);
    } catch (error) {
      if (!isVersionConflict(error)) throw error;
      const { record } = this.#batch;
      const changed = await this.#records.read(record.id);
      const isCanceled =
        changed?.cancelRequestedAt !== undefined &&
        this.#batch.cancelRequestedAt === undefined &&
        changed.record.owner === record.owner &&
        changed.record.version === record.version + 1;
      if (!isCanceled) throw error;
      // The client requested the cancellation while this engine has the batch.
      const { cancelRequestedAt } = changed;
      this.#batch = {
        ...this.#batch,
        cancelRequestedAt,
        record: changed.record,
        state: "canceling",
      };
      this.#canceler.abort();
      this.#batch = await this.#records.change(this.#batch, change);
    }
  }
}

/** Throws if a record could not hold the reference. */
function requireShortReference(reference: string): void {
  if (Buffer.byteLength(reference) > MAX_REFERENCE_BYTES)
    fail(
      "internal",
      `The provider plugin returned a reference of more than ${MAX_REFERENCE_BYTES} bytes.`,
    );
}

/** Whether the gateway has to send lines itself. */
const hasOpenDirect = ({ state, batches }: StoredBatch): boolean =>
  (state === "running" || state === "canceling") &&
  batches.some((part) => part.target.isDirect && part.state !== "ended");

const countIncompleteRead = (part: ProviderBatch): ProviderBatch => ({
  ...part,
  incompleteReads: (part.incompleteReads ?? 0) + 1,
});

const giveUp = (part: ProviderBatch): ProviderBatch =>
  part.state === "ended"
    ? part
    : { ...part, state: "ended", outcome: part.state === "planned" ? "expired" : "lost" };

/** Returns how a batch ends, from how its parts ended. */
function finalState({
  batches,
  cancelRequestedAt,
  counts,
}: StoredBatch): "completed" | "failed" | "expired" | "canceled" {
  const has = (outcome: BatchOutcome) => batches.some((one) => one.outcome === outcome);
  if (cancelRequestedAt !== undefined && (has("canceled") || counts.canceled > 0))
    return "canceled";
  if (has("expired") || has("canceled")) return "expired";
  const isFailed =
    batches.length > 0 &&
    batches.every(({ outcome }) => outcome === "failed" || outcome === "unreadable");
  return isFailed ? "failed" : "completed";
}
