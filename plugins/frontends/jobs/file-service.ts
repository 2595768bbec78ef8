// The files of all owners.
import { randomBytes } from "node:crypto";
import { fail } from "tollgate/plugin";
import type { Owner } from "./owned-records.ts";
import type { FileInfo, Storage, StoredFile } from "./storage.ts";

/** Content that is written before its record. */
export interface NewContent extends Disposable {
  /** Writes the content and returns its size. */
  write(content: AsyncIterable<Uint8Array>): Promise<number>;
  discard(): Promise<void>;
}
export interface NewFile extends NewContent {
  finish(bytes: number, createdAt: number, info: FileInfo): Promise<StoredFile>;
}

export class FileService {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Prepares a new file. Its content is written first, and its record when all fields are known. */
  async begin(owner: Owner): Promise<NewFile> {
    const { blobs, secrets } = this.#storage;
    const permit = await this.#storage.admit(owner);
    const id = secrets.createId("file", owner.name);
    const key = randomBytes(32);
    return {
      write: (content) => blobs.write(id, key, permit.limit(content)),
      discard: () => blobs.delete(id),
      finish: async (bytes, createdAt, info) => {
        const file = await this.create(owner, id, key, createdAt, { ...info, bytes });
        await this.#storage.keepWithinLimits(owner, () => this.delete(file));
        return file;
      },
      [Symbol.dispose]: () => permit[Symbol.dispose](),
    };
  }

  /** Creates the record of a file whose content is written. */
  create(
    owner: Owner,
    id: string,
    key: Uint8Array,
    createdAt: number,
    info: FileInfo & { readonly bytes: number },
  ): Promise<StoredFile> {
    const { files, secrets } = this.#storage;
    const wrapped = secrets.wrapKey(owner.name, id, key);
    return files.create(owner, id, createdAt, { ...info, key: wrapped });
  }

  async find(owner: Owner, id: string): Promise<StoredFile> {
    const { files, secrets } = this.#storage;
    const own = secrets.parseId(id, "file", owner.name);
    const found = own === undefined ? undefined : await files.find(owner, own, Date.now());
    return found ?? fail("not_found", `No such File object: ${id}`, { param: "id" });
  }

  list(owner: Owner): Promise<readonly StoredFile[]> {
    return this.#storage.files.list(owner, Date.now());
  }

  async delete({ id }: Pick<StoredFile, "id">): Promise<void> {
    await this.#storage.files.delete(id);
    await this.#storage.blobs.delete(id);
  }

  /** Returns the content of a file. */
  async read(owner: Owner, { id, bytes, key }: StoredFile): Promise<AsyncIterable<Uint8Array>> {
    const { blobs, secrets } = this.#storage;
    await this.#storage.requireBlob(id, bytes);
    return blobs.read(id, secrets.unwrapKey(owner.name, id, key), bytes);
  }

  /** Deletes what has expired, and content that a crash left. */
  async sweep(): Promise<void> {
    const { ctx, files, uploads, blobs, jobs } = this.#storage;
    const now = Date.now();
    for (let more = true; more;) {
      const ended = await files.deleteExpired(now, ctx.id);
      for (const { id } of ended) await blobs.delete(id);
      const endedUploads = await uploads.deleteExpired(now, ctx.id);
      for (const { parts } of endedUploads) for (const { id } of parts) await blobs.delete(id);
      more = ended.length + endedUploads.length > 0;
    }
    // The name of a file of lines begins with the ID of its batch.
    const isKnown = async (name: string) => (await jobs.find(name.split("~")[0]!)) !== undefined;
    await blobs.sweep(isKnown, now);
  }
}
