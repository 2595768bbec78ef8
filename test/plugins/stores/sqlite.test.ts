import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import * as fc from "fast-check";
import { createLedgerQueue } from "../../../src/runtime/ledger/ledger-queue.ts";
import type { StoreCommand, Store } from "../../../src/plugin/store/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { migrate } from "../../../plugins/stores/sqlite/data/schema.ts";
import { onFile, type Options } from "./stores-under-test.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";

const owner = (instance: string) => ({ instance });

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "tollgate-ledger-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function opened(options: Options & { file?: string } = {}) {
  const made = await onFile(options.file ?? join(folder(), "ledger.db"), options);
  onTestFinished(() => made.dispose());
  await made.store.open(owner("one"));
  return made;
}

async function filled(store: Store, calls = 20): Promise<void> {
  const claims = [
    { scope: "k", unit: "nano_usd", max: 10n ** 12n, per: "month", take: 1_000n },
  ] as const;
  for (let i = 0; i < calls; i++)
    await store.apply([
      reserveCommand(`a${i}`, { claims }),
      settleCommand(`a${i}`, { costNano: BigInt(i) }),
    ]);
}

describe("one ledger, one owner", () => {
  it("a second owner is rejected, with the name of the first", async () => {
    const { file } = await opened();
    const other = await onFile(file);
    onTestFinished(() => other.dispose());
    await expect(other.store.open(owner("two"))).rejects.toThrow(
      new RegExp(`ledger ${file} is in use by process ${process.pid}, which opened it at 20`),
    );
  });

  it("also if it is another process", async () => {
    const { file } = await opened();
    const script = `
      import { lockLedger } from ${JSON.stringify(join(import.meta.dirname, "../../../plugins/stores/sqlite/lock.ts"))};
      try { lockLedger(${JSON.stringify(file)}); } catch (e) { console.log(e.message); }`;
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
      encoding: "utf8",
    });
    expect(said).toContain("Only one gateway can use a ledger.");
  });

  it("has no owner after it is closed, and only its user can read it", async () => {
    const made = await opened();
    expect(statSync(made.file).mode & 0o077).toBe(0);
    await made.dispose();
    const next = await onFile(made.file);
    expect((await next.store.open(owner("two"))).epoch).toBe(2);
    await next.dispose();
  });
});

describe("an unexpected file", () => {
  it("of a newer version is rejected with an explanation", async () => {
    const file = join(folder(), "ledger.db");
    const db = new DatabaseSync(file);
    db.exec("PRAGMA user_version = 99");
    db.close();
    const made = await onFile(file);
    onTestFinished(() => made.dispose());
    await expect(made.store.open(owner("one"))).rejects.toThrow(
      /newer Tollgate \(ledger version 99/,
    );
  });

  it("that is no database is rejected with a fix", async () => {
    const file = join(folder(), "ledger.db");
    writeFileSync(file, "not a database, ".repeat(400));
    const made = await onFile(file);
    onTestFinished(() => made.dispose());
    await expect(made.store.open(owner("one"))).rejects.toThrow(/damaged.*recover/);
    // And the lock is free again.
    rmSync(file);
    await made.store.open(owner("one"));
  });

  it("its history cannot be changed through the writer", async () => {
    const { store, file } = await opened();
    await filled(store, 1);
    const db = new DatabaseSync(file);
    for (const sql of [
      "UPDATE entry SET cost = 0",
      "DELETE FROM entry",
      "UPDATE batch SET rows = '[]'",
      "DELETE FROM batch",
      "UPDATE segment SET hash = ''",
      "DELETE FROM segment",
    ])
      expect(() => db.exec(sql), sql).toThrow(/append-only/);
    db.close();
  });
});

it("names that the file cannot distinguish are not reported as a change", async () => {
  const { store } = await opened();
  for (const key of ["\ud800", "\ud801"])
    await store.apply([
      reserveCommand(`a${key.charCodeAt(0)}`, { key }),
      settleCommand(`a${key.charCodeAt(0)}`),
    ]);
  for (const key of ["\ud800", "\ud801"])
    expect((await store.listEntries({ key })).items.map((entry) => entry.key)).toEqual([key, key]);
  expect(await store.verify!()).toEqual([]);
});

describe("the hash chain detects", () => {
  async function tampered(sql: string) {
    const made = await opened();
    await filled(made.store);
    expect(await made.store.verify!()).toEqual([]);
    const db = new DatabaseSync(made.file);
    dropTriggers(db);
    db.exec(sql);
    db.close();
    return { problems: await made.store.verify!(), made };
  }

  /**
   * Entry `seq` is `seq - first` in its batch's list. Here a call is a batch: its reserve and its
   * settle.
   */
  const set = (seq: number, place: number, value: string): string =>
    `UPDATE batch SET rows = json_set(rows, '$[${(seq + 1) % 2}][${place}]', ${value}) WHERE first = ${seq - ((seq + 1) % 2)}`;
  const AT_COST = 8;

  const changes: [string, string][] = [
    ["an amount that was changed by one", set(14, AT_COST, "'7'")],
    [
      "an entry that was taken out",
      "UPDATE batch SET rows = json_remove(rows, '$[0]') WHERE first = 7",
    ],
    ["two amounts that were swapped", `${set(10, AT_COST, "'5'")}; ${set(12, AT_COST, "'4'")}`],
    [
      "two entries that were swapped",
      "UPDATE batch SET rows = json_array(json(rows -> 1), json(rows -> 0)) WHERE first = 7",
    ],
    [
      "whose call it was",
      "UPDATE batch SET terms = replace(terms, 'alice', 'mallory') WHERE first = 3",
    ],
    ["who wrote it", "UPDATE batch SET instance = 'mallory' WHERE first = 3"],
    [
      "an entry that was put in",
      "UPDATE batch SET rows = json_insert(rows, '$[#]', json(rows -> 1)) WHERE first = 3",
    ],
    [
      "a batch that was put in",
      "INSERT INTO batch SELECT first + 1000, instance, terms, rows FROM batch WHERE first = 3",
    ],
    ["what is no list any more", "UPDATE batch SET rows = 'nothing' WHERE first = 3"],
    ["a link that was taken out", "DELETE FROM segment WHERE id = 5"],
    ["a budget that was set back", "UPDATE meter SET level = '0'"],
    [
      "a call that was put down as open",
      "INSERT INTO open_call (attempt, seq, usage) VALUES ('a1', 3, '{}')",
    ],
    ["a time that hides entries", "UPDATE segment SET max_at = min_at - 1 WHERE id = 5"],
    ["a key whose entries are not found", "DELETE FROM key_index"],
    ["a key whose entries are another one's", "UPDATE key_index SET key = 'other'"],
    ["an attempt that is not found", "DELETE FROM call WHERE attempt = 'a3'"],
    ["an attempt that is found elsewhere", "UPDATE call SET first = 5 WHERE attempt = 'a3'"],
    ["a settle that is not found", "DELETE FROM closed_call WHERE reserve = 7"],
  ];
  for (const [what, sql] of changes)
    it(what, async () => {
      const { problems, made } = await tampered(sql);
      expect(problems.length).toBeGreaterThan(0);
      if (/ batch /.test(sql)) {
        // Changes near the end are found at every start.
        await made.crash();
        const next = await onFile(made.file);
        await expect(next.store.open(owner("two"))).rejects.toThrow(
          /was changed after it was written/,
        );
        await next.dispose();
      }
    });

  it("a missing budget", async () => {
    const { store, file } = await opened();
    const claims = [
      { scope: "k", unit: "nano_usd", max: 10n ** 12n, per: "total", take: 1_000n },
    ] as const;
    await store.apply([reserveCommand("a", { claims }), settleCommand("a", { costNano: 5n })]);
    expect(await store.verify!()).toEqual([]);
    const db = new DatabaseSync(file);
    db.exec("DELETE FROM meter");
    db.close();
    expect((await store.verify!()).length).toBeGreaterThan(0);
  });

  const budget = (max: bigint) => [
    { scope: "key:k1", unit: "nano_usd" as const, max, per: "total" as const },
  ];
  it.each([
    ["raised", "UPDATE key SET record = replace(record, '1000', '9000')"],
    ["taken out", "UPDATE key SET record = json_remove(record, '$.limits')"],
    ["of a key that was taken back", "UPDATE key SET record = json_remove(record, '$.revoked')"],
    ["of a key that is gone", "DELETE FROM key WHERE digest = 'd1'"],
    [
      "of a key that nobody made",
      "INSERT INTO key VALUES ('dx', 'zz', '{\"id\":\"kx\"}', '{\"id\":\"kx\"}')",
    ],
    ["whose trace was wiped", "DELETE FROM record_link WHERE n = 2"],
    ["whose trace was cut", "DELETE FROM record_link WHERE n > 1"],
  ])("a limit that was %s in the file", async (_how, sql) => {
    const { store, file } = await opened();
    const key = (digest: string, more: object) =>
      store.apply([
        {
          do: "key",
          at: 1,
          key: { id: "k1", digest, created: 1, limits: budget(1_000n), ...more },
        },
      ]);
    await key("d1", {});
    await key("d1", { limits: budget(1_000n), name: "again" });
    await key("d2", { id: "k2", revoked: 2 });
    expect(await store.verify!()).toEqual([]);
    const db = new DatabaseSync(file);
    dropTriggers(db);
    db.exec(sql);
    db.close();
    expect((await store.verify!()).length).toBeGreaterThan(0);
  });

  it("any changed byte of any value of any entry", async () => {
    const { store, file } = await opened();
    await filled(store, 10);
    const db = new DatabaseSync(file);
    dropTriggers(db);
    const one = db.prepare("SELECT first FROM batch ORDER BY first LIMIT 1 OFFSET ?");
    await fc.assert(
      fc.asyncProperty(
        fc.nat(9),
        fc.constantFrom("instance", "terms", "rows"),
        fc.nat(),
        async (batch, column, at) => {
          const first = one.get(batch)!["first"]!;
          const read = db.prepare(`SELECT ${column} AS text FROM batch WHERE first = ?`);
          const text = read.get(first)!["text"] as string;
          const i = at % text.length;
          const other = String.fromCharCode(text.charCodeAt(i) ^ 1);
          const set = db.prepare(`UPDATE batch SET ${column} = ? WHERE first = ?`);
          set.run(text.slice(0, i) + other + text.slice(i + 1), first);
          expect((await store.verify!()).length).toBeGreaterThan(0);
          set.run(text, first);
          expect(await store.verify!()).toEqual([]);
        },
      ),
      { numRuns: trialCount(60) },
    );
    db.close();
  });

  it("a ledger that was truncated after its head was recorded, however carefully", async () => {
    const { store, file } = await opened();
    const { head, contains } = (
      store as never as { commands: Record<string, { run(input: object): Promise<unknown> }> }
    ).commands;
    for (const attempt of ["a", "b", "c"])
      await store.apply([reserveCommand(attempt), settleCommand(attempt)]);
    const noted = (await head!.run({})) as { hash: string; seq: number };
    expect(noted.seq).toBe(6);
    expect(await contains!.run({ hash: noted.hash })).toBe(true);
    const db = new DatabaseSync(file);
    dropTriggers(db);
    db.exec(
      "DELETE FROM batch WHERE first > 4; DELETE FROM segment WHERE last > 4; DELETE FROM call WHERE attempt = 'c'; DELETE FROM closed_call WHERE reserve > 4",
    );
    db.close();
    expect(await store.verify!()).toEqual([]);
    expect(await contains!.run({ hash: noted.hash })).toBe(false);
  });

  it("a head that was stored elsewhere after the ledger was truncated", async () => {
    const { store, file } = await opened();
    const { head, contains } = (
      store as never as { commands: Record<string, { run(input: object): Promise<unknown> }> }
    ).commands;
    for (const attempt of ["a", "b", "c"])
      await store.apply([reserveCommand(attempt), settleCommand(attempt)]);
    const noted = (await head!.run({})) as { hash: string };
    const db = new DatabaseSync(file);
    dropTriggers(db);
    db.exec(
      "DELETE FROM batch WHERE first > 4; UPDATE segment SET id = -1 WHERE last > 4; DELETE FROM call WHERE attempt = 'c'; DELETE FROM closed_call WHERE reserve > 4",
    );
    db.close();
    expect((await store.verify!()).length).toBeGreaterThan(0);
    expect(await contains!.run({ hash: noted.hash })).toBe(false);
  });

  it("a removed start, with a forged link that hides it", async () => {
    const { store, file } = await opened();
    for (const attempt of ["a", "b", "c"])
      await store.apply([reserveCommand(attempt), settleCommand(attempt)]);
    const db = new DatabaseSync(file);
    dropTriggers(db);
    db.exec(
      "DELETE FROM batch WHERE first < 3; UPDATE segment SET id = id - 1; DELETE FROM call WHERE attempt = 'a'; DELETE FROM closed_call WHERE reserve < 3",
    );
    db.close();
    expect((await store.verify!()).length).toBeGreaterThan(0);
  });
});

function dropTriggers(db: DatabaseSync): void {
  for (const { name } of db.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all())
    db.exec(`DROP TRIGGER ${name}`);
}

describe("failures", () => {
  it("a short lock is waited for without blocking the event loop", async () => {
    const { store, file } = await opened();
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const applied = store.apply([reserveCommand("a")]);
    // An event loop that waited for the lock would never reach the line that releases it.
    await turnEventLoop(2_000);
    other.exec("COMMIT");
    await applied;
    other.close();
  });

  it("a long lock rejects reserves in time, and settles are written after it", async () => {
    const { store, file } = await opened();
    let tries = 0;
    const apply: Store["apply"] = (batch) => (tries++, store.apply(batch));
    const ledger = createLedgerQueue({ apply, lease: store.lease }, { storeTimeoutMs: 200 });
    await ledger.reserve(reserveCommand("a"));
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const settled = ledger.settle(settleCommand("a"));
    // While the lock is held.
    await expect(ledger.reserve(reserveCommand("b"))).rejects.toThrow(/ledger cannot be written/);
    expect(ledger.isHealthy).toBe(false);
    // The settle is retried.
    const before = tries;
    await until(() => tries > before + 1);
    other.exec("COMMIT");
    other.close();
    await settled;
    await ledger.flush();
    expect(ledger.isHealthy).toBe(true);
    const found = (await store.listEntries({})).items.map(
      ({ attempt, kind, state }) => `${attempt} ${kind} ${state}`,
    );
    expect(found.slice(0, 2)).toEqual(["a reserve open", "a settle exact"]);
    // Whatever happened to the rejected one, nothing is reserved for it.
    expect(
      (await store.listEntries({ state: "open" })).items.filter(({ attempt }) => attempt === "b"),
    ).toEqual([]);
    await ledger.close();
  });

  it("a dead thread is replaced, and its work is done once", async () => {
    const workers: Worker[] = [];
    const seen = (worker: Worker): void => void workers.push(worker);
    process.on("worker", seen);
    onTestFinished(() => void process.off("worker", seen));
    const { store } = await opened({ durability: "power" });
    const writer = workers[0]!;
    for (let i = 0; i < 30; i++) {
      const batch = [reserveCommand(`a${i}`), settleCommand(`a${i}`)];
      const applied = store.apply(batch);
      if (i % 10 === 5) void workers.at(-1)!.terminate();
      if (i === 15) void writer.terminate();
      expect((await applied).every(({ ok }) => ok)).toBe(true);
    }
    expect(workers.length).toBeGreaterThan(2);
    expect((await store.listEntries({}, { limit: 100 })).items.length).toBe(60);
    expect(await store.verify!()).toEqual([]);
  });

  it("relaxed: acknowledges immediately, commits soon after, complete batches or nothing", async () => {
    const made = await opened({ durability: "relaxed" });
    await made.store.apply([reserveCommand("a"), settleCommand("a")]);
    const file = new DatabaseSync(made.file, { readOnly: true });
    await until(() => file.prepare("SELECT count(*) AS n FROM entry").get()!["n"] === 2);
    file.close();
    await made.store.apply([reserveCommand("b"), settleCommand("b")]);
    await expect(
      made.store.apply([reserveCommand("c"), settleCommand("nobody")]),
    ).rejects.toThrow();
    await made.store.apply([{ do: "key", at: NOON, key: { id: "k", digest: "d", created: NOON } }]);
    expect((await made.store.findKey("d"))?.id).toBe("k");
    const next = await made.crash();
    await next.open(owner("two"));
    const attempts = new Set((await next.listEntries({})).items.map(({ attempt }) => attempt));
    expect([...attempts]).toEqual(["a", "b"]);
    expect(await next.verify!()).toEqual([]);
  });

  it("a truncated write-ahead log loses only the truncated commit, as a whole", async () => {
    const { store, file } = await opened();
    await filled(store, 12);
    const copy = join(folder(), "copy.db");
    for (let cut = 0; cut < 6; cut++) {
      copyFileSync(file, copy);
      copyFileSync(`${file}-wal`, `${copy}-wal`);
      rmSync(`${copy}-shm`, { force: true });
      const size = statSync(`${copy}-wal`).size;
      truncateSync(`${copy}-wal`, Math.floor(size - cut * 5_000 - 100));
      const made = await onFile(copy);
      await made.store.open(owner("two"));
      expect(await made.store.verify!()).toEqual([]);
      const entries = (await made.store.listEntries({}, { limit: 100 })).items.length;
      expect(entries % 2).toBe(0);
      if (cut === 0) expect(entries).toBe(22);
      await made.dispose();
    }
  });
});

describe("a large ledger", () => {
  const MANY = 10_000;
  /** Calls of `k`, one commit per thousand, and one call of another key among them. */
  async function grown(store: Store): Promise<void> {
    for (let from = 0; from < MANY; from += 1_000) {
      const batch: StoreCommand[] = [];
      for (let i = from; i < from + 1_000; i++) {
        const [attempt, at] = [`a${i}`, NOON + i];
        const key = i === 7_500 ? "rare" : "k";
        batch.push(
          reserveCommand(attempt, { at, key }),
          settleCommand(attempt, { at, upstreamId: `up-${i}` }),
        );
      }
      await store.apply(batch);
    }
  }
  const attempts = async (store: Store, query: Parameters<Store["listEntries"]>[0]) =>
    (await store.listEntries(query)).items.map(({ attempt, kind }) => `${attempt} ${kind}`);

  it("lists long-open calls, and the next owner reads only the newest commits", async () => {
    const made = await opened();
    const heard = {
      do: "progress",
      at: NOON,
      attempt: "heard",
      usage: { output: 3 },
      costNano: 9n,
    } as const;
    await made.store.apply([
      reserveCommand("old", { holdNano: 77n }),
      reserveCommand("heard"),
      reserveCommand("ended"),
      heard,
    ]);
    await grown(made.store);
    await made.store.apply([settleCommand("ended"), reserveCommand("new")]);
    const db = new DatabaseSync(made.file, { readOnly: true });
    expect(db.prepare("SELECT attempt FROM open_call ORDER BY attempt").all()).toEqual([
      { attempt: "heard" },
      { attempt: "old" },
    ]);
    const { oldest_open: oldestOpen, last } = db
      .prepare("SELECT oldest_open, last FROM segment ORDER BY id DESC LIMIT 1")
      .get() as { oldest_open: number; last: number };
    expect(last - oldestOpen).toBeLessThan(16_384);
    db.close();
    expect(await attempts(made.store, { state: "open" })).toEqual([
      "old reserve",
      "heard reserve",
      "new reserve",
    ]);
    expect(await made.store.verify!()).toEqual([]);
    const next = await made.crash();
    expect((await next.open(owner("two"))).recovered).toBe(3);
    const settled = async (attempt: string) => (await next.listEntries({ attempt })).items[1];
    expect(await settled("old")).toMatchObject({ outcome: "recovered", costNano: 77n });
    expect(await settled("heard")).toMatchObject({ costNano: 9n, usage: { output: 3 } });
    expect(await settled("new")).toMatchObject({ outcome: "recovered" });
    expect(await settled("ended")).toMatchObject({ outcome: "ok" });
    expect(await next.verify!()).toEqual([]);
  });

  it("finds an entry that was listed in a failed batch", async () => {
    const made = await opened();
    await made.store.apply([reserveCommand("old")]);
    await grown(made.store);
    await expect(
      made.store.apply([reserveCommand("b"), settleCommand("nobody")]),
    ).rejects.toThrow();
    await made.store.apply([
      reserveCommand("c"),
      settleCommand("c"),
      reserveCommand("b"),
      settleCommand("b"),
    ]);
    // A repeat among others: the batch is applied again, one by one.
    await made.store.apply([
      reserveCommand("a1"),
      reserveCommand("d"),
      settleCommand("a1"),
      settleCommand("d"),
      reserveCommand("d"),
    ]);
    const next = await made.crash();
    expect((await next.open(owner("two"))).recovered).toBe(1);
    expect(await attempts(next, { attempt: "d" })).toEqual(["d reserve", "d settle"]);
    expect(await next.verify!()).toEqual([]);
  });

  it("finds entries as fast as a small one", async () => {
    const { store } = await opened();
    await grown(store);
    expect(await attempts(store, { key: "rare" })).toEqual(["a7500 reserve", "a7500 settle"]);
    expect(await attempts(store, { key: "nobody" })).toEqual([]);
    expect(await attempts(store, { attempt: "a9999" })).toEqual(["a9999 reserve", "a9999 settle"]);
    expect(await attempts(store, { upstreamId: "up-123" })).toEqual(["a123 settle"]);
    expect(await attempts(store, { upstreamId: "up-12" })).toEqual(["a12 settle"]);
    expect(await attempts(store, { from: NOON + 5_000, to: NOON + 5_001 })).toEqual([
      "a5000 reserve",
      "a5000 settle",
    ]);
    expect(await attempts(store, { key: "k", from: NOON + 7_500, to: NOON + 7_502 })).toEqual([
      "a7501 reserve",
      "a7501 settle",
    ]);
    const { items } = await store.listEntries({}, { after: "15000", limit: 2 });
    expect(items.map(({ seq, attempt }) => [seq, attempt])).toEqual([
      [15_001, "a7500"],
      [15_002, "a7500"],
    ]);
    expect((await store.sumEntries({ by: [], key: "k" }))[0]?.calls).toBe(MANY - 1);
  });
});

/** A file system of three megabytes, which only some machines allow. */
function tinyDisk(): string | undefined {
  const at = mkdtempSync(join(tmpdir(), "tollgate-disk-"));
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", at]);
  const release = (): void => {
    if (status === 0) spawnSync("umount", ["-l", at]);
    rmSync(at, { recursive: true, force: true });
  };
  if (status !== 0) {
    release();
    return undefined;
  }
  onTestFinished(release);
  return at;
}

it("a full disk rejects new calls, settles open ones, and recovers", async (test) => {
  const disk = tinyDisk();
  if (disk === undefined) return test.skip("needs the right to mount a file system");
  const { store } = await opened({ file: join(disk, "ledger.db"), ballast_mb: 1 });
  const ledger = createLedgerQueue(store, { storeTimeoutMs: 300 });
  const running = [];
  for (let i = 0; i < 40; i++) {
    await ledger.reserve(reserveCommand(`r${i}`));
    running.push(`r${i}`);
  }
  const junk = join(disk, "junk");
  writeFileSync(junk, "");
  try {
    for (;;) appendFileSync(junk, Buffer.alloc(4_096));
  } catch {
    // That was the last free byte.
  }
  for (let i = 0; ledger.isHealthy && i < 400; i++)
    await ledger.reserve(reserveCommand(`n${i}`)).then(
      () => running.push(`n${i}`),
      () => undefined,
    );
  expect(ledger.isHealthy).toBe(false);
  await Promise.all(running.map((attempt) => ledger.settle(settleCommand(attempt))));
  expect(ledger.isHealthy).toBe(false);
  rmSync(junk);
  await ledger.flush();
  expect(ledger.isHealthy).toBe(true);
  expect((await ledger.reserve(reserveCommand("after"))).ok).toBe(true);
  const settled = (await store.sumEntries({ by: [] }))[0]!;
  expect(settled.calls).toBe(running.length);
  expect(await store.verify!()).toEqual([]);
  await ledger.close();
});

it("a disk that is too full for a new ledger is reported, and no file is created", (test) => {
  const disk = tinyDisk();
  if (disk === undefined) return test.skip("needs the right to mount a file system");
  const file = join(disk, "ledger.db");
  const db = new DatabaseSync(file);
  writeFileSync(join(disk, "junk"), "");
  try {
    for (;;) appendFileSync(join(disk, "junk"), Buffer.alloc(4 << 10));
  } catch {
    // Full.
  }
  expect(() => migrate(db, file)).toThrow(/full/);
  expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: 0 });
  rmSync(join(disk, "junk"));
  migrate(db, file);
  expect(db.prepare("SELECT count(*) AS n FROM entry").get()).toEqual({ n: 0 });
  db.close();
});

it("reports delay neither commits nor key lookups", async () => {
  const { store } = await opened();
  const batch: StoreCommand[] = [];
  for (let i = 0; i < 4_000; i++) batch.push(reserveCommand(`a${i}`), settleCommand(`a${i}`));
  await store.apply(batch);
  await store.apply([{ do: "key", at: NOON, key: { id: "k", digest: "d", created: NOON } }]);
  const order: string[] = [];
  await Promise.all([
    store.verify!().then(() => order.push("verify")),
    store.findKey("d").then(() => order.push("key")),
    store.apply([reserveCommand("b")]).then(() => order.push("commit")),
  ]);
  expect(order.at(-1)).toBe("verify");
});
