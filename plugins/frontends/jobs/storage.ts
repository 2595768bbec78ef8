// The content of files on disk and their records in the store, with the limits of each owner.
import { fail, type Context, type Opt } from "tollgate/plugin";
import { BlobFolder } from "./blobs/blob-folder.ts";
import { createFileSecrets, type FileSecrets } from "./file-secrets.ts";
import { InFlight, type Amounts, type InFlightPart } from "./in-flight.ts";
import { OwnedRecords, type Owned, type Owner } from "./owned-records.ts";

/** Maximum number of files of an owner. It bounds every list. */
const MAX_FILES = 1_000;

/** Encrypted content in the folder. */
export interface Content {
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

export type FileData = FileInfo & Content;
export type StoredFile = Owned<FileData>;

export interface FileLimits {
  readonly fileBytes: number;
  /** Maximum size of all files of an owner, with those that are being uploaded. */
  readonly ownerBytes: number;
  /** How long a batch is kept after it has ended, in milliseconds. */
  readonly batchMs: number;
}

/** Permission to store one file of an owner. It counts against the limits until it is released. */
export interface StoragePermit extends Disposable {
  /** Counts bytes of the file. Throws if they exceed a limit. */
  take(bytes: number): void;
  /** Yields the content, and takes its bytes. */
  limit(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void>;
}

export class Storage {
  readonly ctx: Context;
  readonly limits: FileLimits;
  readonly blobs: BlobFolder;
  readonly #inFlight = new InFlight();
  #secrets: FileSecrets | undefined;

  /** @param dir Folder that several gateways share. Default: a folder of this gateway. */
  constructor(ctx: Context, limits: FileLimits, dir?: string) {
    this.ctx = ctx;
    this.limits = limits;
    this.blobs = new BlobFolder(() => dir ?? ctx.stateDir());
  }

  get jobs(): NonNullable<Context["jobs"]> {
    return (
      this.ctx.jobs ??
      fail("unavailable", "This gateway's store keeps no jobs.", { code: "no_jobs" })
    );
  }
  get files(): OwnedRecords<FileData> {
    return new OwnedRecords(this.jobs, "file");
  }
  get uploads(): OwnedRecords<UploadData> {
    return new OwnedRecords(this.jobs, "upload");
  }
  get secrets(): FileSecrets {
    return (this.#secrets ??= createFileSecrets(this.ctx.deriveSecret("files")));
  }

  /** Checks whether the owner may store another file. */
  async admit(owner: Owner): Promise<StoragePermit> {
    const stored = await this.#usage(owner);
    const { fileBytes, ownerBytes } = this.limits;
    if (stored.count + this.#inFlight.of(owner.name).count >= MAX_FILES) rejectCount();
    const part = this.#inFlight.begin(owner.name, Math.max(0, ownerBytes - stored.bytes));
    let taken = 0;
    const take = (bytes: number) => {
      taken += bytes;
      if (taken > fileBytes) rejectSize(fileBytes);
      if (!part.add(bytes)) rejectStorage(ownerBytes);
    };
    return { take, limit: (content) => counted(content, take), ...disposableOf(part) };
  }

  /**
   * Keeps a record that was just created, if the owner's limits allow it. Other gateways may have
   * stored files in the meantime. If several records exceed a limit together, none is kept.
   */
  async keepWithinLimits(owner: Owner, discard: () => Promise<unknown>): Promise<void> {
    const { bytes, count } = await this.#usage(owner);
    const { ownerBytes } = this.limits;
    if (bytes <= ownerBytes && count <= MAX_FILES) return;
    await discard();
    if (count > MAX_FILES) rejectCount();
    rejectStorage(ownerBytes);
  }

  /** Throws if this folder does not contain the content. */
  async requireBlob(name: string, bytes: number): Promise<void> {
    if (!(await this.blobs.has(name, bytes)))
      fail(
        "unavailable",
        "Another gateway stores the content of this file. To share files, set dir of the frontend to a folder that all gateways use.",
        { code: "file_elsewhere" },
      );
  }

  async #usage(owner: Owner): Promise<Amounts> {
    const now = Date.now();
    const files = await this.files.list(owner, now);
    const uploads = (await this.uploads.list(owner, now)).filter(isOpenUpload);
    const bytes = [...files, ...uploads].reduce((sum, one) => sum + one.bytes, 0);
    return { bytes, count: files.length + uploads.length };
  }
}

/** Data of an upload in parts. */
export interface UploadData {
  readonly expiresAt: number;
  readonly bytes: number;
  readonly state: "pending" | "completing" | "completed" | "cancelled";
  readonly info: Omit<FileInfo, "expiresAt">;
  /** Time after which the file expires, in milliseconds. */
  readonly keepMs?: number | undefined;
  readonly parts: readonly (Content & { readonly id: string })[];
  /** The file, from the time at which its parts are joined. */
  readonly file?: Opt<JoinedFile>;
}
export type StoredUpload = Owned<UploadData>;

/** A file that is made of parts. Its key encrypts one order of the parts. */
export interface JoinedFile {
  readonly id: string;
  readonly key: string;
  readonly createdAt: number;
}

/** Whether the upload has not ended. Its bytes count against the limits of its owner. */
export const isOpenUpload = ({ state }: StoredUpload): boolean =>
  state === "pending" || state === "completing";

async function* counted(
  content: AsyncIterable<Uint8Array>,
  take: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void> {
  for await (const piece of content) {
    take(piece.length);
    yield piece;
  }
}

const disposableOf = (part: InFlightPart): Disposable => ({
  [Symbol.dispose]: () => part[Symbol.dispose](),
});

const rejectCount = (): never =>
  fail("quota", `You have ${MAX_FILES} files, the maximum. Delete files you no longer need.`, {
    code: "too_many_files",
  });

export const rejectSize = (maxBytes: number, param = "file"): never =>
  fail("too_large", `The file is larger than ${maxBytes} bytes, the maximum.`, {
    param,
    code: "file_too_large",
  });

const rejectStorage = (maxBytes: number): never =>
  fail(
    "quota",
    `Your files would use more than ${maxBytes} bytes together, the maximum. Delete files you no longer need.`,
    { code: "storage_full" },
  );
