// Large files, which clients send in parts. The parts are joined when the upload is completed.
import { createHash, randomBytes } from "node:crypto";
import { fail } from "tollgate/plugin";
import type { FileService, NewContent } from "./file-service.ts";
import { InFlight } from "./in-flight.ts";
import type { Owner } from "./owned-records.ts";
import {
  isOpenUpload,
  rejectSize,
  type FileInfo,
  type JoinedFile,
  type Storage,
  type StoredFile,
  type StoredUpload,
  type UploadData,
} from "./storage.ts";

const MAX_PENDING = 16;
/** Maximum number of uploads with those that ended. They are kept for repeated requests. */
const MAX_UPLOADS = 64;
/** Maximum number of parts of an upload. Its record has to fit in 64 KiB. */
const MAX_PARTS = 256;
/** Time in milliseconds after which a request may join parts that another request began to join. */
const JOIN_MS = 10 * 60_000;

/** A part of an upload whose content is written before it is added. */
export interface NewPart extends NewContent {
  /** Adds the part and returns its ID. */
  finish(bytes: number): Promise<string>;
}

export class UploadService {
  readonly #storage: Storage;
  readonly #files: FileService;
  readonly #parts = new InFlight();

  constructor(storage: Storage, files: FileService) {
    this.#storage = storage;
    this.#files = files;
  }

  async begin(
    owner: Owner,
    info: Omit<FileInfo, "expiresAt">,
    { bytes, keepMs, expiresAt }: Pick<UploadData, "bytes" | "keepMs" | "expiresAt">,
  ): Promise<StoredUpload> {
    const { uploads, secrets, limits } = this.#storage;
    if (bytes > limits.fileBytes) rejectSize(limits.fileBytes, "bytes");
    await this.#makeRoom(owner);
    using permit = await this.#storage.admit(owner);
    permit.take(bytes);
    const id = secrets.createId("upload", owner.name);
    const data: UploadData = { expiresAt, bytes, keepMs, state: "pending", info, parts: [] };
    const upload = await uploads.create(owner, id, Date.now(), data);
    const discard = () => uploads.delete(id);
    await this.#storage.keepWithinLimits(owner, discard);
    const open = (await uploads.list(owner, Date.now())).filter(isOpenUpload);
    if (open.length > MAX_PENDING) {
      await discard();
      rejectPending();
    }
    return upload;
  }

  async find(owner: Owner, id: string): Promise<StoredUpload> {
    const { uploads, secrets } = this.#storage;
    const own = secrets.parseId(id, "upload", owner.name);
    const found = own === undefined ? undefined : await uploads.find(owner, own, Date.now());
    return found ?? rejectUnknown(id);
  }

  /** Prepares a part of an upload. */
  beginPart(owner: Owner, upload: StoredUpload): NewPart {
    const { blobs, secrets } = this.#storage;
    requirePending(upload);
    const stored = upload.parts.reduce((sum, part) => sum + part.bytes, 0);
    if (upload.parts.length + this.#parts.of(upload.id).count >= MAX_PARTS) rejectParts();
    const inFlight = this.#parts.begin(upload.id, upload.bytes - stored);
    const id = secrets.createId("part", owner.name);
    const key = randomBytes(32);
    const limit = async function* (content: AsyncIterable<Uint8Array>) {
      for await (const piece of content) {
        if (!inFlight.add(piece.length)) rejectPartSize();
        yield piece;
      }
    };
    return {
      write: (content) => blobs.write(id, key, limit(content)),
      discard: () => blobs.delete(id),
      finish: async (bytes) => {
        const part = { id, bytes, key: secrets.wrapKey(owner.name, id, key) };
        await this.#change(upload.id, (before) => {
          requirePending(before);
          if (before.parts.length === MAX_PARTS) rejectParts();
          if (before.parts.reduce((sum, one) => sum + one.bytes, bytes) > upload.bytes)
            rejectPartSize();
          return { ...before, parts: [...before.parts, part] };
        });
        return id;
      },
      [Symbol.dispose]: () => inFlight[Symbol.dispose](),
    };
  }

  /** Joins the parts of an upload. A repeated call returns the same file. */
  async complete(
    owner: Owner,
    upload: StoredUpload,
    partIds: readonly string[],
    md5: string | undefined,
  ): Promise<StoredFile> {
    if (upload.state === "completed") return this.#joinedFile(owner, upload);
    const parts = this.#selectParts(owner, upload, partIds);
    for (const part of parts) await this.#storage.requireBlob(part.id, part.bytes);
    const { blobs, secrets } = this.#storage;
    // Each attempt has its own file and key, so that a key never encrypts two orders of the parts.
    const id = secrets.createId("file", owner.name);
    const key = randomBytes(32);
    const file: JoinedFile = {
      id,
      key: secrets.wrapKey(owner.name, id, key),
      createdAt: Date.now(),
    };
    await this.#change(upload.id, (before) => {
      const isJoining =
        before.state === "completing" && before.file!.createdAt + JOIN_MS > Date.now();
      if (isJoining)
        fail("conflict", "Another request is completing the upload. Retry later.", {
          code: "upload_completing",
        });
      if (before.state !== "completing") requirePending(before);
      return { ...before, state: "completing", file };
    });
    const hash = createHash("md5");
    let completed: StoredUpload;
    try {
      await blobs.write(id, key, this.#join(owner, parts, hash));
      if (md5 !== undefined && hash.digest("hex") !== md5.toLowerCase())
        fail("invalid", "The parts do not have this MD5 checksum.", { param: "md5" });
      completed = await this.#change(upload.id, (before) => {
        requireOwnJoin(before, id);
        return { ...before, state: "completed", parts: [] };
      });
    } catch (error) {
      await blobs.delete(id);
      await this.#storage.uploads.update(upload.id, Date.now(), (before) =>
        before.state === "completing" && before.file?.id === id
          ? { ...before, state: "pending", file: undefined }
          : before,
      );
      throw error;
    }
    for (const part of upload.parts) await blobs.delete(part.id);
    return this.#joinedFile(owner, completed);
  }

  async cancel(upload: StoredUpload): Promise<StoredUpload> {
    const ended = await this.#change(upload.id, (before) => {
      requirePending(before);
      return { ...before, state: "cancelled", parts: [] };
    });
    for (const { id } of upload.parts) await this.#storage.blobs.delete(id);
    return ended;
  }

  /** Returns the file of a completed upload. Creates its record if a crash prevented it. */
  async #joinedFile(
    owner: Owner,
    { file, bytes, info, keepMs }: StoredUpload,
  ): Promise<StoredFile> {
    const { id, key, createdAt } = file!;
    const { files, blobs } = this.#storage;
    const existing = await files.find(owner, id, Date.now());
    if (existing) return existing;
    if (!(await blobs.has(id, bytes))) return this.#files.find(owner, `file-${id}`);
    const expiresAt = keepMs === undefined ? undefined : createdAt + keepMs;
    return files.create(owner, id, createdAt, { ...info, bytes, key, expiresAt });
  }

  #selectParts(
    owner: Owner,
    upload: StoredUpload,
    partIds: readonly string[],
  ): UploadData["parts"] {
    const param = "part_ids";
    if (partIds.length > upload.parts.length)
      fail("invalid", "part_ids has more entries than the upload has parts.", { param });
    const parts = partIds.map((id) => {
      const own = this.#storage.secrets.parseId(id, "part", owner.name);
      const part = upload.parts.find((one) => one.id === own);
      return part ?? fail("invalid", `The upload has no part "${id}".`, { param });
    });
    if (new Set(parts).size < parts.length)
      fail("invalid", "part_ids names a part twice.", { param });
    if (parts.reduce((sum, part) => sum + part.bytes, 0) !== upload.bytes)
      fail("invalid", `The parts must have ${upload.bytes} bytes together.`, { param });
    return parts;
  }

  async *#join(
    owner: Owner,
    parts: UploadData["parts"],
    hash: { update(bytes: Uint8Array): unknown },
  ): AsyncGenerator<Uint8Array, void> {
    const { blobs, secrets } = this.#storage;
    for (const { id, bytes, key } of parts) {
      const secret = secrets.unwrapKey(owner.name, id, key);
      for await (const piece of blobs.read(id, secret, bytes)) {
        hash.update(piece);
        yield piece;
      }
    }
  }

  /** Deletes the oldest uploads that ended, so that the number of all uploads is bounded. */
  async #makeRoom(owner: Owner): Promise<void> {
    const uploads = await this.#storage.uploads.list(owner, Date.now());
    const ended = uploads.filter((upload) => !isOpenUpload(upload));
    if (uploads.length - ended.length >= MAX_PENDING) rejectPending();
    const surplus = Math.max(0, uploads.length - MAX_UPLOADS + 1);
    // The list is newest first.
    for (const { id } of ended.slice(Math.max(0, ended.length - surplus)))
      await this.#storage.uploads.delete(id);
  }

  async #change(id: string, change: (before: StoredUpload) => UploadData): Promise<StoredUpload> {
    const changed = await this.#storage.uploads.update(id, Date.now(), change);
    return changed ?? rejectUnknown(`upload_${id}`);
  }
}

function requirePending({ state }: StoredUpload): void {
  if (state !== "pending") fail("invalid", `The upload is ${state}.`, { code: "upload_ended" });
}

/** Throws if another request has taken over because this one was too slow. */
function requireOwnJoin({ state, file }: StoredUpload, id: string): void {
  if (state !== "completing" || file?.id !== id)
    fail("conflict", "Another request completed the upload.", { code: "upload_completing" });
}

const rejectUnknown = (id: string): never =>
  fail("not_found", `No such Upload object: ${id}`, { param: "id" });

const rejectPending = (): never =>
  fail("quota", `You have ${MAX_PENDING} uploads, the maximum. Cancel one of them.`, {
    code: "too_many_uploads",
  });

const rejectParts = (): never =>
  fail("too_large", `An upload can have up to ${MAX_PARTS} parts.`, {
    code: "too_many_upload_parts",
  });

const rejectPartSize = (): never =>
  fail("too_large", "The parts are larger than the upload.", { param: "data" });
