// Reads and writes tar streams in the POSIX ustar format. Supports only plain files with names of
// up to 100 bytes.

const BLOCK = 512;
const EMPTY = Buffer.alloc(BLOCK);
/** First size that 11 octal digits cannot hold. Such sizes have a binary encoding. */
const OCTAL = 8 ** 11;
const LONGEST_NAME = 100;

const padding = (size: number): Buffer => EMPTY.subarray(0, (BLOCK - (size % BLOCK)) % BLOCK);

/** Returns the header that precedes a file's bytes. */
export function createTarHeader(name: string, size: number, at: number): Buffer {
  const head = Buffer.alloc(BLOCK);
  if (Buffer.byteLength(name) > LONGEST_NAME) throw new RangeError(`The name ${name} is too long.`);
  const octal = (value: number, from: number, digits: number) =>
    head.write(value.toString(8).padStart(digits, "0"), from, "ascii");
  head.write(name, 0);
  octal(0o600, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  if (size < OCTAL) octal(size, 124, 11);
  else {
    head[124] = 0x80;
    head.writeBigUInt64BE(BigInt(size), 128);
  }
  octal(Math.floor(at / 1_000), 136, 11);
  head.fill(" ", 148, 156);
  head.write("0", 156);
  head.write("ustar\u000000", 257, "latin1");
  const sum = head.reduce((all, byte) => all + byte, 0);
  head.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return head;
}

/** Returns the padding that follows a file's bytes. */
export const tarPadding = padding;
/** The end of the archive, after the last file. */
export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK);

/** One file of a stream. Its bytes must be read or skipped before the next file is available. */
export interface TarFile {
  readonly name: string;
  readonly size: number;
  readonly bytes: AsyncIterable<Buffer>;
}

/**
 * Returns the files of a tar stream in order. Throws if the stream is not a tar archive, contains
 * anything but plain files, or is truncated. The stream is always closed, because the source file
 * would otherwise stay open.
 */
export async function* readTar(stream: AsyncIterable<Uint8Array>): AsyncGenerator<TarFile, void> {
  const source = new ByteReader(stream);
  try {
    yield* filesOf(source);
  } finally {
    await source.end();
  }
}

async function* filesOf(source: ByteReader): AsyncGenerator<TarFile, void> {
  for (;;) {
    const head = await source.exactly(BLOCK);
    if (head.every((byte) => byte === 0)) return;
    const { name, size } = parseHeader(head);
    let left = size;
    async function* bytes(): AsyncGenerator<Buffer, void> {
      while (left > 0) {
        const some = await source.some(left);
        left -= some.length;
        yield some;
      }
    }
    yield { name, size, bytes: bytes() };
    while (left > 0) left -= (await source.some(left)).length;
    await source.exactly(padding(size).length);
  }
}

const failCorrupt = (): never => {
  throw new Error("The file is not a backup or is damaged.");
};

function parseHeader(head: Buffer): { name: string; size: number } {
  const text = (from: number, to: number): string =>
    head.toString("utf8", from, to).replace(/\0[^]*$/, "");
  let sum = 8 * 32;
  for (let i = 0; i < BLOCK; i++) if (i < 148 || i >= 156) sum += head[i]!;
  if (Number.parseInt(text(148, 156), 8) !== sum || text(257, 262) !== "ustar") failCorrupt();
  if (text(156, 157) !== "0" && text(156, 157) !== "") failCorrupt();
  const size =
    head[124] === 0x80
      ? Number(head.readBigUInt64BE(128))
      : Number.parseInt(text(124, 136).trim(), 8);
  if (!Number.isSafeInteger(size) || size < 0) failCorrupt();
  return { name: text(0, LONGEST_NAME), size };
}

/** Reads a stream in pieces of a chosen size. */
class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  async end(): Promise<void> {
    await this.#chunks.return?.();
  }

  /** Returns the bytes that are available, up to `most`. */
  async some(most: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#chunks.next();
      if (done) throw new Error("The file is truncated.");
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const some = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(some.length);
    return some;
  }

  async exactly(size: number): Promise<Buffer> {
    const whole: Buffer[] = [];
    for (let left = size; left > 0;) {
      const some = await this.some(left);
      whole.push(some);
      left -= some.length;
    }
    return Buffer.concat(whole);
  }
}
