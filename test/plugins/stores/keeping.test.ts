// What the laws of a store cannot see of a ledger's life: the bytes on the disk, and what was changed in them.
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync, gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import type { Store } from "../../../src/plugin/store.ts";
import { NOON, reserve, settle } from "../../../src/testing/store.ts";
import { onFile } from "./made.ts";

async function opened() {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-keeping-"));
  const made = await onFile(join(folder, "ledger.db"));
  onTestFinished(async () => {
    await made.end();
    rmSync(folder, { recursive: true, force: true });
  });
  await made.store.open({ instance: "one" });
  return {
    ...made,
    folder,
    keeping: made.store.keeping as Required<NonNullable<Store["keeping"]>>,
  };
}

/** Whether any file beside the ledger has these bytes. */
const found = (file: string, text: string): string[] =>
  readdirSync(dirname(file)).filter((name) =>
    readFileSync(join(dirname(file), name)).includes(text),
  );

const called = async (store: Store, from: number, to: number, label: (i: number) => string) => {
  for (let i = from; i < to; i += 50)
    await store.apply(
      Array.from({ length: Math.min(50, to - i) }, (_, j) => i + j).flatMap((n) => [
        reserve(`a${n}`, { at: NOON + n, labels: { user: label(n) } }),
        settle(`a${n}`, { at: NOON + n }),
      ]),
    );
};

it("text that was erased is in no byte of the ledger, its log of writes or its free pages", async () => {
  const { store, file, keeping } = await opened();
  await store.apply([
    { do: "key", at: NOON, key: { id: "k", digest: "d", created: NOON, name: "canary-name-5521" } },
  ]);
  await called(store, 0, 600, (i) => `canary-${i}-person`);
  await called(store, 600, 700, () => "canary-4711-same");
  expect(found(file, "canary-4711-same")).not.toEqual([]);
  expect(found(file, "canary-17-person")).not.toEqual([]);
  await keeping.erase({ label: { name: "user", value: "canary-4711-same" } });
  expect(found(file, "canary-4711-same")).toEqual([]);
  expect(found(file, "canary-17-person")).not.toEqual([]);
  expect((await keeping.erase({ key: "alice" })).values).toHaveLength(600);
  await keeping.erase({ key: "k" });
  expect(found(file, "canary-")).toEqual([]);
  expect(await store.verify!()).toEqual([]);
});

it("neither is what a key was called before, nor a hash that tells it to who guesses", async () => {
  const { store, file, keeping } = await opened();
  for (const name of ["canary-ann", "canary-bob"])
    await store.apply([
      { do: "key", at: NOON, key: { id: "k", digest: "d", created: NOON, name } },
    ]);
  const db = new DatabaseSync(file, { readOnly: true });
  const sums = db.prepare("SELECT salt, hash FROM word").all();
  expect(new Set(sums.map(({ salt }) => salt)).size).toBe(2);
  await keeping.erase({ key: "k" });
  expect(found(file, "canary-")).toEqual([]);
  expect(
    db.prepare("SELECT hash FROM word WHERE text IS NULL AND salt IS NULL").all(),
  ).toHaveLength(2);
  db.close();
  expect(await store.verify!()).toEqual([]);
});

it("verify finds a word that was changed, taken out, or put in the place of one that was erased", async () => {
  const { store, file, keeping } = await opened();
  await called(store, 0, 4, (i) => `v${i}`);
  await keeping.erase({ label: { name: "user", value: "v3" } });
  expect(await store.verify!()).toEqual([]);
  const db = new DatabaseSync(file);
  for (const [change, back] of [
    [
      `UPDATE word SET text = '"v9"' WHERE text = '"v1"'`,
      `UPDATE word SET text = '"v1"' WHERE text = '"v9"'`,
    ],
    [
      "CREATE TABLE x AS SELECT * FROM word; DELETE FROM word WHERE text = '\"v2\"'",
      "DELETE FROM word; INSERT INTO word SELECT * FROM x; DROP TABLE x",
    ],
    [
      "UPDATE word SET gone = 1 WHERE gone IS NOT NULL",
      "UPDATE word SET gone = 9 WHERE gone IS NOT NULL",
    ],
    [
      "UPDATE word SET gone = 0 WHERE gone IS NOT NULL",
      "UPDATE word SET gone = 9 WHERE gone IS NOT NULL",
    ],
    ["UPDATE word SET gone = 9, salt = NULL, text = NULL WHERE text = '\"v0\"'", undefined],
  ]) {
    db.exec(change!);
    expect((await store.verify!()).length, change).toBeGreaterThan(0);
    if (back !== undefined) {
      db.exec(back);
      expect(await store.verify!(), back).toEqual([]);
    }
  }
  db.close();
});

it("an archive's every byte counts, and it follows on the one before", async () => {
  const { store, folder, keeping } = await opened();
  await called(store, 0, 120, (i) => `u${i % 7}`);
  const file = join(folder, "rows.jsonl.gz");
  const made = await keeping.archive(file, { before: NOON + 100, labels: true });
  expect(made.rows).toBe(200);
  expect(statSync(file).mode & 0o077).toBe(0);
  const text = gunzipSync(readFileSync(file)).toString();
  for (const line of text.trimEnd().split("\n")) JSON.parse(line);
  await fc.assert(
    fc.asyncProperty(fc.nat(text.length - 2), async (at) => {
      const other = String.fromCharCode(text.charCodeAt(at) ^ 1);
      writeFileSync(file, gzipSync(text.slice(0, at) + other + text.slice(at + 1)));
      const { problems } = await keeping.readArchive(file);
      expect(problems.length, `${at} ${text.slice(at - 20, at + 20)}`).toBeGreaterThan(0);
    }),
    { numRuns: 12 },
  );
  const plain = join(folder, "plain.jsonl.gz");
  await keeping.archive(plain, { before: Infinity, labels: false });
  expect(gunzipSync(readFileSync(plain)).toString()).not.toContain('"u3"');
  expect((await keeping.readArchive(plain)).problems).toEqual([]);
});

it("a copy is put where no ledger is, whole and verified, and erasures are replayed in it", async () => {
  const { store, folder, keeping } = await opened();
  await called(store, 0, 20, (i) => `u${i % 3}`);
  await store.apply([reserve("open")]);
  const copy = join(folder, "copy");
  writeFileSync(copy, "");
  const { head } = await keeping.backup(copy);
  await called(store, 20, 40, (i) => `u${i % 3}`);
  const { values } = await keeping.erase({ label: { name: "user", value: "u1" } });
  const at = join(folder, "other.db");
  const next = await onFile(at);
  onTestFinished(() => next.end());
  const other = next.store.keeping as typeof keeping;
  const db = new DatabaseSync(copy);
  db.exec(
    "UPDATE meter SET level = '9' WHERE 1; INSERT INTO meter VALUES ('requests|total|0|x', '4', 0, '9')",
  );
  await expect(other.restore(copy)).rejects.toThrow(/not as it was written.*meter/);
  expect(existsSync(at)).toBe(false);
  db.exec("DELETE FROM meter WHERE id = 'requests|total|0|x'");
  db.close();
  expect((await other.restore(copy)).head).toEqual(head);
  await expect(other.restore(copy)).rejects.toThrow(/already/);
  expect((await next.store.open({ instance: "two" })).presumed).toBe(1);
  expect((await other.erase({ values })).values).toHaveLength(values.length);
  expect(found(at, '"u1"').filter((name) => name.startsWith("other"))).toEqual([]);
  expect((await next.store.entries({ attempt: "a1" })).items[0]?.labels).toEqual({
    user: "erased",
  });
  expect(await next.store.verify!()).toEqual([]);
});

it("a ledger from before the first release is refused, with a way out", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-keeping-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "ledger.db");
  const db = new DatabaseSync(file);
  db.exec("PRAGMA user_version = 2");
  db.close();
  const made = await onFile(file);
  onTestFinished(() => made.end());
  await expect(made.store.open({ instance: "one" })).rejects.toThrow(
    /before its first release.*move the file away/,
  );
});
