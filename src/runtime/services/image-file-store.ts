// Image files that a client asked for by address: kept in the state folder for a while, found again by a signed path
// that cannot be guessed and that says itself when it ends. Everything a file's life needs is in its name, so a restart
// loses nothing and several processes may share the folder. May import: lib, model.
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
  /** Bytes of all files. Beyond it no more are taken, because an address that was given out stays good until it ends. */
  maxBytes: number;
  /** Bytes of one key's files, so that one key does not take the room of all. */
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
  /** "/files/<id>.png?e=…&s=…", below the address by which clients reach us. */
  path: string;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** An answer, ready to be written. */
export interface ServedFile {
  status: 200;
  body: Buffer;
  headers: HeadersOut;
}

/** Since this process began, and what is there now. */
export interface FileCounts {
  files: number;
  bytes: number;
  stored: number;
  served: number;
  rejected: number;
  expired: number;
}

export interface FileStore {
  /** The longest life is a week; without one, the configured. `who`: the id of the key that asked for it. */
  store(bytes: Buffer, mime: string, ttlMs?: number, who?: string): Promise<StoredFile>;
  /** `name` is what follows /files/. Refuses what was never given out and what has ended. `near`: no other gateway is asked for it. */
  serve(name: string, query: URLSearchParams, near?: boolean): Promise<ServedFile>;
  /** Removes what has ended, and what a crash left half written. Says how many. */
  sweep(): Promise<number>;
  counts(): FileCounts;
  /** Other limits, from now on. A file that was given out keeps its end. */
  setLimits(limits: FileStoreLimits): void;
}

/** By magic number the images codec knows these; what is not here is handed out as mere bytes. */
const IMAGE_TYPES = [
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["avif", "image/avif"],
  ["svg", "image/svg+xml"],
  ["bin", "application/octet-stream"],
] as const;

/** Expiry in seconds, id (its end says whose it is), extension: a file on disk. */
const DISK_NAME = /^(\d{1,12})\.[\w-]{24}([\w-]{8})\.[a-z]{3,4}$/;
const PUBLIC_NAME = /^([\w-]{32})\.([a-z]{3,4})$/;
/** No write takes this long: an older half-written file was left by a crash. */
const ABANDONED_MS = 10 * 60_000;

interface FileStoreOptions {
  now?: () => number;
  /** Another gateway on the store may keep it; the address has been found good. */
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
  /** Bytes on their way to disk: they have their room already, so that many at once cannot overfill the folder. */
  #pendingBytes = 0;
  /** Bytes by owner, those on their way among them. */
  #bytesByOwner = new Map<string, number>();
  readonly #pendingByOwner = new Map<string, number>();
  /** Finished while a sweep was counting, which may have missed them. Counting one twice until the next sweep is harmless. */
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
      fail("too_large", `An image of ${bytes.length} bytes is larger than ${maxFileBytes}.`, {
        code: "file_too_large",
      });
    const share = () =>
      (this.#bytesByOwner.get(owner) ?? 0) +
        (this.#pendingByOwner.get(owner) ?? 0) +
        bytes.length <=
      maxKeyBytes;
    if (!this.#hasSpace(bytes.length) || !share()) await this.sweep();
    if (!share())
      fail(
        "rate_limited",
        `This key keeps as many image files as it may (${maxKeyBytes} bytes). Ask with response_format "b64_json".`,
        { code: "files_share_full", retryAfterMs: ttlMs },
      );
    if (!this.#hasSpace(bytes.length))
      fail(
        "unavailable",
        'There is no room for more image files. Ask with response_format "b64_json".',
        { code: "files_full", retryAfterMs: ttlMs },
      );
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
        // An upstream wrote these bytes: no browser may take them for a page of ours.
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
      // Another process may sweep at the same time.
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
    // Other processes keep and sweep files here too, so the files that are there are counted.
    this.#counts.files = files + this.#addedDuringSweep.files;
    this.#counts.bytes = bytes + this.#addedDuringSweep.bytes;
    for (const [owner, size] of this.#addedDuringSweep.owned) addBytes(owned, owner, size);
    this.#bytesByOwner = owned;
    this.#counts.expired += swept;
    return swept;
  }

  /** Of a key: says nothing about it, and is the same in every process and after a restart. */
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
  fail("not_found", "There is no such file.", { code: "file_not_found" });
const failExpired = (): never =>
  fail("not_found", "This address has expired: image files are temporary.", {
    code: "file_expired",
  });
