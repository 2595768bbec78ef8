// The files and uploads of all owners: their records in the store, and their content in a folder.
import { createHash, randomBytes } from "node:crypto";
import { fail, type Context } from "tollgate/plugin";
import { BlobFolder } from "./blob-folder.ts";
import { createFileSecrets, type FileSecrets } from "./file-secrets.ts";
import { limitSize } from "./file-upload.ts";
import { OwnedRecords, type Owned, type Owner } from "./owned-records.ts";

/** Maximum number of files of an owner. It bounds every list. */
const MAX_FILES = 1_000;
const MAX_PENDING_UPLOADS = 16;
/** Maximum number of parts of an upload. Its record has to fit in 64 KiB. */
const MAX_PARTS = 256;

/** Encrypted content in the folder. */
interface Content {
  readonly bytes: number;
  /** Encrypted key of the content. */
  readonly key: string;
}

/** Description of a file by its client. */
export interface FileInfo {
  readonly filename: string;
  readonly purpose: string;
  readonly mime: string;
  /** In Unix milliseconds. */
  readonly expiresAt?: number | undefined;
}

type FileData = FileInfo & Content;
export type StoredFile = Owned<FileData>;

interface UploadData {
  readonly expiresAt: number;
  readonly bytes: number;
  readonly state: "pending" | "completed" | "cancelled";
  readonly file: Omit<FileInfo, "expiresAt"> & { readonly id: string; readonly key: string };
  /** Time after which the file expires, in milliseconds. */
  readonly keepMs?: number | undefined;
  readonly parts: readonly (Content & { readonly id: string })[];
}
export type StoredUpload = Owned<UploadData>;

export interface FileLimits {
  readonly fileBytes: number;
  /** Maximum size of all files of an owner, with those that are being uploaded. */
  readonly ownerBytes: number;
}

export class FileService {
  readonly #ctx: Context;
  readonly #limits: FileLimits;
  readonly #blobs: BlobFolder;
  #secrets: FileSecrets | undefined;

  constructor(ctx: Context, limits: FileLimits) {
    this.#ctx = ctx;
    this.#limits = limits;
    this.#blobs = new BlobFolder(() => ctx.stateDir());
  }

  /** Prepares a new file. Its content is written first, and its record when all fields are known. */
  async begin(owner: Owner): Promise<NewFile> {
    const left = await this.#sizeLeft(owner);
    const id = this.#fileSecrets.createId("file", owner.name);
    const key = randomBytes(32);
    return {
      write: (content) => this.#blobs.write(id, key, limitSize(content, left)),
      discard: () => this.#blobs.delete(id),
      finish: (bytes, createdAt, info) =>
        this.#files.create(owner, id, createdAt, {
          ...info,
          bytes,
          key: this.#fileSecrets.wrapKey(owner.name, id, key),
        }),
    };
  }

  async find(owner: Owner, id: string): Promise<StoredFile> {
    const own = this.#fileSecrets.parseId(id, "file", owner.name);
    const found = own === undefined ? undefined : await this.#files.find(owner, own, Date.now());
    return found ?? fail("not_found", `No such File object: ${id}`, { param: "id" });
  }

  list(owner: Owner): Promise<readonly StoredFile[]> {
    return this.#files.list(owner, Date.now());
  }

  async delete({ id }: StoredFile): Promise<void> {
    await this.#files.delete(id);
    await this.#blobs.delete(id);
  }

  /** Returns the content of a file. */
  async read(owner: Owner, { id, bytes, key }: StoredFile): Promise<AsyncIterable<Uint8Array>> {
    await this.#requireBlob(id, bytes);
    return this.#blobs.read(id, this.#fileSecrets.unwrapKey(owner.name, id, key), bytes);
  }

  async beginUpload(
    owner: Owner,
    info: Omit<FileInfo, "expiresAt">,
    { bytes, keepMs, expiresAt }: Pick<UploadData, "bytes" | "keepMs" | "expiresAt">,
  ): Promise<StoredUpload> {
    if (bytes > (await this.#sizeLeft(owner)))
      fail("too_large", `The file would be larger than ${this.#limits.fileBytes} bytes.`, {
        param: "bytes",
        code: "file_too_large",
      });
    const pending = await this.#pendingUploads(owner);
    if (pending.length >= MAX_PENDING_UPLOADS)
      fail("quota", `You have ${MAX_PENDING_UPLOADS} uploads, the maximum. Cancel one of them.`, {
        code: "too_many_uploads",
      });
    const id = this.#fileSecrets.createId("upload", owner.name);
    const fileId = this.#fileSecrets.createId("file", owner.name);
    const key = this.#fileSecrets.wrapKey(owner.name, fileId, randomBytes(32));
    return this.#uploads.create(owner, id, Date.now(), {
      expiresAt,
      bytes,
      keepMs,
      state: "pending",
      file: { ...info, id: fileId, key },
      parts: [],
    });
  }

  async findUpload(owner: Owner, id: string): Promise<StoredUpload> {
    const own = this.#fileSecrets.parseId(id, "upload", owner.name);
    const found = own === undefined ? undefined : await this.#uploads.find(owner, own, Date.now());
    return found ?? fail("not_found", `No such Upload object: ${id}`, { param: "id" });
  }

  /** Prepares a part of an upload. `finish` adds it and returns its ID. */
  beginPart(owner: Owner, upload: StoredUpload): NewPart {
    const id = this.#fileSecrets.createId("part", owner.name);
    const key = randomBytes(32);
    const wrapped = this.#fileSecrets.wrapKey(owner.name, id, key);
    return {
      write: (content) => this.#blobs.write(id, key, limitSize(content, upload.bytes)),
      discard: () => this.#blobs.delete(id),
      finish: async (bytes) => {
        await this.#changeUpload(upload, (before) => {
          if (before.parts.length === MAX_PARTS)
            fail("too_large", `An upload can have up to ${MAX_PARTS} parts.`);
          if (before.parts.reduce((sum, part) => sum + part.bytes, bytes) > upload.bytes)
            fail("too_large", "The parts are larger than the upload.", { param: "data" });
          return { ...before, parts: [...before.parts, { id, bytes, key: wrapped }] };
        });
        return id;
      },
    };
  }

  /** Joins the parts of an upload. A repeated call returns the same file. */
  async completeUpload(
    owner: Owner,
    upload: StoredUpload,
    partIds: readonly string[],
    md5: string | undefined,
  ): Promise<StoredFile> {
    const { file, keepMs, bytes } = upload;
    if (upload.state === "completed") return this.find(owner, `file-${file.id}`);
    if (partIds.length > upload.parts.length)
      fail("invalid", "part_ids has more entries than the upload has parts.", {
        param: "part_ids",
      });
    const parts = partIds.map((id) => {
      const own = this.#fileSecrets.parseId(id, "part", owner.name);
      const part = upload.parts.find((one) => one.id === own);
      return part ?? fail("invalid", `The upload has no part "${id}".`, { param: "part_ids" });
    });
    if (new Set(parts).size < parts.length)
      fail("invalid", "part_ids names a part twice.", { param: "part_ids" });
    if (parts.reduce((sum, part) => sum + part.bytes, 0) !== bytes)
      fail("invalid", `The parts must have ${bytes} bytes together.`, { param: "part_ids" });
    for (const part of parts) await this.#requireBlob(part.id, part.bytes);
    const hash = createHash("md5");
    const key = this.#fileSecrets.unwrapKey(owner.name, file.id, file.key);
    await this.#blobs.write(file.id, key, this.#join(owner, parts, hash));
    if (md5 !== undefined && hash.digest("hex") !== md5.toLowerCase()) {
      await this.#blobs.delete(file.id);
      fail("invalid", "The parts do not have this MD5 checksum.", { param: "md5" });
    }
    const now = Date.now();
    const { id, ...data } = file;
    const expiresAt = keepMs === undefined ? undefined : now + keepMs;
    const stored = await this.#files.create(owner, id, now, { ...data, bytes, expiresAt });
    await this.#endUpload(upload, "completed");
    return stored;
  }

  async cancelUpload(upload: StoredUpload): Promise<StoredUpload> {
    return this.#endUpload(upload, "cancelled");
  }

  /** Deletes what has expired, and content that a crash left. */
  async sweep(): Promise<void> {
    if (!this.#ctx.jobs) return;
    const now = Date.now();
    for (let more = true; more;) {
      const files = await this.#files.deleteExpired(now, this.#ctx.id);
      for (const { id } of files) await this.#blobs.delete(id);
      const uploads = await this.#uploads.deleteExpired(now, this.#ctx.id);
      for (const { parts } of uploads) for (const { id } of parts) await this.#blobs.delete(id);
      more = files.length + uploads.length > 0;
    }
    await this.#blobs.sweep(async (id) => (await this.#jobs.find(id)) !== undefined, now);
  }

  async *#join(
    owner: Owner,
    parts: UploadData["parts"],
    hash: { update(bytes: Uint8Array): unknown },
  ): AsyncGenerator<Uint8Array, void> {
    for (const { id, bytes, key } of parts) {
      const secret = this.#fileSecrets.unwrapKey(owner.name, id, key);
      for await (const piece of this.#blobs.read(id, secret, bytes)) {
        hash.update(piece);
        yield piece;
      }
    }
  }

  async #endUpload(upload: StoredUpload, state: "completed" | "cancelled"): Promise<StoredUpload> {
    const ended = await this.#changeUpload(upload, (before) => ({ ...before, state, parts: [] }));
    for (const { id } of upload.parts) await this.#blobs.delete(id);
    return ended;
  }

  async #changeUpload(
    { id }: StoredUpload,
    change: (before: StoredUpload) => UploadData,
  ): Promise<StoredUpload> {
    const changed = await this.#uploads.update(id, Date.now(), (before) =>
      before.state === "pending"
        ? change(before)
        : fail("invalid", `The upload is ${before.state}.`, { code: "upload_ended" }),
    );
    return changed ?? fail("not_found", `No such Upload object: upload_${id}`, { param: "id" });
  }

  /** Returns the size that a new file of the owner may have. */
  async #sizeLeft(owner: Owner): Promise<number> {
    const files = await this.#files.list(owner, Date.now());
    if (files.length >= MAX_FILES)
      fail("quota", `You have ${MAX_FILES} files, the maximum. Delete files you no longer need.`, {
        code: "too_many_files",
      });
    const used = [...files, ...(await this.#pendingUploads(owner))].reduce(
      (sum, { bytes }) => sum + bytes,
      0,
    );
    const { fileBytes, ownerBytes } = this.#limits;
    return Math.max(0, Math.min(fileBytes, ownerBytes - used));
  }

  async #pendingUploads(owner: Owner): Promise<readonly StoredUpload[]> {
    const uploads = await this.#uploads.list(owner, Date.now());
    return uploads.filter(({ state }) => state === "pending");
  }

  async #requireBlob(name: string, bytes: number): Promise<void> {
    if (!(await this.#blobs.has(name, bytes)))
      fail("unavailable", "Another gateway stores the content of this file.", {
        code: "file_elsewhere",
      });
  }

  get #jobs(): NonNullable<Context["jobs"]> {
    return (
      this.#ctx.jobs ??
      fail("unavailable", "This gateway's store keeps no jobs.", { code: "no_jobs" })
    );
  }
  get #files(): OwnedRecords<FileData> {
    return new OwnedRecords(this.#jobs, "file");
  }
  get #uploads(): OwnedRecords<UploadData> {
    return new OwnedRecords(this.#jobs, "upload");
  }
  get #fileSecrets(): FileSecrets {
    return (this.#secrets ??= createFileSecrets(this.#ctx.deriveSecret("files")));
  }
}

/** Content that is written before its record. */
interface NewContent {
  /** Writes the content and returns its size. */
  write(content: AsyncIterable<Uint8Array>): Promise<number>;
  discard(): Promise<void>;
}
export interface NewFile extends NewContent {
  finish(bytes: number, createdAt: number, info: FileInfo): Promise<StoredFile>;
}
export interface NewPart extends NewContent {
  finish(bytes: number): Promise<string>;
}
