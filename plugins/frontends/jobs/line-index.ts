// Finds the lines of a batch in their file. A large batch has up to 100,000 lines, so the index has
// a few bytes per line, and everything else is read when the line has its turn.
import type { Price } from "tollgate/plugin";
import type { LineHeader } from "./batch-planner.ts";
import { readLineFile, SpanReader } from "./line-files.ts";
import { splitAllLines } from "./line-text.ts";
import type { LineFile } from "./batch-record.ts";
import type { Owner } from "./owned-records.ts";
import type { Storage } from "./storage.ts";

/** Index of a provider batch in place of a line that is not open. */
const NOT_OPEN = 255;

/** A line of the client. */
export interface IndexedLine {
  readonly id: string;
  readonly holdNano: bigint | null;
  /** Price when the batch was created. */
  readonly price: Price | null;
  readonly body: Buffer;
}

/** The lines of a batch that have no result yet. */
export class LineIndex {
  /** Index of the provider batch of each open line, by the number of the line. */
  readonly #batches: Uint8Array;
  /** Position of the header of each line, of its body, and of its end. */
  readonly #starts: Float64Array;
  readonly #bodies: Float64Array;
  readonly #ends: Float64Array;
  /** Prices, and the one of each line. */
  readonly #prices: (Price | null)[] = [];
  readonly #priceOf: Uint32Array;
  readonly #spans: SpanReader;

  private constructor(count: number, spans: SpanReader) {
    this.#batches = new Uint8Array(count + 1).fill(NOT_OPEN);
    this.#starts = new Float64Array(count + 1);
    this.#bodies = new Float64Array(count + 1);
    this.#ends = new Float64Array(count + 1);
    this.#priceOf = new Uint32Array(count + 1);
    this.#spans = spans;
  }

  /**
   * Reads a file of lines once.
   * @param count Number of lines in the file.
   * @param onFault Called for each line that was rejected when the batch was created.
   */
  static async create(
    storage: Storage,
    owner: Owner,
    of: {
      readonly file: LineFile;
      readonly count: number;
      readonly onFault: (header: LineHeader) => Promise<void> | undefined;
    },
  ): Promise<LineIndex> {
    const { file, count, onFault } = of;
    const index = new LineIndex(count, new SpanReader(storage, owner, file));
    const latest = new Map<number, number>();
    let position = 0;
    let start = 0;
    let header: LineHeader | undefined;
    for await (const line of splitAllLines(await readLineFile(storage, owner, file))) {
      const from = position;
      position += line.length + 1;
      if (!header) {
        start = from;
        header = JSON.parse(line.toString()) as LineHeader;
        continue;
      }
      const { n, batch, price, fault } = header;
      if (fault) await onFault(header);
      else {
        if (price !== undefined) latest.set(batch!, index.#prices.push(price) - 1);
        index.#batches[n] = batch!;
        index.#starts[n] = start;
        index.#bodies[n] = from;
        index.#ends[n] = from + line.length;
        index.#priceOf[n] = latest.get(batch!)!;
      }
      header = undefined;
    }
    return index;
  }

  /** Whether a line of this provider batch has no result yet. */
  isOpen(n: number, batch: number): boolean {
    return this.#batches[n] === batch;
  }

  /** Removes a line, because it has a result. */
  close(n: number): void {
    this.#batches[n] = NOT_OPEN;
  }

  /** Adds a line again, because its result could not be processed. */
  reopen(n: number, batch: number): void {
    this.#batches[n] = batch;
  }

  /** Whether lines of a provider batch have no result. */
  hasOpen(batch: number): boolean {
    return this.#batches.includes(batch);
  }

  /** Returns the numbers of the lines of a provider batch without a result. */
  *open(batch: number): Generator<number, void> {
    for (let n = this.#batches.indexOf(batch); n >= 0; n = this.#batches.indexOf(batch, n + 1))
      yield n;
  }

  async read(n: number): Promise<IndexedLine> {
    const start = this.#starts[n]!;
    const text = await this.#spans.read(start, this.#ends[n]!);
    const body = this.#bodies[n]! - start;
    const { id, holdNano } = JSON.parse(text.subarray(0, body).toString()) as LineHeader;
    return {
      id,
      holdNano: holdNano == null ? null : BigInt(holdNano),
      price: this.#prices[this.#priceOf[n]!] ?? null,
      body: text.subarray(body),
    };
  }
}
