import { mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  openFileStore,
  type FileStore,
  type StoredFile,
} from "../../../src/runtime/services/image-file-store.ts";
import { getFault } from "../../../src/model/error.ts";
import { trialCount } from "../../kit/law-effort.ts";

let dir: string;
let time: number;
const now = () => time;
beforeEach(async () => {
  dir = join(await mkdtemp(join(tmpdir(), "files-")), "files");
  time = Date.parse("2026-11-20T10:00:00Z");
});
afterEach(() => rm(join(dir, ".."), { recursive: true, force: true }));

const PNG = Buffer.from("89504e470d0a1a0a00", "hex");
const ask = (files: FileStore, path: string) => {
  const url = new URL(path, "http://gateway.test");
  return files.serve(url.pathname.slice("/files/".length), url.searchParams);
};
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "served",
    (error) => getFault(error)?.code,
  );

describe("files with an expiry", () => {
  it("are served unchanged until their URL expires, and rejected afterwards", async () => {
    const files = await openFileStore(dir, { now, ttlMs: 60_000 });
    const kept = await files.store(PNG, "image/png");
    expect(kept.path).toMatch(/^\/files\/[\w-]{32}\.png\?e=\d+&s=[\w-]{43}$/);
    expect(kept.expiresAt).toBe(time + 60_000);
    const served = await ask(files, kept.path);
    expect(served.body.equals(PNG)).toBe(true);
    expect(served.headers).toMatchObject({
      "content-type": "image/png",
      "content-length": "9",
      "cache-control": "private, max-age=60, immutable",
      "x-content-type-options": "nosniff",
    });
    time += 59_999;
    expect(await codeOf(ask(files, kept.path))).toBe("served");
    time += 1;
    expect(await codeOf(ask(files, kept.path))).toBe("file_expired");
    expect(await files.sweep()).toBe(1);
    expect(await codeOf(ask(files, kept.path))).toBe("file_expired");
    expect(files.counts()).toEqual({
      files: 0,
      bytes: 0,
      stored: 1,
      served: 2,
      rejected: 2,
      expired: 1,
    });
  });

  it("survive a restart, including key and counts", async () => {
    const kept = await (await openFileStore(dir, { now })).store(PNG, "image/webp");
    const again = await openFileStore(dir, { now });
    expect(again.counts()).toMatchObject({ files: 1, bytes: PNG.length });
    expect((await ask(again, kept.path)).body.equals(PNG)).toBe(true);
  });

  it("cannot be read by others on disk", async () => {
    const files = await openFileStore(dir, { now });
    await files.store(PNG, "image/png");
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    for (const name of await readdir(dir))
      expect((await stat(join(dir, name))).mode & 0o777).toBe(0o600);
  });

  it("have no valid URL for another key", async () => {
    const kept = await (await openFileStore(dir, { now })).store(PNG, "image/png");
    await rm(join(dir, "key"));
    expect(await codeOf(ask(await openFileStore(dir, { now }), kept.path))).toBe("file_not_found");
    await writeFile(join(dir, "key"), "short");
    await expect(openFileStore(dir, { now })).rejects.toThrow(/damaged/);
  });

  it("are served at their exact URL only", async () => {
    const files = await openFileStore(dir, { now });
    const { path } = await files.store(PNG, "image/png");
    const other = (await files.store(PNG, "image/jpeg")).path;
    const mutated = fc.tuple(fc.nat(path.length - 8), fc.constantFrom(..."0aZ_-.%/&")).map(
      // Any path below "/files/" may be requested.
      ([at, c]) => path.slice(0, 7 + at) + c + path.slice(8 + at),
    );
    await fc.assert(
      fc.asyncProperty(mutated, async (guess) => {
        fc.pre(guess !== path);
        expect(await codeOf(ask(files, guess))).toBe("file_not_found");
      }),
      { numRuns: trialCount(500) },
    );
    const [name, query] = path.slice(7).split("?");
    const [otherName] = other.slice(7).split("?");
    for (const [n, q] of [
      [otherName, query],
      [name, ""],
      [name, query!.replace(/e=\d+/, "e=99999999999")],
      ["../key", query],
      ["key", query],
      [name!.replace(".png", ".svg"), query],
      [`${query!.slice(2, 12)}.${name}`, query],
      ["", ""],
    ])
      expect(await codeOf(files.serve(n!, new URLSearchParams(q)))).toBe("file_not_found");
  });

  it("have unique IDs, and types that do not depend on the client", async () => {
    const files = await openFileStore(dir, { now });
    const paths = await Promise.all(
      Array.from({ length: 50 }, () => files.store(PNG, "text/html; evil")),
    );
    expect(new Set(paths.map((p) => p.path)).size).toBe(50);
    expect((await ask(files, paths[0]!.path)).headers).toMatchObject({
      "content-type": "application/octet-stream",
      "content-disposition": "attachment",
    });
  });

  it("have limits: size per file, total size, lifetime", async () => {
    const files = await openFileStore(dir, { now, maxFileBytes: 10, maxBytes: 25, ttlMs: 1_000 });
    expect(await codeOf(files.store(Buffer.alloc(11), "image/png"))).toBe("file_too_large");
    const many = await Promise.allSettled(
      Array.from({ length: 9 }, () => files.store(Buffer.alloc(10), "image/png")),
    );
    expect(many.filter((m) => m.status === "fulfilled")).toHaveLength(2);
    expect(await codeOf(files.store(Buffer.alloc(10), "image/png"))).toBe("files_full");
    expect(files.counts()).toMatchObject({ files: 2, bytes: 20 });
    // Expired files free their space automatically.
    time += 2_000;
    const kept = await files.store(Buffer.alloc(10), "image/png", 1e15);
    expect(kept.expiresAt).toBeLessThanOrEqual(time + 7 * 86_400_000 + 1_000);
    expect(files.counts()).toMatchObject({ files: 1, expired: 2 });
  });

  it("follow changed limits from then on, and existing ones keep their expiry", async () => {
    const files = await openFileStore(dir, { now, ttlMs: 60_000 });
    const before = await files.store(PNG, "image/png");
    files.setLimits({
      ttlMs: 1_000,
      maxFileBytes: PNG.length,
      maxBytes: 2 * PNG.length,
      maxKeyBytes: 100,
    });
    const after = await files.store(PNG, "image/png");
    expect([before.expiresAt - time, after.expiresAt - time]).toEqual([60_000, 1_000]);
    expect(await codeOf(files.store(PNG, "image/png"))).toBe("files_full");
    expect(await codeOf(files.store(Buffer.alloc(10), "image/png"))).toBe("file_too_large");
    time += 2_000;
    expect(await codeOf(ask(files, before.path))).toBe("served");
    expect(await codeOf(ask(files, after.path))).toBe("file_expired");
  });

  it("are swept, stored, and served by several processes in one directory", async () => {
    const shelves = await Promise.all(
      Array.from({ length: 4 }, () => openFileStore(dir, { now, ttlMs: 60_000 })),
    );
    const short: StoredFile[] = [];
    const long: StoredFile[] = [];
    await Promise.all(
      shelves.flatMap((files) =>
        Array.from({ length: 10 }, async () => {
          short.push(await files.store(PNG, "image/png", 1_000));
          long.push(await files.store(PNG, "image/png"));
        }),
      ),
    );
    time += 5_000;
    const outcomes = await Promise.all([
      ...shelves
        .flatMap((files) => [files.sweep(), files.sweep()])
        .map((s) => s.then(() => "swept")),
      ...long.map((k, i) => codeOf(ask(shelves[i % 4]!, k.path))),
      ...short.map((k, i) => codeOf(ask(shelves[i % 4]!, k.path))),
    ]);
    expect(outcomes.filter((o) => o === "served")).toHaveLength(40);
    expect(outcomes.filter((o) => o === "file_expired")).toHaveLength(40);
    await shelves[0]!.sweep();
    expect(shelves[0]!.counts()).toMatchObject({ files: 40, bytes: 40 * PNG.length });
  });

  it("that a crash left incomplete are removed when they are old", async () => {
    const files = await openFileStore(dir, { now });
    await writeFile(join(dir, "old.tmp"), "x");
    await utimes(join(dir, "old.tmp"), 0, 0);
    await writeFile(join(dir, "new.tmp"), "x");
    expect(await files.sweep()).toBe(1);
    expect((await readdir(dir)).sort()).toEqual(["key", "new.tmp"]);
  });
});

describe("a key's share", () => {
  const limits = { ttlMs: 60_000, maxBytes: 100, maxKeyBytes: 50 };
  const many = (files: FileStore, who: string, n: number) =>
    Promise.all(
      Array.from({ length: n }, () =>
        codeOf(files.store(Buffer.alloc(10), "image/png", undefined, who)),
      ),
    );

  it("is smaller than the total space, also for concurrent files, and others keep theirs", async () => {
    const files = await openFileStore(dir, { now, ...limits });
    const told = await many(files, "a", 9);
    expect(told.filter((code) => code === "served")).toHaveLength(5);
    expect(new Set(told)).toEqual(new Set(["served", "files_share_full"]));
    expect(await many(files, "b", 3)).toEqual(["served", "served", "served"]);
    expect(files.counts().bytes).toBe(80);
  });

  it("is the same after a restart, and free again when its files expire", async () => {
    await many(await openFileStore(dir, { now, ...limits }), "a", 5);
    const files = await openFileStore(dir, { now, ...limits });
    expect(await many(files, "a", 1)).toEqual(["files_share_full"]);
    time += 60_001;
    expect(await many(files, "a", 5)).toEqual(Array(5).fill("served"));
  });
});
