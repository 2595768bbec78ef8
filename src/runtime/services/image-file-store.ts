// Stores image files that a client requested by URL, for a limited time, in the state directory.
// Each file has a signed path that cannot be guessed and that contains its expiry. The file name
// contains all metadata, so no data is lost by a restart, and several processes can share the
// directory. May import: lib, model.
import { createHmac, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import { isEqualSignature, readOrCreateSigningKey } from "./signing-key.ts";

export interface FileStoreLimits {
  ttlMs: number;
  maxFileBytes: number;
  /**
   * Maximum total size of all files, in bytes. When it is reached, new files are rejected, because
   * issued URLs must stay valid until they expire.
   */
  maxBytes: number;
  /** Maximum size of the files of one key, in bytes, so that one key cannot use all the space. */
  maxKeyBytes: number;
}

const DEFAULT_LIMITS: FileStoreLimits = {
  ttlMs: 60 * 60_000,
  maxFileBytes: 64 * 1024 * 1024,
  maxBytes: 2 * 1024 * 1024 * 1024,
  maxKeyBytes: 1024 * 1024 * 1024,
};
const MAX_TTL_MS = 7 * 24 * 60 * 60_000;

export interface StoredFile {
  /** Path below the public URL: "/files/<id>.png?e=…&s=…". */
  path: string;
  /** In Unix milliseconds. */
  expiresAt: number;
}

/** A complete response. */
export interface ServedFile {
  status: 200;
  body: Buffer;
  headers: HeadersOut;
}

/** Counts since this process started, and the files present now. */
export interface FileCounts {
  files: number;
  bytes: number;
  stored: number;
  served: number;
  rejected: number;
  expired: number;
}

export interface FileStore {
  /**
   * Stores a file.
   * @param ttlMs Lifetime, at most 1 week. Default: the configured one.
   * @param who ID of the key that requested the file.
   */
  store(bytes: Buffer, mime: string, ttlMs?: number, who?: string): Promise<StoredFile>;
  /**
   * Returns a file, or throws if it was never issued or has expired.
   * @param name The part of the path after /files/.
   * @param near Whether other gateways are not queried.
   */
  serve(name: string, query: URLSearchParams, near?: boolean): Promise<ServedFile>;
  /** Removes expired files and partial files of a crash. Returns their number. */
  sweep(): Promise<number>;
  counts(): FileCounts;
  /** Changes the limits. Files that were already stored keep their expiry. */
  setLimits(limits: FileStoreLimits): void;
}

/**
 * Image types that the images codec recognizes by magic number. Other files are served as plain
 * bytes.
 */
const IMAGE_TYPES = [
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["avif", "image/avif"],
  ["svg", "image/svg+xml"],
  ["bin", "application/octet-stream"],
] as const;

/** Name of a file on disk: expiry in seconds, ID that ends with the owner's hash, and extension. */
const DISK_NAME = /^(\d{1,12})\.[\w-]{24}([\w-]{8})\.[a-z]{3,4}$/;
const PUBLIC_NAME = /^([\w-]{32})\.([a-z]{3,4})$/;
/**
 * Age after which a partial file is considered abandoned by a crash, in milliseconds. No write
 * takes so long.
 */
const ABANDONED_MS = 10 * 60_000;

interface FileStoreOptions {
  now?: () => number;
  /** Fetches a file from other gateways on the store. Called after the signature was verified. */
  fetchFromPeers?: (name: string, query: string) => Promise<Buffer | undefined>;
}

export async function openFileStore(
  dir: string,
  options: Partial<FileStoreLimits> & FileStoreOptions = {},
): Promise<FileStore> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const files = new DiskFileStore(dir, await readOrCreateSigningKey(dir), options);
  await files.sweep();
  return files;
}

class DiskFileStore implements FileStore {
  readonly #dir: string;
  readonly #key: Buffer;
  #limits: FileStoreLimits;
  readonly #now: () => number;
  readonly #fetchFromPeers: FileStoreOptions["fetchFromPeers"];
  readonly #counts: FileCounts = {
    files: 0,
    bytes: 0,
    stored: 0,
    served: 0,
    rejected: 0,
    expired: 0,
  };
  /**
   * Bytes that are being written. They are counted before they are written, so that parallel writes
   * cannot exceed the limits.
   */
  #pendingBytes = 0;
  /** Bytes by owner, including those being written. */
  #bytesByOwner = new Map<string, number>();
  readonly #pendingByOwner = new Map<string, number>();
  /**
   * Files that were completed during a sweep, because the sweep may have missed them. A file that
   * is counted twice until the next sweep does no harm.
   */
  #addedDuringSweep = { files: 0, bytes: 0, owned: new Map<string, number>() };
  #sweeping: Promise<number> | undefined;

  constructor(
    dir: string,
    key: Buffer,
    { now = wallClock, fetchFromPeers, ...limits }: Partial<FileStoreLimits> & FileStoreOptions,
  ) {
    this.#fetchFromPeers = fetchFromPeers;
    this.#dir = dir;
    this.#key = key;
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#now = now;
  }

  async store(
    bytes: Buffer,
    mime: string,
    ttlMs = this.#limits.ttlMs,
    who = "",
  ): Promise<StoredFile> {
    const { maxFileBytes, maxKeyBytes } = this.#limits;
    const owner = this.#ownerHashOf(who);
    if (bytes.length > maxFileBytes)
      fail(
        "too_large",
        `An image of ${bytes.length} bytes is larger than the limit of ${maxFileBytes} bytes.`,
        {
          code: "file_too_large",
        },
      );
    const share = () =>
      (this.#bytesByOwner.get(owner) ?? 0) +
        (this.#pendingByOwner.get(owner) ?? 0) +
        bytes.length <=
      maxKeyBytes;
    if (!this.#hasSpace(bytes.length) || !share()) await this.sweep();
    if (!share())
      fail(
        "rate_limited",
        `This key has reached its limit for stored image files (${maxKeyBytes} bytes). Use response_format "b64_json".`,
        { code: "files_share_full", retryAfterMs: ttlMs },
      );
    if (!this.#hasSpace(bytes.length))
      fail("unavailable", 'The storage for image files is full. Use response_format "b64_json".', {
        code: "files_full",
        retryAfterMs: ttlMs,
      });
    const seconds = Math.ceil((this.#now() + Math.min(ttlMs, MAX_TTL_MS)) / 1000);
    const id = `${randomBytes(18).toString("base64url")}${owner}`;
    const ext = IMAGE_TYPES.find(([, type]) => type === mime)?.[0] ?? "bin";
    this.#pendingBytes += bytes.length;
    addBytes(this.#pendingByOwner, owner, bytes.length);
    try {
      await this.#write(`${seconds}.${id}.${ext}`, bytes);
    } finally {
      this.#pendingBytes -= bytes.length;
      addBytes(this.#pendingByOwner, owner, -bytes.length);
    }
    for (const owned of [this.#bytesByOwner, this.#addedDuringSweep.owned])
      addBytes(owned, owner, bytes.length);
    for (const count of [this.#counts, this.#addedDuringSweep]) {
      count.files++;
      count.bytes += bytes.length;
    }
    this.#counts.stored++;
    return {
      path: `/files/${id}.${ext}?e=${seconds}&s=${this.#sign(`${id}.${ext}`, seconds)}`,
      expiresAt: seconds * 1000,
    };
  }

  async serve(name: string, query: URLSearchParams, localOnly = false): Promise<ServedFile> {
    try {
      const served = await this.#find(name, query, localOnly);
      this.#counts.served++;
      return served;
    } catch (error) {
      this.#counts.rejected++;
      throw error;
    }
  }

  sweep(): Promise<number> {
    return (this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined)));
  }

  counts(): FileCounts {
    return { ...this.#counts };
  }

  setLimits(limits: FileStoreLimits): void {
    this.#limits = limits;
  }

  #hasSpace(bytes: number): boolean {
    return this.#counts.bytes + this.#pendingBytes + bytes <= this.#limits.maxBytes;
  }

  async #write(name: string, bytes: Buffer): Promise<void> {
    const half = join(this.#dir, `${randomBytes(9).toString("hex")}.tmp`);
    try {
      const file = await open(half, "wx", 0o600);
      try {
        await file.writeFile(bytes);
      } finally {
        await file.close();
      }
      await rename(half, join(this.#dir, name));
    } catch (error) {
      await rm(half, { force: true });
      throw error;
    }
  }

  async #find(name: string, query: URLSearchParams, near: boolean): Promise<ServedFile> {
    const [e, s] = [query.get("e") ?? "", query.get("s") ?? ""];
    const [, id, ext] = PUBLIC_NAME.exec(name) ?? [];
    const type = IMAGE_TYPES.find(([known]) => known === ext)?.[1];
    const seconds = /^\d{1,12}$/.test(e) ? Number(e) : 0;
    if (!id || !type || !isEqualSignature(s, this.#sign(name, seconds))) return failUnknownFile();
    const leftMs = seconds * 1000 - this.#now();
    if (leftMs <= 0) return failExpired();
    const body = await readFile(join(this.#dir, `${seconds}.${id}.${ext}`)).catch(
      async (error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
        const there = near ? undefined : await this.#fetchFromPeers?.(name, `e=${e}&s=${s}`);
        return there ?? failUnknownFile();
      },
    );
    return {
      status: 200,
      body,
      headers: {
        "content-type": type,
        "content-length": String(body.length),
        "cache-control": `private, max-age=${Math.floor(leftMs / 1000)}, immutable`,
        // An upstream server wrote these bytes, so no browser may treat them as a page of the
        // gateway.
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        "cross-origin-resource-policy": "cross-origin",
        ...(type === "application/octet-stream" && { "content-disposition": "attachment" }),
      },
    };
  }

  async #sweep(): Promise<number> {
    let files = 0;
    let bytes = 0;
    let swept = 0;
    const owned = new Map<string, number>();
    this.#addedDuringSweep = { files: 0, bytes: 0, owned: new Map() };
    for (const name of await readdir(this.#dir)) {
      const path = join(this.#dir, name);
      // Another process may delete files at the same time.
      const found = await stat(path).catch(() => undefined);
      if (!found) continue;
      const [, seconds = Infinity, owner = ""] = DISK_NAME.exec(name) ?? [];
      const ends = Number(seconds) * 1000;
      const abandoned = name.endsWith(".tmp") && found.mtimeMs < wallClock() - ABANDONED_MS;
      if (ends <= this.#now() || abandoned) {
        await rm(path, { force: true });
        swept++;
      } else if (ends !== Infinity) {
        files++;
        bytes += found.size;
        addBytes(owned, owner, found.size);
      }
    }
    // Other processes also store and sweep files here, so the existing files are counted.
    this.#counts.files = files + this.#addedDuringSweep.files;
    this.#counts.bytes = bytes + this.#addedDuringSweep.bytes;
    for (const [owner, size] of this.#addedDuringSweep.owned) addBytes(owned, owner, size);
    this.#bytesByOwner = owned;
    this.#counts.expired += swept;
    return swept;
  }

  /**
   * Returns a hash of a key ID that does not reveal the key. The hash is the same in every process
   * and after a restart.
   */
  #ownerHashOf(who: string): string {
    return createHmac("sha256", this.#key).update(`owner\n${who}`).digest("base64url").slice(0, 8);
  }

  #sign(name: string, seconds: number): string {
    return createHmac("sha256", this.#key).update(`${name}\n${seconds}`).digest("base64url");
  }
}

function addBytes(of: Map<string, number>, owner: string, bytes: number): void {
  const total = (of.get(owner) ?? 0) + bytes;
  if (total > 0) of.set(owner, total);
  else of.delete(owner);
}

const failUnknownFile = (): never =>
  fail("not_found", "File not found.", { code: "file_not_found" });
const failExpired = (): never =>
  fail("not_found", "This URL has expired, because image files are temporary.", {
    code: "file_expired",
  });
