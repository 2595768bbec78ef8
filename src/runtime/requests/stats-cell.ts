// Counters of one series in one time slot, and their encoding, which stores only nonzero values.

/**
 * Counters in the order of their encoding. Only append to this list, because data from earlier
 * versions must stay readable.
 */
export const COUNTS = [
  "requests",
  /** The provider or the gateway failed. */
  "failed",
  /** The gateway rejected the request, or the request was invalid. */
  "refused",
  /** The client disconnected. */
  "canceled",
  "cached",
  "calls",
  "unpriced",
  "estimated",
  "costNano",
  "input",
  "output",
  "private",
] as const;

type CountName = (typeof COUNTS)[number];
const COUNT_INDEX = Object.fromEntries(COUNTS.map((name, i) => [name, i])) as Record<
  CountName,
  number
>;

/** Units of overhead per millisecond. The gateway's own time is often below 1 ms. */
export const OVERHEAD_UNITS_PER_MS = 100;

export class StatsCell {
  readonly #counts = new Float64Array(COUNTS.length);
  /** Durations from the first byte of a request to its end. */
  readonly total = new Uint32Array(DURATION_CLASSES);
  /** Encoded as one array, because earlier versions ignore the second half. */
  readonly #laterHistograms = new Uint32Array(2 * DURATION_CLASSES);
  /** Durations to the first token. */
  readonly firstToken = this.#laterHistograms.subarray(0, DURATION_CLASSES);
  /** The gateway's own time, in classes of 1 / `OVERHEAD_UNITS_PER_MS` milliseconds. */
  readonly overhead = this.#laterHistograms.subarray(DURATION_CLASSES);

  get(count: CountName): number {
    return this.#counts[COUNT_INDEX[count]]!;
  }

  increment(count: CountName, by = 1): void {
    this.#counts[COUNT_INDEX[count]]! += by;
  }

  add(other: StatsCell): void {
    for (let i = 0; i < COUNTS.length; i++) this.#counts[i]! += other.#counts[i]!;
    for (let i = 0; i < DURATION_CLASSES; i++) this.total[i]! += other.total[i]!;
    for (let i = 0; i < 2 * DURATION_CLASSES; i++)
      this.#laterHistograms[i]! += other.#laterHistograms[i]!;
  }

  write(into: CellWriter): void {
    into.writeSparse(this.#counts);
    into.writeSparse(this.total);
    into.writeSparse(this.#laterHistograms);
  }

  read(from: CellReader): this {
    from.readSparse(this.#counts);
    from.readSparse(this.total);
    from.readSparse(this.#laterHistograms);
    return this;
  }
}

/** Skips an encoded cell. */
export function skipCell(from: CellReader): void {
  for (let sparse = 3; sparse > 0; sparse--)
    for (let n = from.readInteger() * 2; n > 0; n--) from.readInteger();
}

/** Encodes integers with 7 bits per byte. Costs can be negative, so the sign is the lowest bit. */
export class CellWriter {
  #bytes = Buffer.allocUnsafe(1024);
  #length = 0;

  writeInteger(value: number): void {
    this.#ensure(10);
    let rest = value;
    while (rest >= 128) {
      this.#bytes[this.#length++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#length++] = rest;
  }

  writeText(text: string): void {
    const bytes = Buffer.from(text);
    this.writeInteger(bytes.length);
    this.#ensure(bytes.length);
    this.#length += bytes.copy(this.#bytes, this.#length);
  }

  /**
   * Writes the number of nonzero values, then each value with its distance from the previous one.
   */
  writeSparse(values: ArrayLike<number>): void {
    const there: number[] = [];
    for (let i = 0; i < values.length; i++) if (values[i] !== 0) there.push(i);
    this.writeInteger(there.length);
    let before = 0;
    for (const i of there) {
      const value = values[i]!;
      this.writeInteger(i - before);
      this.writeInteger(Math.abs(value) * 2 + (value < 0 ? 1 : 0));
      before = i;
    }
  }

  toBuffer(): Buffer {
    return copyToOwnBuffer(this.#bytes.subarray(0, this.#length));
  }

  #ensure(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const wider = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    this.#bytes.copy(wider);
    this.#bytes = wider;
  }
}

/**
 * Copies bytes into a separate buffer for long-term storage. A slice of Node's buffer pool would
 * keep 64 KB in memory for 100 bytes.
 */
export function copyToOwnBuffer(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}

/** Reads data from a `CellWriter`. Throws if the data is invalid. */
export class CellReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  readInteger(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined || factor > 2 ** 56) throw new RangeError("The file is truncated.");
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  }

  readText(): string {
    return Buffer.from(this.readBytes()).toString();
  }

  readBytes(): Uint8Array {
    const length = this.readInteger();
    if (this.#at + length > this.#bytes.length) throw new RangeError("The file is truncated.");
    return this.#bytes.subarray(this.#at, (this.#at += length));
  }

  readSparse(into: Float64Array | Uint32Array): void {
    let at = 0;
    for (let n = this.readInteger(); n > 0; n--) {
      at += this.readInteger();
      const value = this.readInteger();
      // Counters of a later version are skipped.
      if (at < into.length) into[at] = (value % 2 === 1 ? -1 : 1) * Math.floor(value / 2);
    }
  }
}

// Counts durations in classes from 1 ms to 1 hour. Each class is about 20% wider than the previous
// one, so a quantile is off by at most about 10%. Two histograms can be added.

export const DURATION_CLASSES = 88;
const MAX_MS = 3_600_000;
const CLASS_WIDTH = Math.log(MAX_MS) / DURATION_CLASSES;

export const classOf = (ms: number): number =>
  ms > 1 ? Math.min(DURATION_CLASSES - 1, Math.floor(Math.log(ms) / CLASS_WIDTH)) : 0;

/**
 * Returns the geometric middle of a class, in milliseconds. All durations of the class are assumed
 * to have this value.
 */
const midpointOf = (at: number): number => Math.exp((at + 0.5) * CLASS_WIDTH);

/** Returns a quantile in milliseconds, or undefined if nothing was counted. */
export function quantile(counts: ArrayLike<number>, share: number): number | undefined {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i]!;
  if (total === 0) return undefined;
  let remaining = Math.max(1, Math.ceil(total * share));
  for (let i = 0; i < counts.length; i++) {
    remaining -= counts[i]!;
    if (remaining <= 0) return Math.round(midpointOf(i) * 10) / 10;
  }
  return undefined;
}
