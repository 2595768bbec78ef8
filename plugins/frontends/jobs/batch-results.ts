// Reads the results of a batch: each line is billed, and its response is written to the files that the
// client reads. Reading may be repeated from its beginning, and bills nothing twice.
import {
  fail,
  getFault,
  type BatchResult,
  type JobLines,
  type LedgerEntry,
  type LineResponse,
} from "tollgate/plugin";
import {
  tokensOf,
  type BatchData,
  type BatchOutcome,
  type BatchUsage,
  type LineCounts,
  type LineFile,
  type ProviderBatch,
  type ResultFile,
  type StoredBatch,
} from "./batch-record.ts";
import { DirectLogs, type DirectResult } from "./direct-log.ts";
import { MAX_TURNS } from "./direct-run.ts";
import { LineWriter } from "./line-files.ts";
import { LineIndex } from "./line-index.ts";
import type { Owner } from "./owned-records.ts";
import { resultFormats, type ResultFormat } from "./result-formats.ts";
import type { Storage } from "./storage.ts";

/** Number of lines that are billed at the same time. */
const CONCURRENT_LINES = 64;
/**
 * Number of reads that may lack results. Other failures do not count: a line is lost only if the
 * provider has returned its results without it this many times.
 */
const MAX_INCOMPLETE_READS = 6;
const DIRECT_LOST =
  "The gateway stopped while it ran this request. Its result is unknown, and it was not sent again.";
const LINES_UNREADABLE = "The gateway could not read the lines of this batch for a day.";

interface ReadOptions {
  readonly storage: Storage;
  readonly owner: Owner;
  readonly batch: StoredBatch;
  /** Aborts when another engine has the batch. */
  readonly signal: AbortSignal;
  /** Called before the results of a provider batch are read. */
  readonly onPart: (index: number) => void;
  /** Called when the results were read and some are missing. They are read again. */
  readonly onIncomplete: () => void;
}

/** Reads all results. Returns the data of the batch to store. */
export async function readResults(options: ReadOptions): Promise<Partial<BatchData>> {
  const reader = new ResultReader(options);
  try {
    return await reader.run();
  } catch (error) {
    await reader.discard();
    throw error;
  }
}

/** Cost of a line in the ledger. */
interface LineBill {
  /** Sum of all its calls, in billionths of a US dollar. */
  readonly costNano: bigint;
  /** Its call that is open. Undefined if there is none. */
  readonly open: { readonly attempt: string; readonly holdNano: bigint } | undefined;
  /** Target of its first call that is billed or open. Undefined if there is none. */
  readonly target: LedgerEntry["target"] | undefined;
}

class ResultReader {
  readonly #storage: Storage;
  readonly #jobLines: JobLines;
  readonly #owner: Owner;
  readonly #batch: StoredBatch;
  readonly #signal: AbortSignal;
  readonly #format: ResultFormat;
  readonly #onPart: ReadOptions["onPart"];
  readonly #onIncomplete: ReadOptions["onIncomplete"];
  readonly #output: ResultWriter;
  readonly #errors: ResultWriter;
  readonly #counts: { -readonly [M in keyof LineCounts]: number };
  readonly #usage: { -readonly [M in keyof BatchUsage]: number };
  #lostNano = 0n;
  #costNano = 0n;
  /** Lines that are being billed, and the first error of one. */
  #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor({ storage, owner, batch, signal, onPart, onIncomplete }: ReadOptions) {
    this.#storage = storage;
    this.#jobLines = storage.ctx.jobLines!;
    this.#owner = owner;
    this.#batch = batch;
    this.#signal = signal;
    this.#onPart = onPart;
    this.#onIncomplete = onIncomplete;
    this.#format = resultFormats[batch.format];
    this.#output = new ResultWriter(storage, owner);
    this.#errors = new ResultWriter(storage, owner);
    this.#counts = { total: batch.counts.total, succeeded: 0, failed: 0, canceled: 0, expired: 0 };
    this.#usage = { input: 0, cached: 0, output: 0, reasoning: 0 };
  }

  /** The file for lines that failed. */
  get #failures(): ResultWriter {
    return this.#format.hasErrorFile ? this.#errors : this.#output;
  }

  async run(): Promise<Partial<BatchData>> {
    let lines: LineIndex;
    try {
      lines = await this.#indexLines();
    } catch (error) {
      this.#signal.throwIfAborted();
      if (!this.#batch.areLinesUnreadable) throw error;
      await this.discard();
      return this.#endWithoutLines();
    }
    const batches: ProviderBatch[] = [];
    for (const [index, part] of this.#batch.batches.entries()) {
      this.#onPart(index);
      const outcome = await this.#readPart(lines, index, part);
      await this.#endPart(lines, index, outcome, part);
      batches.push(outcome === "unreadable" ? { ...part, outcome } : part);
    }
    return {
      batches,
      counts: this.#counts,
      usage: this.#usage,
      ...this.#costs(),
      ...(await this.#finishFiles()),
    };
  }

  #indexLines(): Promise<LineIndex> {
    return LineIndex.create(this.#storage, this.#owner, {
      file: this.#batch.lines,
      count: this.#batch.counts.total,
      onFault: ({ n, id, fault }) => {
        this.#counts.failed++;
        return this.#failures.write(this.#format.encodeFault(n, id, fault!));
      },
    });
  }

  /**
   * Ends a batch whose lines cannot be read. The batch has no result files, because the IDs of its
   * lines are unknown. Parts that a provider may have run are billed as estimates.
   */
  async #endWithoutLines(): Promise<Partial<BatchData>> {
    const { batches: parts, counts: planned } = this.#batch;
    const counts = { ...planned };
    let run = 0;
    let holdNano = 0n;
    const direct = new Set<string>();
    const batches = parts.map((part): ProviderBatch => {
      const { provider, model, isDirect } = part.target;
      if (isDirect) {
        // Each line that was sent has a row, so nothing is estimated.
        direct.add(`${provider}/${model}`);
        counts.failed += part.count;
        return { ...part, outcome: "unreadable", message: part.message ?? LINES_UNREADABLE };
      }
      const { outcome = "completed", reference, count } = part;
      const isUnsent = reference === undefined && outcome !== "lost";
      counts[isUnsent && (outcome === "canceled" || outcome === "expired") ? outcome : "failed"] +=
        count;
      if (isUnsent || outcome === "failed") return part;
      run += count;
      holdNano += BigInt(part.holdNano ?? "0");
      return { ...part, outcome: "unreadable", message: part.message ?? LINES_UNREADABLE };
    });
    let billed = 0;
    const claimed = this.#batch.direct?.claimed ?? 0;
    for (let n = 1; run + direct.size > 0 && n <= counts.total; n++) {
      this.#signal.throwIfAborted();
      const bill = await this.#findBill(n, n <= claimed ? MAX_TURNS : 1);
      const { costNano, target } = bill;
      if (!target) continue;
      this.#costNano += costNano;
      if (direct.has(`${target.provider}/${target.model}`)) continue;
      billed++;
      await this.#endOpenCall(bill);
    }
    // The part of each bill is unknown, so each line counts as an average line.
    const unbilled = Math.max(0, run - billed);
    this.#lostNano = run > 0 ? (holdNano * BigInt(unbilled)) / BigInt(run) : 0n;
    return { batches, counts, usage: this.#usage, ...this.#costs() };
  }

  #costs(): Pick<BatchData, "lostNano" | "costNano"> {
    return {
      lostNano: this.#lostNano.toString(),
      costNano: (this.#costNano + this.#lostNano).toString(),
    };
  }

  async discard(): Promise<void> {
    await Promise.allSettled(this.#running);
    await this.#output.discard();
    await this.#errors.discard();
  }

  /** Reads the results of a provider batch. Returns how it ended. */
  async #readPart(
    lines: LineIndex,
    index: number,
    { target, reference, outcome = "completed", isUnreadable }: ProviderBatch,
  ): Promise<BatchOutcome> {
    if (target.isDirect) return this.#readDirect(lines, index, outcome, isUnreadable);
    if (reference === undefined || outcome === "failed" || outcome === "lost") return outcome;
    const opened = this.#jobLines.openBatches(target, this.#signal);
    if (!opened) return "lost";
    const { batches, client } = opened;
    try {
      const status = await batches.poll(reference, client);
      for await (const result of batches.readResults(reference, status, client))
        await this.#start(lines, index, result);
      await this.#finishRunning();
      return outcome;
    } catch (error) {
      await Promise.allSettled(this.#running);
      const failure = this.#failure?.error ?? error;
      this.#signal.throwIfAborted();
      if (isUnreadable) {
        this.#failure = undefined;
        return "unreadable";
      }
      if (this.#failure || getFault(failure)?.kind !== "not_found") throw failure;
      return "lost";
    }
  }

  /** Reads the results of lines that the gateway sent itself. They are billed. */
  async #readDirect(
    lines: LineIndex,
    index: number,
    outcome: BatchOutcome,
    isUnreadable: boolean | undefined,
  ): Promise<BatchOutcome> {
    const { record, direct } = this.#batch;
    try {
      const logs = new DirectLogs(this.#storage, this.#owner, record.id, direct!);
      for await (const result of logs.read(direct!.logs)) {
        this.#signal.throwIfAborted();
        const { n } = result;
        if (!lines.isOpen(n, index)) continue;
        lines.close(n);
        const { id } = await lines.read(n);
        await this.#writeDirect(id, result);
      }
      return outcome;
    } catch (error) {
      if (!isUnreadable) throw error;
      return "unreadable";
    }
  }

  async #writeDirect(id: string, result: DirectResult): Promise<void> {
    const { n } = result;
    if ("fault" in result) {
      this.#counts.failed++;
      return this.#failures.write(this.#format.encodeFault(n, id, result.fault));
    }
    const { status, usage, costNano } = result;
    this.#counts[status < 400 ? "succeeded" : "failed"]++;
    this.#costNano += BigInt(costNano);
    this.#addUsage(usage);
    const file = status >= 400 ? this.#failures : this.#output;
    return file.write(this.#format.encodeResponse(n, id, result));
  }

  /** Writes a line that the gateway did not send, or whose result it did not receive. */
  async #endDirectLine(
    lines: LineIndex,
    n: number,
    outcome: BatchOutcome,
    part: ProviderBatch,
  ): Promise<void> {
    const { claimed, unsent = [] } = this.#batch.direct!;
    const { id } = await lines.read(n);
    const isUnsent = n > claimed || unsent.some(([one]) => one === n);
    const ended = outcome === "completed" || outcome === "lost" ? "expired" : outcome;
    if (isUnsent) return this.#writeUnrun(n, id, ended, part.message);
    const { costNano, open } = await this.#findBill(n, MAX_TURNS);
    if (open) this.#requireComplete(part, "A request of the batch has not ended.");
    this.#costNano += costNano;
    return this.#writeUnrun(n, id, "lost", DIRECT_LOST);
  }

  /** Returns the cost of a line in its first turns. Each turn has its own calls. */
  async #findBill(n: number, maxTurns: number): Promise<LineBill> {
    const { listEntries } = this.#storage.ctx.ledger;
    const request = `${this.#batch.record.attempt}.${n}`;
    let costNano = 0n;
    let open: LineBill["open"];
    let target: LineBill["target"];
    // A turn has no row if its provider was known to be unavailable, so later turns can have one.
    // A turn that was billed is the last one.
    for (let turn = 1; turn <= maxTurns && !target; turn++)
      for (let call = 1; ; call++) {
        const attempt = `${request}${turn > 1 ? `-${turn}` : ""}.${call}`;
        const { items } = await listEntries({ attempt }, { limit: 100 });
        if (items.length === 0) break;
        const settled = items.filter(({ kind }) => kind !== "reserve");
        const billed = settled.filter(({ state }) => state !== "void");
        for (const entry of billed) costNano += entry.costNano ?? 0n;
        if (settled.length === 0) {
          open = { attempt, holdNano: items[0]!.holdNano ?? 0n };
          // Recovery, or the end of the line, bills it with its reservation.
          costNano += open.holdNano;
        }
        if (settled.length === 0 || billed.length > 0) target ??= items[0]!.target;
      }
    return { costNano, open, target };
  }

  /**
   * Ends the call of a line that was left open until its result is processed again. There will be no
   * result, and recovery ends only calls of other gateways.
   */
  async #endOpenCall({ open }: LineBill): Promise<void> {
    if (!open) return;
    const { attempt, holdNano: costNano } = open;
    await this.#jobLines.settleJob(attempt, { costNano, outcome: "upstream" });
  }

  /** Throws if missing results can still come. */
  #requireComplete({ incompleteReads = 0 }: ProviderBatch, message: string): void {
    if (incompleteReads >= MAX_INCOMPLETE_READS) return;
    this.#onIncomplete();
    fail("unavailable", message);
  }

  async #finishRunning(): Promise<void> {
    await Promise.all(this.#running);
    this.#throwFailure();
  }

  /** Starts to bill a line. Waits while too many are billed. */
  async #start(lines: LineIndex, index: number, result: BatchResult): Promise<void> {
    this.#throwFailure();
    this.#signal.throwIfAborted();
    const n = Number(result.id);
    // A repeated result, or one that was not requested.
    if (!lines.isOpen(n, index)) return;
    lines.close(n);
    const work: Promise<void> = this.#settle(lines, n, index, result)
      .catch((error: unknown) => {
        lines.reopen(n, index);
        this.#failure ??= { error };
      })
      .finally(() => this.#running.delete(work));
    this.#running.add(work);
    if (this.#running.size >= CONCURRENT_LINES) await Promise.race(this.#running);
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }

  async #settle(lines: LineIndex, n: number, index: number, result: BatchResult): Promise<void> {
    const line = await lines.read(n);
    if (result.outcome !== "answered") return this.#writeUnrun(n, line.id, result.outcome);
    const { record, path, labels, batches, account } = this.#batch;
    const response = await this.#jobLines.settleLine({ path, body: line.body }, result, {
      attempt: record.attempt!,
      line: n,
      target: batches[index]!.target,
      key: record.key,
      account,
      labels,
      holdNano: line.holdNano,
      pricedAt: record.createdAt,
      price: line.price ?? undefined,
      stopping: this.#signal,
      isLastAttempt: batches[index]!.isUnreadable,
    });
    this.#count(response);
    const file = response.status >= 400 ? this.#failures : this.#output;
    await file.write(this.#format.encodeResponse(n, line.id, response));
  }

  #count({ status, call }: LineResponse): void {
    this.#counts[status < 400 ? "succeeded" : "failed"]++;
    if (!call) return;
    this.#costNano += call.costNano ?? 0n;
    this.#addUsage(tokensOf(call.usage));
  }

  #addUsage(usage: BatchUsage): void {
    for (const member of ["input", "cached", "output", "reasoning"] as const)
      this.#usage[member] += usage[member];
  }

  /** Writes the lines of a provider batch that have no result. */
  async #endPart(
    lines: LineIndex,
    index: number,
    outcome: BatchOutcome,
    part: ProviderBatch,
  ): Promise<void> {
    if (!lines.hasOpen(index)) return;
    const { target, message } = part;
    if (!target.isDirect && outcome === "completed")
      this.#requireComplete(part, "The provider has not returned all results.");
    for (const n of lines.open(index)) {
      this.#signal.throwIfAborted();
      if (target.isDirect) {
        await this.#endDirectLine(lines, n, outcome, part);
        continue;
      }
      const { id, holdNano } = await lines.read(n);
      const end = outcome === "completed" ? "lost" : outcome;
      const isEstimated = end === "lost" || end === "unreadable";
      // The line may have been billed when the results were read before.
      const bill = isEstimated ? await this.#findBill(n, 1) : undefined;
      if (bill) await this.#endOpenCall(bill);
      if (bill?.target) this.#costNano += bill.costNano;
      else if (isEstimated) this.#lostNano += holdNano ?? 0n;
      await this.#writeUnrun(n, id, end, message);
    }
  }

  async #writeUnrun(
    n: number,
    id: string,
    outcome: Exclude<BatchOutcome, "completed">,
    message?: string,
  ): Promise<void> {
    this.#counts[outcome === "canceled" || outcome === "expired" ? outcome : "failed"]++;
    await this.#failures.write(this.#format.encodeUnrun(n, id, outcome, message));
  }

  /** Returns the files that are not empty. Their records are created when the batch ends. */
  async #finishFiles(): Promise<Pick<BatchData, "outputFile" | "errorFile" | "results">> {
    const { record, keepMs } = this.#batch;
    const expiresAt = Date.now() + keepMs;
    const results: ResultFile[] = [];
    const finish = async (file: ResultWriter, kind: string) => {
      const written = await file.finish();
      if (!written) return undefined;
      results.push({ ...written, filename: `batch_${record.id}_${kind}.jsonl`, expiresAt });
      return written.name;
    };
    const outputFile = await finish(this.#output, "output");
    const errorFile = await finish(this.#errors, "error");
    return { outputFile, errorFile, results };
  }
}

/**
 * Writes a file of results, which is created with its first line. Each attempt writes new files, so
 * that a gateway that lost its lease cannot replace those of another one.
 */
class ResultWriter {
  readonly #storage: Storage;
  readonly #owner: Owner;
  #writer: LineWriter | undefined;

  constructor(storage: Storage, owner: Owner) {
    this.#storage = storage;
    this.#owner = owner;
  }

  async write(text: string): Promise<void> {
    if (!this.#writer) {
      const id = this.#storage.secrets.createId("file", this.#owner.name);
      this.#writer = new LineWriter(this.#storage, this.#owner, id);
    }
    await this.#writer.write(`${text}\n`);
  }

  async finish(): Promise<LineFile | undefined> {
    return this.#writer?.finish();
  }

  async discard(): Promise<void> {
    await this.#writer?.discard();
  }
}
