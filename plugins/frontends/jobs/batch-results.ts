// Reads the results of a batch: each line is billed, and its response is written to the files that the
// client reads. Reading may be repeated from its beginning, and bills nothing twice.
import {
  fail,
  getFault,
  inputTokens,
  type BatchResult,
  type JobLines,
  type LineResponse,
} from "tollgate/plugin";
import type { LineHeader } from "./batch-planner.ts";
import type {
  BatchData,
  BatchOutcome,
  BatchUsage,
  LineCounts,
  ProviderBatch,
  StoredBatch,
} from "./batch-record.ts";
import { FileService } from "./file-service.ts";
import { BlobWriter, readLineFile, SpanReader } from "./line-files.ts";
import { splitAllLines } from "./line-text.ts";
import type { Owner } from "./owned-records.ts";
import { resultFormats, type ResultFormat } from "./result-formats.ts";
import type { Storage } from "./storage.ts";

/** Number of lines that are billed at the same time. */
const CONCURRENT_LINES = 256;
/** Number of times that missing results are waited for. */
const MISSING_RETRIES = 6;

interface ReadOptions {
  readonly storage: Storage;
  readonly owner: Owner;
  readonly batch: StoredBatch;
  /** Aborts when another engine has the batch. */
  readonly signal: AbortSignal;
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

/** A line of the client, without its body. */
interface IndexedLine {
  readonly id: string;
  readonly batch: number;
  readonly holdNano: bigint | null;
  readonly bodyStart: number;
  readonly bodyEnd: number;
}

class ResultReader {
  readonly #storage: Storage;
  readonly #jobLines: JobLines;
  readonly #owner: Owner;
  readonly #batch: StoredBatch;
  readonly #signal: AbortSignal;
  readonly #format: ResultFormat;
  readonly #files: FileService;
  /** Lines without a result, by their number. */
  readonly #open = new Map<number, IndexedLine>();
  readonly #output: ResultFile;
  readonly #errors: ResultFile;
  readonly #spans: SpanReader;
  readonly #counts: { -readonly [M in keyof LineCounts]: number };
  readonly #usage: { -readonly [M in keyof BatchUsage]: number };
  #lostNano = 0n;
  /** Lines that are being billed, and the first error of one. */
  #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor({ storage, owner, batch, signal }: ReadOptions) {
    this.#storage = storage;
    this.#jobLines = storage.ctx.jobLines!;
    this.#owner = owner;
    this.#batch = batch;
    this.#signal = signal;
    this.#format = resultFormats[batch.format];
    this.#files = new FileService(storage);
    this.#output = new ResultFile(storage, batch.outputFile!);
    this.#errors = new ResultFile(storage, batch.errorFile!);
    this.#spans = new SpanReader(storage, owner, batch.lines);
    this.#counts = { total: batch.counts.total, succeeded: 0, failed: 0, canceled: 0, expired: 0 };
    this.#usage = { input: 0, cached: 0, output: 0, reasoning: 0 };
  }

  /** The file for lines that failed. */
  get #failures(): ResultFile {
    return this.#format.hasErrorFile ? this.#errors : this.#output;
  }

  async run(): Promise<Partial<BatchData>> {
    // An earlier attempt may have created them.
    for (const { id } of [this.#output, this.#errors]) await this.#storage.files.delete(id);
    await this.#indexLines();
    for (const [index, part] of this.#batch.batches.entries()) {
      const outcome = await this.#readPart(index, part);
      await this.#endPart(index, outcome, part);
    }
    return {
      counts: this.#counts,
      usage: this.#usage,
      lostNano: this.#lostNano.toString(),
      outputFile: await this.#store(this.#output, "output"),
      errorFile: await this.#store(this.#errors, "error"),
    };
  }

  async discard(): Promise<void> {
    await Promise.allSettled(this.#running);
    await this.#output.discard();
    await this.#errors.discard();
  }

  /** Finds all lines of the client, and writes the errors of invalid ones. */
  async #indexLines(): Promise<void> {
    const content = await readLineFile(this.#storage, this.#owner, this.#batch.lines);
    let position = 0;
    let header: LineHeader | undefined;
    for await (const line of splitAllLines(content)) {
      const start = position;
      position += line.length + 1;
      if (!header) {
        header = JSON.parse(line.toString()) as LineHeader;
        continue;
      }
      const { n, id, fault, batch, holdNano } = header;
      header = undefined;
      if (fault) {
        this.#counts.failed++;
        await this.#failures.write(this.#format.encodeFault(n, id, fault));
      } else {
        const hold = holdNano == null ? null : BigInt(holdNano);
        const end = start + line.length;
        this.#open.set(n, { id, batch: batch!, holdNano: hold, bodyStart: start, bodyEnd: end });
      }
    }
  }

  /** Reads the results of a provider batch. Returns how it ended. */
  async #readPart(
    index: number,
    { target, reference, outcome = "completed" }: ProviderBatch,
  ): Promise<BatchOutcome> {
    if (reference === undefined || outcome === "failed" || outcome === "lost") return outcome;
    const opened = this.#jobLines.openBatches(target, this.#signal);
    if (!opened) return "lost";
    const { batches, client } = opened;
    try {
      const status = await batches.poll(reference, client);
      for await (const result of batches.readResults(reference, status, client))
        await this.#start(index, result);
      await Promise.all(this.#running);
      this.#throwFailure();
      return outcome;
    } catch (error) {
      this.#throwFailure();
      if (getFault(error)?.kind !== "not_found") throw error;
      return "lost";
    }
  }

  /** Starts to bill a line. Waits while too many are billed. */
  async #start(index: number, result: BatchResult): Promise<void> {
    this.#throwFailure();
    this.#signal.throwIfAborted();
    const n = Number(result.id);
    const line = this.#open.get(n);
    // A repeated result, or one that was not requested.
    if (line?.batch !== index) return;
    this.#open.delete(n);
    const work: Promise<void> = this.#settle(n, line, result)
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => this.#running.delete(work));
    this.#running.add(work);
    if (this.#running.size >= CONCURRENT_LINES) await Promise.race(this.#running);
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }

  async #settle(n: number, line: IndexedLine, result: BatchResult): Promise<void> {
    if (result.outcome !== "answered") return this.#writeUnrun(n, line, result.outcome);
    const { record, path, labels, batches, account } = this.#batch;
    const body = await this.#spans.read(line.bodyStart, line.bodyEnd);
    const response = await this.#jobLines.settleLine({ path, body }, result, {
      attempt: record.attempt!,
      line: n,
      target: batches[line.batch]!.target,
      key: record.key,
      account,
      labels,
      holdNano: line.holdNano,
      pricedAt: record.createdAt,
    });
    this.#count(response);
    const file = response.status >= 400 ? this.#failures : this.#output;
    await file.write(this.#format.encodeResponse(n, line.id, response));
  }

  #count({ status, call }: LineResponse): void {
    this.#counts[status < 400 ? "succeeded" : "failed"]++;
    if (!call) return;
    const { usage } = call;
    this.#usage.input += inputTokens(usage);
    this.#usage.cached += usage.cache_read ?? 0;
    this.#usage.output += usage.output ?? 0;
    this.#usage.reasoning += usage.reasoning ?? 0;
  }

  /** Writes the lines of a provider batch that have no result. */
  async #endPart(index: number, outcome: BatchOutcome, { message }: ProviderBatch): Promise<void> {
    const isMissing = [...this.#open.values()].some(({ batch }) => batch === index);
    if (!isMissing) return;
    if (outcome === "completed" && (this.#batch.failures ?? 0) < MISSING_RETRIES)
      fail("unavailable", "The provider has not returned all results.");
    for (const [n, line] of this.#open) {
      if (line.batch !== index) continue;
      this.#open.delete(n);
      const isLost = outcome === "completed" || outcome === "lost";
      if (isLost) this.#lostNano += line.holdNano ?? 0n;
      await this.#writeUnrun(n, line, isLost ? "lost" : outcome, message);
    }
  }

  async #writeUnrun(
    n: number,
    { id }: IndexedLine,
    outcome: Exclude<BatchOutcome, "completed">,
    message?: string,
  ): Promise<void> {
    this.#counts[outcome === "canceled" || outcome === "expired" ? outcome : "failed"]++;
    await this.#failures.write(this.#format.encodeUnrun(n, id, outcome, message));
  }

  /** Creates the record of a file of results. Returns undefined if the file is empty. */
  async #store(file: ResultFile, name: string): Promise<string | undefined> {
    const written = await file.finish();
    if (!written) return undefined;
    const now = Date.now();
    const { bytes, key } = written;
    await this.#files.create(this.#owner, file.id, key, now, {
      bytes,
      filename: `batch_${this.#batch.record.id}_${name}.jsonl`,
      purpose: "batch_output",
      mime: "application/jsonl",
      expiresAt: now + this.#batch.keepMs,
    });
    return file.id;
  }
}

/** A file of results. It is created with its first line. */
class ResultFile {
  readonly id: string;
  readonly #storage: Storage;
  #writer: BlobWriter | undefined;

  constructor(storage: Storage, id: string) {
    this.#storage = storage;
    this.id = id;
  }

  async write(text: string): Promise<void> {
    this.#writer ??= new BlobWriter(this.#storage, this.id);
    await this.#writer.write(`${text}\n`);
  }

  async finish(): Promise<{ readonly bytes: number; readonly key: Uint8Array } | undefined> {
    const { key } = this.#writer ?? {};
    return key && { bytes: await this.#writer!.finish(), key };
  }

  async discard(): Promise<void> {
    await this.#writer?.discard();
  }
}
