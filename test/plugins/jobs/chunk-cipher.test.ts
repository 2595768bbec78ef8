// The encryption of files: any span of any file is read as it was written, and no changed file is.
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { BlobFolder } from "../../../plugins/frontends/jobs/blobs/blob-folder.ts";
import { createFileSecrets } from "../../../plugins/frontends/jobs/file-secrets.ts";
import { trialCount } from "../../kit/law-effort.ts";

const dir = mkdtempSync(join(tmpdir(), "tollgate-blobs-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const blobs = new BlobFolder(() => dir);
let names = 0;
const TWO_DAYS_MS = 172_800_000;

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of source) all.push(piece);
  return Buffer.concat(all);
}

/** Sizes around the limits of chunks. */
const sizes = fc.oneof(
  fc.nat(200_000),
  fc.constantFrom(0, 1, 65_535, 65_536, 65_537, 131_072, 131_073),
);

it("any span of a file is read as it was written, however it arrived", () =>
  fc.assert(
    fc.asyncProperty(
      sizes,
      fc.integer({ min: 500, max: 90_000 }),
      fc.nat(),
      fc.nat(),
      async (size, step, a, b) => {
        const bytes = randomBytes(size);
        const key = randomBytes(32);
        const name = `f${++names}`;
        expect(await blobs.write(name, key, pieces(bytes, step))).toBe(size);
        expect(await blobs.has(name, size)).toBe(true);
        const [from, to] = [a % (size + 1), b % (size + 1)].sort((x, y) => x - y) as [
          number,
          number,
        ];
        expect(
          (await collect(blobs.read(name, key, size, from, to))).equals(bytes.subarray(from, to)),
        ).toBe(true);
        expect((await collect(blobs.read(name, key, size))).equals(bytes)).toBe(true);
        await blobs.delete(name);
      },
    ),
    { numRuns: trialCount(60) },
  ));

it("a file that was changed, cut off, or read with another key is not returned", async () => {
  const bytes = randomBytes(140_000);
  const key = randomBytes(32);
  await blobs.write("changed", key, pieces(bytes, 10_000));
  const path = join(dir, "changed");
  const sealed = readFileSync(path);
  expect(sealed.includes(bytes.subarray(0, 32))).toBe(false);
  const rejects = () => expect(collect(blobs.read("changed", key, bytes.length))).rejects.toThrow();
  for (const at of [0, 65_600, sealed.length - 1]) {
    const damaged = Buffer.from(sealed);
    damaged[at]! ^= 1;
    writeFileSync(path, damaged);
    await rejects();
  }
  writeFileSync(path, sealed.subarray(0, 2 * 65_552));
  await rejects();
  expect(await blobs.has("changed", bytes.length)).toBe(false);
  // Two chunks change places.
  writeFileSync(
    path,
    Buffer.concat([
      sealed.subarray(65_552, 131_104),
      sealed.subarray(0, 65_552),
      sealed.subarray(131_104),
    ]),
  );
  await rejects();
  writeFileSync(path, sealed);
  await expect(collect(blobs.read("changed", randomBytes(32), bytes.length))).rejects.toThrow();
  expect((await collect(blobs.read("changed", key, bytes.length))).equals(bytes)).toBe(true);
});

it("a write that fails leaves nothing, and a crash leaves what a sweep deletes", async () => {
  const failing = (async function* () {
    yield randomBytes(100_000);
    throw new Error("The client disconnected.");
  })();
  await expect(blobs.write("failed", randomBytes(32), failing)).rejects.toThrow("disconnected");
  expect(readdirSync(dir).filter((name) => name.startsWith("failed"))).toEqual([]);
  for (const name of ["orphan", "known", "half.part", "new"]) {
    writeFileSync(join(dir, name), "x");
    if (name !== "new") utimesSync(join(dir, name), 1, 1);
  }
  expect(await blobs.sweep(async (name) => name === "known", TWO_DAYS_MS)).toBe(2);
  expect(
    ["orphan", "known", "half.part", "new"].filter((name) => existsSync(join(dir, name))),
  ).toEqual(["known", "new"]);
});

it("an ID is valid for its owner and kind only, and a wrapped key for its file", () => {
  const secrets = createFileSecrets(randomBytes(32));
  fc.assert(
    fc.property(fc.string(), fc.string(), (owner, other) => {
      const id = secrets.createId("file", owner);
      expect(secrets.parseId(`file-${id}`, "file", owner)).toBe(id);
      expect(secrets.parseId(`file_${id}`, "file", owner)).toBe(id);
      expect(secrets.parseId(`batch_${id}`, "batch", owner)).toBe(undefined);
      expect(secrets.parseId(`file-${id}`, "batch", owner)).toBe(undefined);
      if (other !== owner) expect(secrets.parseId(`file-${id}`, "file", other)).toBe(undefined);
      const key = randomBytes(32);
      const wrapped = secrets.wrapKey(owner, id, key);
      expect(secrets.unwrapKey(owner, id, wrapped).equals(key)).toBe(true);
      expect(() => secrets.unwrapKey(owner, secrets.createId("file", owner), wrapped)).toThrow();
      if (other !== owner) expect(() => secrets.unwrapKey(other, id, wrapped)).toThrow();
    }),
  );
  for (const text of [
    "",
    "file-",
    "file-short",
    `file-${"A".repeat(32)}`,
    `file-${"A".repeat(33)}`,
  ])
    expect(secrets.parseId(text, "file", "key:a")).toBe(undefined);
});
