// What is counted of one series in one stretch of time, and how it is written down: a few bytes for what is not zero.
import { DURATION_CLASSES } from "./duration-classes.ts";

/** In the order in which they are written. Append only: what was written by an earlier version is read by this one. */
export const COUNTS = [
  "requests",
  /** The provider or the gateway failed. */
  "failed",
  /** The gateway said no, or what was asked was at fault. */
  "refused",
  /** The client went away. */
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

/** Of a millisecond: what the gateway itself takes is often less than one. */
export const OVERHEAD_UNITS_PER_MS = 100;

export class StatsCell {
  readonly #counts = new Float64Array(COUNTS.length);
  /** From the first byte of a request to its end. */
  readonly total = new Uint32Array(DURATION_CLASSES);
  /** Written as one: an earlier version passes the second half over. */
  readonly #laterHistograms = new Uint32Array(2 * DURATION_CLASSES);
  /** To the first content. */
  readonly firstToken = this.#laterHistograms.subarray(0, DURATION_CLASSES);
  /** The gateway's own time, in classes of `OWN_UNITS`. */
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

/** Passes over one that was written. */
export function skipCell(from: CellReader): void {
  for (let sparse = 3; sparse > 0; sparse--)
    for (let n = from.readInteger() * 2; n > 0; n--) from.readInteger();
}

/** Whole numbers, seven bits to a byte. Costs may be below nothing: their sign is the lowest bit. */
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

  /** How many are not zero, then each with its distance to the one before. */
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

/** What is kept for hours has memory of its own: a slice of Node's pool keeps 64 KB for a hundred bytes. */
export function copyToOwnBuffer(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}

/** Throws where it is not what a `CellWriter` has written. */
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
      if (byte === undefined || factor > 2 ** 56) throw new RangeError("It is cut off.");
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  }

  readText(): string {
    return Buffer.from(this.readBytes()).toString();
  }

  readBytes(): Uint8Array {
    const length = this.readInteger();
    if (this.#at + length > this.#bytes.length) throw new RangeError("It is cut off.");
    return this.#bytes.subarray(this.#at, (this.#at += length));
  }

  readSparse(into: Float64Array | Uint32Array): void {
    let at = 0;
    for (let n = this.readInteger(); n > 0; n--) {
      at += this.readInteger();
      const value = this.readInteger();
      // What a later version counts besides is passed over.
      if (at < into.length) into[at] = (value % 2 === 1 ? -1 : 1) * Math.floor(value / 2);
    }
  }
}
