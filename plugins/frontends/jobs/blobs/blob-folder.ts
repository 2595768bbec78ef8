// A folder of encrypted files. A file is complete or does not exist: it is written under another
// name and renamed when it is on disk.
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { openChunks, SEALED_BYTES, sealChunks, sealedSize, sealedSpan } from "./chunk-cipher.ts";

/** Age in milliseconds after which a file that no record names is deleted. */
const ORPHAN_MS = 24 * 3_600_000;
const PARTIAL = ".part";

/** Names and keys are of the caller. A name is a file name without a dot. */
export class BlobFolder {
  readonly #dir: () => string;

  constructor(dir: () => string) {
    this.#dir = dir;
  }

  /** Writes a file as it arrives and returns its size. Leaves nothing if it fails. */
  async write(name: string, key: Uint8Array, source: AsyncIterable<Uint8Array>): Promise<number> {
    const path = this.#path(name);
    // Two requests may write the same file, with the same content.
    const partial = `${path}.${randomBytes(6).toString("hex")}${PARTIAL}`;
    let bytes = 0;
    const counted = (async function* () {
      for await (const piece of source) {
        bytes += piece.length;
        yield piece;
      }
    })();
    const file = await this.#create(partial);
    try {
      // Continues after a write that the disk accepted in part.
      await file.writeFile(sealChunks(key, counted));
      await file.sync();
      await file.close();
      await rename(partial, path);
      return bytes;
    } catch (error) {
      await file.close().catch(() => undefined);
      await rm(partial, { force: true });
      throw error;
    }
  }

  /** Whether the file exists in this folder. */
  async has(name: string, bytes: number): Promise<boolean> {
    const found = await stat(this.#path(name)).catch(() => undefined);
    return found?.size === sealedSize(bytes);
  }

  /** Yields the bytes from `from` up to `to`. Throws if the file was changed. */
  async *read(
    name: string,
    key: Uint8Array,
    bytes: number,
    from = 0,
    to = bytes,
  ): AsyncGenerator<Buffer, void> {
    const span = sealedSpan(bytes, from, to);
    // Each piece is a chunk, so that pieces need not be joined.
    const sealed = createReadStream(this.#path(name), {
      start: span.from,
      end: span.to - 1,
      highWaterMark: SEALED_BYTES,
    });
    let [skip, left] = [span.skip, to - from];
    for await (const chunk of openChunks(key, bytes, span, sealed)) {
      const wanted = chunk.subarray(skip, skip + left);
      skip = 0;
      left -= wanted.length;
      if (wanted.length > 0) yield wanted;
    }
    if (left > 0) throw new Error(`The file ${name} is truncated.`);
  }

  async delete(name: string): Promise<void> {
    await rm(this.#path(name), { force: true });
  }

  /** Deletes files that no record names, which a crash left. Returns their number. */
  async sweep(isKnown: (name: string) => Promise<boolean>, now: number): Promise<number> {
    let deleted = 0;
    for (const entry of await readdir(this.#dir()).catch(() => [])) {
      const path = join(this.#dir(), entry);
      const found = await stat(path).catch(() => undefined);
      if (!found?.isFile() || found.mtimeMs > now - ORPHAN_MS) continue;
      if (!entry.endsWith(PARTIAL) && (await isKnown(entry))) continue;
      await rm(path, { force: true });
      deleted++;
    }
    return deleted;
  }

  /** Creates a file. If the folder is missing, creates it. */
  async #create(path: string): Promise<FileHandle> {
    try {
      return await open(path, "wx", 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      await mkdir(this.#dir(), { recursive: true, mode: 0o700 });
      return open(path, "wx", 0o600);
    }
  }

  /** Path of a file. Files that are not blobs have names of the same form. */
  pathOf(name: string): string {
    return join(this.#dir(), name);
  }

  #path = (name: string): string => this.pathOf(name);
}
