// Files of the gateway that contain lines of batches: they are written line by line, and one line can
// be read without the lines before it.
import { randomBytes } from "node:crypto";
import { PassThrough } from "node:stream";
import { once } from "node:events";
import type { LineFile } from "./batch-record.ts";
import { releasePieces } from "./blobs/release-pieces.ts";
import type { Owner } from "./owned-records.ts";
import type { Storage } from "./storage.ts";

/** Minimum number of bytes per read. */
const WINDOW_BYTES = 256 * 1024;
/** Bytes that are joined before they are encrypted. */
const JOIN_BYTES = 64 * 1024;

/** Content that is written piece by piece. It exists when it is finished. */
export class BlobWriter {
  readonly #storage: Storage;
  readonly #name: string;
  readonly key = randomBytes(32);
  readonly #stream = new PassThrough({ highWaterMark: JOIN_BYTES });
  readonly #written: Promise<number>;
  #pending: string[] = [];
  #pendingLength = 0;

  constructor(storage: Storage, name: string) {
    this.#storage = storage;
    this.#name = name;
    this.#written = storage.blobs.write(name, this.key, releasePieces(this.#stream));
    // An error is thrown by the next call.
    this.#written.catch((error: Error) => this.#stream.destroy(error));
    this.#stream.on("error", () => {});
  }

  /** Returns a promise only if the caller has to wait for the disk. */
  write(text: string): Promise<void> | undefined {
    this.#pending.push(text);
    this.#pendingLength += text.length;
    return this.#pendingLength < JOIN_BYTES ? undefined : this.#flush();
  }

  async #flush(): Promise<void> {
    const text = this.#pending.join("");
    [this.#pending, this.#pendingLength] = [[], 0];
    if (this.#stream.destroyed) await this.#written;
    if (!this.#stream.write(text)) await Promise.race([once(this.#stream, "drain"), this.#written]);
  }

  /** Returns the size when everything is on disk. */
  async finish(): Promise<number> {
    await this.#flush();
    this.#stream.end();
    return this.#written;
  }

  /** Deletes what was written. */
  async discard(): Promise<void> {
    this.#stream.destroy(new Error("discarded"));
    await this.#written.catch(() => undefined);
    await this.#storage.blobs.delete(this.#name);
  }
}

/** A file of lines that is being written. */
export class LineWriter {
  readonly #storage: Storage;
  readonly #owner: Owner;
  readonly name: string;
  readonly #blob: BlobWriter;

  constructor(storage: Storage, owner: Owner, name: string) {
    this.#storage = storage;
    this.#owner = owner;
    this.name = name;
    this.#blob = new BlobWriter(storage, name);
  }

  write(text: string): Promise<void> | undefined {
    return this.#blob.write(text);
  }

  async finish(): Promise<LineFile> {
    const bytes = await this.#blob.finish();
    const { name } = this;
    return {
      name,
      bytes,
      key: this.#storage.secrets.wrapKey(this.#owner.name, name, this.#blob.key),
    };
  }

  discard(): Promise<void> {
    return this.#blob.discard();
  }
}

/** Returns the content of a file of lines. */
export async function readLineFile(
  storage: Storage,
  owner: Owner,
  { name, bytes, key }: LineFile,
): Promise<AsyncIterable<Uint8Array>> {
  await storage.requireBlob(name, bytes);
  return storage.blobs.read(name, storage.secrets.unwrapKey(owner.name, name, key), bytes);
}

/** Reads spans of a file. Spans that follow each other are read together. */
export class SpanReader {
  readonly #storage: Storage;
  readonly #file: LineFile;
  readonly #key: Uint8Array;
  #window = Buffer.alloc(0);
  #windowStart = 0;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(storage: Storage, owner: Owner, file: LineFile) {
    this.#storage = storage;
    this.#file = file;
    this.#key = storage.secrets.unwrapKey(owner.name, file.name, file.key);
  }

  /** Reads one span after the other, so that concurrent reads of near spans share a window. */
  read(from: number, to: number): Promise<Buffer> {
    const reading = this.#reading.then(() => this.#readNow(from, to));
    this.#reading = reading.catch(() => undefined);
    return reading;
  }

  async #readNow(from: number, to: number): Promise<Buffer> {
    const start = this.#windowStart;
    if (from < start || to > start + this.#window.length) {
      const { name, bytes } = this.#file;
      const end = Math.min(bytes, Math.max(to, from + WINDOW_BYTES));
      const pieces: Buffer[] = [];
      for await (const piece of this.#storage.blobs.read(name, this.#key, bytes, from, end))
        pieces.push(piece);
      this.#window = Buffer.concat(pieces);
      this.#windowStart = from;
    }
    return this.#window.subarray(from - this.#windowStart, to - this.#windowStart);
  }
}
