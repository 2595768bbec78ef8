// Properties of a ledger that the store's checks cannot see: the bytes on disk, and changes of
// them.
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  appendFileSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync, gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import type { Store } from "../../../src/plugin/store/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { onFile } from "./stores-under-test.ts";
import { trialCount } from "../../kit/law-effort.ts";

async function opened() {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-keeping-"));
  const made = await onFile(join(folder, "ledger.db"));
  onTestFinished(async () => {
    await made.dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  await made.store.open({ instance: "one" });
  return {
    ...made,
    folder,
    keeping: made.store.maintenance as Required<NonNullable<Store["maintenance"]>>,
  };
}

/** Whether any file next to the ledger contains these bytes. */
const found = (file: string, text: string): string[] =>
  readdirSync(dirname(file)).filter((name) =>
    readFileSync(join(dirname(file), name)).includes(text),
  );

const called = async (store: Store, from: number, to: number, label: (i: number) => string) => {
  for (let i = from; i < to; i += 50)
    await store.apply(
      Array.from({ length: Math.min(50, to - i) }, (_, j) => i + j).flatMap((n) => [
        reserveCommand(`a${n}`, { at: NOON + n, labels: { user: label(n) } }),
        settleCommand(`a${n}`, { at: NOON + n }),
      ]),
    );
};

it("erased text is in no byte of the ledger, its write-ahead log, or its free pages", async () => {
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
  expect((await keeping.erase({ key: "alice" })).hashes).toHaveLength(600);
  await keeping.erase({ key: "k" });
  expect(found(file, "canary-")).toEqual([]);
  expect(await store.verify!()).toEqual([]);
});

it("names and labels of accounts are erased like those of keys, and verify finds a record that no command wrote", async () => {
  const { store, file, keeping } = await opened();
  const limits = [{ scope: "account:a", unit: "nano_usd", max: 5n, per: "month" }] as const;
  const account = {
    id: "a",
    created: NOON,
    name: "canary-anna",
    labels: { user: "canary-4711" },
    limits,
  };
  await store.apply([{ do: "account", at: NOON, account: { ...account, version: 1 } }]);
  await store.apply([
    { do: "account", at: NOON, account: { ...account, version: 2, name: "canary-berta" } },
  ]);
  expect(await store.verify!()).toEqual([]);
  const { hashes } = await keeping.erase({ label: { name: "user", value: "canary-4711" } });
  expect(hashes).toHaveLength(1);
  expect(found(file, "canary-4711")).toEqual([]);
  expect((await store.listAccounts!()).items).toMatchObject([
    { id: "a", version: 3, name: "canary-berta", labels: { user: "erased" }, limits },
  ]);
  expect(await store.verify!()).toEqual([]);
  const db = new DatabaseSync(file);
  for (const change of [
    `UPDATE account SET record = replace(record, '"5"', '"500"')`,
    "UPDATE account SET record = replace(record, 'berta', 'clara')",
    "UPDATE account SET id = 'b'",
    "DELETE FROM account",
  ]) {
    db.exec(`CREATE TABLE x AS SELECT * FROM account; ${change}`);
    expect((await store.verify!()).length, change).toBeGreaterThan(0);
    db.exec("DELETE FROM account; INSERT INTO account SELECT * FROM x; DROP TABLE x");
    expect(await store.verify!()).toEqual([]);
  }
  db.close();
});

it("earlier names of a key are erased, and no hash allows guesses", async () => {
  const { store, file, keeping } = await opened();
  for (const name of ["canary-ann", "canary-bob"])
    await store.apply([
      { do: "key", at: NOON, key: { id: "k", digest: "d", created: NOON, name } },
    ]);
  const db = new DatabaseSync(file, { readOnly: true });
  const sums = db.prepare("SELECT salt, hash FROM salted_text").all();
  expect(new Set(sums.map(({ salt }) => salt)).size).toBe(2);
  await keeping.erase({ key: "k" });
  expect(found(file, "canary-")).toEqual([]);
  expect(
    db.prepare("SELECT hash FROM salted_text WHERE text IS NULL AND salt IS NULL").all(),
  ).toHaveLength(2);
  db.close();
  expect(await store.verify!()).toEqual([]);
});

it("verify finds a text that was changed, removed, or replaced an erased one", async () => {
  const { store, file, keeping } = await opened();
  await called(store, 0, 4, (i) => `v${i}`);
  await keeping.erase({ label: { name: "user", value: "v3" } });
  expect(await store.verify!()).toEqual([]);
  const db = new DatabaseSync(file);
  for (const [change, back] of [
    [
      `UPDATE salted_text SET text = '"v9"' WHERE text = '"v1"'`,
      `UPDATE salted_text SET text = '"v1"' WHERE text = '"v9"'`,
    ],
    [
      "CREATE TABLE x AS SELECT * FROM salted_text; DELETE FROM salted_text WHERE text = '\"v2\"'",
      "DELETE FROM salted_text; INSERT INTO salted_text SELECT * FROM x; DROP TABLE x",
    ],
    [
      "UPDATE salted_text SET erased_at_seq = 1 WHERE erased_at_seq IS NOT NULL",
      "UPDATE salted_text SET erased_at_seq = 9 WHERE erased_at_seq IS NOT NULL",
    ],
    [
      "UPDATE salted_text SET erased_at_seq = 0 WHERE erased_at_seq IS NOT NULL",
      "UPDATE salted_text SET erased_at_seq = 9 WHERE erased_at_seq IS NOT NULL",
    ],
    [
      "UPDATE salted_text SET erased_at_seq = 9, salt = NULL, text = NULL WHERE text = '\"v0\"'",
      undefined,
    ],
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

it("every byte of an archive is verified, and it continues the previous one", async () => {
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
    { numRuns: trialCount(12, 3) },
  );
  const plain = join(folder, "plain.jsonl.gz");
  await keeping.archive(plain, { before: Infinity, labels: false });
  expect(gunzipSync(readFileSync(plain)).toString()).not.toContain('"u3"');
  expect((await keeping.readArchive(plain)).problems).toEqual([]);
});

it("a backup is restored only without a ledger there, complete and verified, and erasures are applied", async () => {
  const { store, folder, keeping } = await opened();
  await called(store, 0, 20, (i) => `u${i % 3}`);
  await store.apply([reserveCommand("open")]);
  const copy = join(folder, "copy");
  writeFileSync(copy, "");
  const { head } = await keeping.backup(copy);
  await called(store, 20, 40, (i) => `u${i % 3}`);
  const { hashes } = await keeping.erase({ label: { name: "user", value: "u1" } });
  const at = join(folder, "other.db");
  const next = await onFile(at);
  onTestFinished(() => next.dispose());
  const other = next.store.maintenance as typeof keeping;
  const db = new DatabaseSync(copy);
  db.exec(
    "UPDATE meter SET level = '9' WHERE 1; INSERT INTO meter (id, level, at, max) VALUES ('requests|total|0|x', '4', 0, '9')",
  );
  await expect(other.restore(copy)).rejects.toThrow(/was changed after it was written.*meter/);
  expect(existsSync(at)).toBe(false);
  db.exec("DELETE FROM meter WHERE id = 'requests|total|0|x'");
  db.close();
  expect((await other.restore(copy)).head).toEqual(head);
  await expect(other.restore(copy)).rejects.toThrow(/already/);
  expect((await next.store.open({ instance: "two" })).recovered).toBe(1);
  expect((await other.erase({ hashes })).hashes).toHaveLength(hashes.length);
  expect(found(at, '"u1"').filter((name) => name.startsWith("other"))).toEqual([]);
  expect((await next.store.listEntries({ attempt: "a1" })).items[0]?.labels).toEqual({
    user: "erased",
  });
  expect(await next.store.verify!()).toEqual([]);
});

it("a ledger from before the first release is rejected with a fix", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-keeping-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "ledger.db");
  const db = new DatabaseSync(file);
  db.exec("PRAGMA user_version = 2");
  db.close();
  const made = await onFile(file);
  onTestFinished(() => made.dispose());
  await expect(made.store.open({ instance: "one" })).rejects.toThrow(
    /before the first release.*move the file away/,
  );
});

const DAY = 86_400_000;
const total = { scope: "key:alice", unit: "nano_usd", max: 10n ** 12n, per: "total" } as const;
/** Calls of several days, some of which end in the next commit, and corrections days later. */
async function days(store: Store): Promise<void> {
  for (let d = 0; d < 4; d++) {
    const at = NOON + d * DAY;
    const labels = { user: `canary-${d}-day` };
    const claims = [{ ...total, take: 100n }];
    await store.apply([
      ...["a", "b"].map((name) => reserveCommand(`${name}${d}`, { at, labels, claims })),
      settleCommand(`a${d}`, { at, costNano: 7n }),
    ]);
    await store.apply([
      reserveCommand(`c${d}`, { at: at + 1, labels, claims }),
      settleCommand(`b${d}`, { at: at + 2, costNano: 11n, state: "estimated" }),
      settleCommand(`c${d}`, { at: at + 3, costNano: 13n }),
    ]);
  }
  await store.apply([
    { do: "adjust", at: NOON + 3 * DAY, attempt: "a0", costNano: -2n, reason: "r", actor: "x" },
  ]);
}

it("the checkpoint of pruned rows is verified: any change is found", async () => {
  const { store, file, keeping } = await opened();
  await days(store);
  await keeping.prune(NOON + DAY + DAY / 2);
  expect(await store.verify!()).toEqual([]);
  const db = new DatabaseSync(file);
  for (const { name } of db.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all())
    db.exec(`DROP TRIGGER ${name}`);
  for (const [table, id] of [
    ["checkpoint", "id"],
    ["checkpoint_rollup", "n"],
    ["retained_reserve", "seq"],
  ] as const) {
    const columns = {
      checkpoint: ["text"],
      checkpoint_rollup: ["text", "quarter", "hash"],
      retained_reserve: ["rows", "terms", "is_settled"],
    }[table];
    for (const column of columns) {
      const row = db.prepare(`SELECT ${id} AS id, ${column} AS value FROM ${table} LIMIT 1`).get()!;
      const set = db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${id} = ?`);
      const { value } = row;
      for (const at of typeof value === "string" ? [5, value.length >> 1, value.length - 3] : [0]) {
        const bent =
          typeof value === "string"
            ? value.slice(0, at) +
              String.fromCharCode(value.charCodeAt(at) ^ 1) +
              value.slice(at + 1)
            : Number(value) ^ 1;
        set.run(bent, row["id"]!);
        const found = await store.verify!().catch((error: Error) => [error]);
        expect(found.length, `${table}.${column} ${at}`).toBeGreaterThan(0);
        set.run(value!, row["id"]!);
      }
    }
  }
  expect(await store.verify!()).toEqual([]);
  for (const sql of [
    "UPDATE checkpoint SET last = last - 1",
    "DELETE FROM checkpoint",
    "DELETE FROM retained_reserve",
    "DELETE FROM checkpoint_rollup WHERE n = 1",
  ]) {
    db.exec("BEGIN");
    db.exec("SAVEPOINT x");
    db.exec(sql);
    db.exec("COMMIT");
    const found = await store.verify!().catch((error: Error) => [error]);
    expect(found.length, sql).toBeGreaterThan(0);
    if (sql.startsWith("UPDATE")) db.exec("UPDATE checkpoint SET last = last + 1");
    else break;
  }
  db.close();
});

it("labels of pruned rows are in no byte, and later ones are kept", async () => {
  const { store, file, keeping } = await opened();
  for (let n = 0; n < 5; n++)
    await store.apply(
      Array.from({ length: 500 }, (_, i) => `${n}-${i}`).flatMap((name) => [
        reserveCommand(name, { labels: { user: `canary-old-${n}`, team: "core" } }),
        settleCommand(name, { at: NOON }),
      ]),
    );
  const at = NOON + DAY;
  await store.apply([reserveCommand("late", { at, labels: { user: "canary-new", team: "core" } })]);
  expect((await keeping.prune(NOON + 1)).rows).toBe(5_000);
  expect(found(file, "canary-old")).not.toEqual(["ledger.db"]);
  await store.apply([
    settleCommand("late", { at }),
    reserveCommand("next", { at, labels: { team: "core" } }),
  ]);
  expect((await store.listEntries({ attempt: "late" })).items.map(({ labels }) => labels)).toEqual(
    [1, 2].map(() => ({ user: "canary-new", team: "core" })),
  );
  expect((await store.listEntries({ attempt: "next" })).items[0]?.labels).toEqual({ team: "core" });
  expect(await store.verify!()).toEqual([]);
  // The next checkpoint removes it from the write-ahead log.
  await keeping.erase({ label: { name: "user", value: "canary-new" } });
  expect(found(file, "canary-")).toEqual([]);
});

it("repeated prunes give the same reports", async () => {
  const { store, keeping, folder } = await opened();
  await days(store);
  const by = ["hour", "key", "model", "state", "account"] as const;
  const sums = JSON.stringify(await store.sumEntries({ by }), (_, v) =>
    typeof v === "bigint" ? `${v}` : v,
  );
  const archive = join(folder, "old.jsonl.gz");
  const kept = await keeping.archive(archive, { before: NOON + DAY / 2, labels: false });
  for (let d = 0; d < 4; d++) {
    await keeping.prune(NOON + d * DAY + DAY / 2);
    expect(await store.verify!()).toEqual([]);
    const said = JSON.stringify(await store.sumEntries({ by }), (_, v) =>
      typeof v === "bigint" ? `${v}` : v,
    );
    expect(said).toBe(sums);
    // Only a call's own rows contain its budget usage.
    const [verdict] = await store.apply([
      reserveCommand(`probe${d}`, { at: NOON + 3 * DAY, claims: [{ ...total, take: 0n }] }),
      settleCommand(`probe${d}`, { at: NOON + 3 * DAY, state: "void", costNano: 0n, usage: {} }),
    ]);
    expect(verdict).toMatchObject({ ok: true, limits: [{ remaining: total.max - 4n * 31n + 2n }] });
  }
  // The next archive starts at the end of the pruned rows.
  const next = join(folder, "next.jsonl.gz");
  await keeping.archive(next, { before: Infinity, labels: true });
  expect((await keeping.readArchive(next)).problems).toEqual([]);
  // Data after its end is not read, and the file is closed nevertheless.
  appendFileSync(next, Buffer.alloc(1 << 20));
  expect((await keeping.readArchive(next)).rows).toBeGreaterThan(0);
  expect(kept.rows).toBe(6);
  const copy = join(folder, "copy");
  writeFileSync(copy, "");
  expect((await keeping.backup(copy)).total.costNano).toBe(4n * 31n - 2n);
});
