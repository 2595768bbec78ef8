// Image files that a client asked for by address: kept in the state folder for a while, found again by a signed path
// that cannot be guessed and that says itself when it ends. Everything a file's life needs is in its name, so a restart
// loses nothing and several processes may share the folder. May import: lib, model.
import { createHmac, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { wallClock } from "../../lib/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import { same, signingKey } from "./signing-key.ts";

export interface FileLimits {
  ttlMs: number;
  maxFileBytes: number;
  /** Bytes of all files. Beyond it no more are taken, because an address that was given out stays good until it ends. */
  maxBytes: number;
  /** Bytes of one key's files, so that one key does not take the room of all. */
  maxKeyBytes: number;
}

const LIMITS: FileLimits = {
  ttlMs: 60 * 60_000,
  maxFileBytes: 64 * 1024 * 1024,
  maxBytes: 2 * 1024 * 1024 * 1024,
  maxKeyBytes: 1024 * 1024 * 1024,
};
const MOST_TTL_MS = 7 * 24 * 60 * 60_000;

export interface KeptFile {
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
  kept: number;
  served: number;
  refused: number;
  swept: number;
}

export interface Files {
  /** The longest life is a week; without one, the configured. `who`: the id of the key that asked for it. */
  keep(bytes: Buffer, mime: string, ttlMs?: number, who?: string): Promise<KeptFile>;
  /** `name` is what follows /files/. Refuses what was never given out and what has ended. `near`: no other gateway is asked for it. */
  serve(name: string, query: URLSearchParams, near?: boolean): Promise<ServedFile>;
  /** Removes what has ended, and what a crash left half written. Says how many. */
  sweep(): Promise<number>;
  counts(): FileCounts;
  /** Other limits, from now on. A file that was given out keeps its end. */
  limit(limits: FileLimits): void;
}

/** By magic number the images codec knows these; what is not here is handed out as mere bytes. */
const TYPES = [
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["avif", "image/avif"],
  ["svg", "image/svg+xml"],
  ["bin", "application/octet-stream"],
] as const;

/** Expiry in seconds, id (its end says whose it is), extension: a file on disk. */
const ON_DISK = /^(\d{1,12})\.[\w-]{24}([\w-]{8})\.[a-z]{3,4}$/;
const ASKED = /^([\w-]{32})\.([a-z]{3,4})$/;
/** No write takes this long: an older half-written file was left by a crash. */
const ABANDONED_MS = 10 * 60_000;

interface FilesOf {
  now?: () => number;
  /** Another gateway on the store may keep it; the address has been found good. */
  elsewhere?: (name: string, query: string) => Promise<Buffer | undefined>;
}

export async function openFiles(
  dir: string,
  options: Partial<FileLimits> & FilesOf = {},
): Promise<Files> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const files = new FileShelf(dir, await signingKey(dir), options);
  await files.sweep();
  return files;
}

class FileShelf implements Files {
  readonly #dir: string;
  readonly #key: Buffer;
  #limits: FileLimits;
  readonly #now: () => number;
  readonly #elsewhere: FilesOf["elsewhere"];
  readonly #counts: FileCounts = { files: 0, bytes: 0, kept: 0, served: 0, refused: 0, swept: 0 };
  /** Bytes on their way to disk: they have their room already, so that many at once cannot overfill the folder. */
  #writing = 0;
  /** Bytes by owner, those on their way among them. */
  #owned = new Map<string, number>();
  readonly #owning = new Map<string, number>();
  /** Finished while a sweep was counting, which may have missed them. Counting one twice until the next sweep is harmless. */
  #late = { files: 0, bytes: 0, owned: new Map<string, number>() };
  #sweeping: Promise<number> | undefined;

  constructor(
    dir: string,
    key: Buffer,
    { now = wallClock, elsewhere, ...limits }: Partial<FileLimits> & FilesOf,
  ) {
    this.#elsewhere = elsewhere;
    this.#dir = dir;
    this.#key = key;
    this.#limits = { ...LIMITS, ...limits };
    this.#now = now;
  }

  async keep(bytes: Buffer, mime: string, ttlMs = this.#limits.ttlMs, who = ""): Promise<KeptFile> {
    const { maxFileBytes, maxKeyBytes } = this.#limits;
    const owner = this.#owner(who);
    if (bytes.length > maxFileBytes)
      fail("too_large", `An image of ${bytes.length} bytes is larger than ${maxFileBytes}.`, {
        code: "file_too_large",
      });
    const share = () =>
      (this.#owned.get(owner) ?? 0) + (this.#owning.get(owner) ?? 0) + bytes.length <= maxKeyBytes;
    if (!this.#room(bytes.length) || !share()) await this.sweep();
    if (!share())
      fail(
        "rate_limited",
        `This key keeps as many image files as it may (${maxKeyBytes} bytes). Ask with response_format "b64_json".`,
        { code: "files_share_full", retryAfterMs: ttlMs },
      );
    if (!this.#room(bytes.length))
      fail(
        "unavailable",
        'There is no room for more image files. Ask with response_format "b64_json".',
        { code: "files_full", retryAfterMs: ttlMs },
      );
    const seconds = Math.ceil((this.#now() + Math.min(ttlMs, MOST_TTL_MS)) / 1000);
    const id = `${randomBytes(18).toString("base64url")}${owner}`;
    const ext = TYPES.find(([, type]) => type === mime)?.[0] ?? "bin";
    this.#writing += bytes.length;
    more(this.#owning, owner, bytes.length);
    try {
      await this.#write(`${seconds}.${id}.${ext}`, bytes);
    } finally {
      this.#writing -= bytes.length;
      more(this.#owning, owner, -bytes.length);
    }
    for (const owned of [this.#owned, this.#late.owned]) more(owned, owner, bytes.length);
    for (const count of [this.#counts, this.#late]) {
      count.files++;
      count.bytes += bytes.length;
    }
    this.#counts.kept++;
    return {
      path: `/files/${id}.${ext}?e=${seconds}&s=${this.#sign(`${id}.${ext}`, seconds)}`,
      expiresAt: seconds * 1000,
    };
  }

  async serve(name: string, query: URLSearchParams, near = false): Promise<ServedFile> {
    try {
      const served = await this.#find(name, query, near);
      this.#counts.served++;
      return served;
    } catch (error) {
      this.#counts.refused++;
      throw error;
    }
  }

  sweep(): Promise<number> {
    return (this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined)));
  }

  counts(): FileCounts {
    return { ...this.#counts };
  }

  limit(limits: FileLimits): void {
    this.#limits = limits;
  }

  #room(bytes: number): boolean {
    return this.#counts.bytes + this.#writing + bytes <= this.#limits.maxBytes;
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
    const [, id, ext] = ASKED.exec(name) ?? [];
    const type = TYPES.find(([known]) => known === ext)?.[1];
    const seconds = /^\d{1,12}$/.test(e) ? Number(e) : 0;
    if (!id || !type || !same(s, this.#sign(name, seconds))) return unknown();
    const leftMs = seconds * 1000 - this.#now();
    if (leftMs <= 0) return ended();
    const body = await readFile(join(this.#dir, `${seconds}.${id}.${ext}`)).catch(
      async (error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
        const there = near ? undefined : await this.#elsewhere?.(name, `e=${e}&s=${s}`);
        return there ?? unknown();
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
    this.#late = { files: 0, bytes: 0, owned: new Map() };
    for (const name of await readdir(this.#dir)) {
      const path = join(this.#dir, name);
      // Another process may sweep at the same time.
      const found = await stat(path).catch(() => undefined);
      if (!found) continue;
      const [, seconds = Infinity, owner = ""] = ON_DISK.exec(name) ?? [];
      const ends = Number(seconds) * 1000;
      const abandoned = name.endsWith(".tmp") && found.mtimeMs < wallClock() - ABANDONED_MS;
      if (ends <= this.#now() || abandoned) {
        await rm(path, { force: true });
        swept++;
      } else if (ends !== Infinity) {
        files++;
        bytes += found.size;
        more(owned, owner, found.size);
      }
    }
    // Other processes keep and sweep files here too, so the files that are there are counted.
    this.#counts.files = files + this.#late.files;
    this.#counts.bytes = bytes + this.#late.bytes;
    for (const [owner, size] of this.#late.owned) more(owned, owner, size);
    this.#owned = owned;
    this.#counts.swept += swept;
    return swept;
  }

  /** Of a key: says nothing about it, and is the same in every process and after a restart. */
  #owner(who: string): string {
    return createHmac("sha256", this.#key).update(`owner\n${who}`).digest("base64url").slice(0, 8);
  }

  #sign(name: string, seconds: number): string {
    return createHmac("sha256", this.#key).update(`${name}\n${seconds}`).digest("base64url");
  }
}

function more(of: Map<string, number>, owner: string, bytes: number): void {
  const left = (of.get(owner) ?? 0) + bytes;
  if (left > 0) of.set(owner, left);
  else of.delete(owner);
}

const unknown = (): never =>
  fail("not_found", "There is no such file.", { code: "file_not_found" });
const ended = (): never =>
  fail("not_found", "This address has expired: image files are temporary.", {
    code: "file_expired",
  });
