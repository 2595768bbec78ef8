// Checks of maintenance, for stores that implement it. Operations that a store leaves out are not
// checked.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KeyRecord } from "../../plugin/store/account.ts";
import type { Store } from "../../plugin/store/store.ts";
import {
  limitClaim,
  readRemaining,
  NOON,
  applyOne,
  reserveCommand,
  readEntries,
  settleCommand,
  type Law,
  SECOND_OWNER,
} from "./fixtures.ts";
import { getFault } from "../../model/error.ts";
import type {
  LedgerImport,
  LedgerExport,
  TransferredRemainder,
  TransferredRows,
} from "../../plugin/store/ledger-transfer.ts";

/** The latest time of a Date, in Unix milliseconds. */
const MAX_DATE_MS = 8.64e15;

/** Runs work with a temporary file, which is deleted afterwards. */
async function withTempFile(work: (file: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-law-"));
  try {
    const file = join(folder, "file");
    writeFileSync(file, "");
    await work(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const writeCalls = async (store: Store, ...attempts: string[]): Promise<void> => {
  for (const attempt of attempts)
    await store.apply([
      reserveCommand(attempt, {
        labels: { user: "4711", team: "core" },
        claims: [limitClaim({ per: "total", max: 10n ** 9n }, 1_000n)],
      }),
      settleCommand(attempt, { costNano: 700n }),
    ]);
};

const createKey = (more: Partial<KeyRecord> = {}): KeyRecord => ({
  id: "alice",
  digest: "d1",
  created: NOON,
  name: "Alice's laptop",
  labels: { user: "4711", team: "core" },
  ...more,
});

/** Checks of erasure, backups, archives, and rollups. */
export const maintenanceLaws: readonly Law[] = [
  [
    "an erased label is in no row and no key, and all other data is unchanged",
    async (store) => {
      const erase = store.maintenance?.erase;
      if (!erase) return;
      await applyOne(store, { do: "key", at: NOON, key: createKey() });
      await writeCalls(store, "a", "b");
      await applyOne(store, reserveCommand("open", { labels: { user: "4711" } }));
      const before = await store.sumEntries({ by: [] });
      const { hashes } = await erase({ label: { name: "user", value: "4711" } });
      assert.ok(hashes.length > 0 && !JSON.stringify(hashes).includes("4711"));
      await applyOne(store, settleCommand("open"));
      for (const attempt of ["a", "b"])
        for (const row of await readEntries(store, attempt))
          assert.deepEqual(row.labels, { user: "erased", team: "core" });
      // The call was open during the erasure. Its rows have the labels of the reserve.
      for (const row of await readEntries(store, "open"))
        assert.deepEqual(row.labels, { user: "erased" });
      assert.deepEqual(
        await store.findKey("d1"),
        createKey({ labels: { user: "erased", team: "core" } }),
      );
      const [after] = await store.sumEntries({ by: [] });
      assert.equal(after!.costNano, before[0]!.costNano + 700n);
      const sums = await store.sumEntries({ by: ["label"] });
      assert.deepEqual(
        sums.map(({ by, calls }) => [by["label"], calls]),
        [
          ["team=core", 2],
          ["user=erased", 3],
        ],
      );
      assert.deepEqual((await erase({ label: { name: "user", value: "4711" } })).hashes, []);
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "later calls can use an erased label again, and other labels with its value are kept",
    async (store) => {
      const erase = store.maintenance?.erase;
      if (!erase) return;
      await writeCalls(store, "a");
      await store.apply([
        reserveCommand("other", { labels: { name: "4711" } }),
        settleCommand("other"),
      ]);
      await erase({ label: { name: "user", value: "4711" } });
      await writeCalls(store, "b");
      assert.deepEqual((await readEntries(store, "b"))[1]?.labels, { user: "4711", team: "core" });
      assert.deepEqual((await readEntries(store, "other"))[1]?.labels, { name: "4711" });
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "an erased key has no name, and its rows have no readable labels",
    async (store, crash) => {
      const erase = store.maintenance?.erase;
      if (!erase) return;
      await store.apply([
        { do: "key", at: NOON, key: createKey() },
        { do: "key", at: NOON, key: createKey({ id: "bob", digest: "d2", created: NOON + 1 }) },
      ]);
      await writeCalls(store, "a");
      await store.apply([
        reserveCommand("b", { key: "bob", labels: { user: "4711" } }),
        settleCommand("b"),
      ]);
      await erase({ key: "alice" });
      const labels = { user: "erased", team: "erased" };
      assert.deepEqual(await store.findKey("d1"), createKey({ name: "erased", labels }));
      assert.deepEqual((await readEntries(store, "a"))[0]?.labels, labels);
      assert.deepEqual((await readEntries(store, "b"))[0]?.labels, { user: "4711" });
      assert.deepEqual((await erase({ key: "alice" })).hashes, []);
      assert.deepEqual((await store.verify?.()) ?? [], []);
      const next = await crash();
      await next.open({ instance: "next" });
      assert.deepEqual((await readEntries(next, "a"))[0]?.labels, labels);
      assert.deepEqual((await next.verify?.()) ?? [], []);
    },
  ],

  [
    "an erased account has no name and no readable labels, and its keys and rows are unchanged",
    async (store) => {
      const erase = store.maintenance?.erase;
      if (!erase || !store.listAccounts) return;
      const labels = { contact: "Alice" };
      const account = { id: "acme", created: NOON, version: 1, name: "Acme", labels };
      await store.apply([
        { do: "account", at: NOON, account },
        { do: "account", at: NOON, account: { ...account, id: "other" } },
        { do: "key", at: NOON, key: createKey({ account: "acme" }) },
      ]);
      await writeCalls(store, "a");
      await erase({ account: "acme" });
      const found = new Map((await store.listAccounts()).items.map((one) => [one.id, one]));
      assert.equal(found.get("acme")?.name, "erased");
      assert.deepEqual(found.get("acme")?.labels, { contact: "erased" });
      assert.deepEqual(found.get("other")?.labels, labels);
      assert.deepEqual(await store.findKey("d1"), createKey({ account: "acme" }));
      assert.deepEqual((await readEntries(store, "a"))[0]?.labels, { user: "4711", team: "core" });
      assert.deepEqual((await erase({ account: "acme" })).hashes, []);
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "a backup is a consistent snapshot and records its time",
    async (store) => {
      const backup = store.maintenance?.backup;
      if (!backup) return;
      await applyOne(store, { do: "key", at: NOON, key: createKey() });
      await writeCalls(store, "a", "b");
      await withTempFile(async (file) => {
        const copy = await backup(file);
        const [total] = await store.sumEntries({ by: [] });
        assert.equal(copy.total.calls, 2);
        assert.equal(copy.total.costNano, total!.costNano);
        assert.deepEqual(copy.erasedHashes, []);
        assert.ok(readFileSync(file).length > 0);
        const error = await store.maintenance?.restore?.(file).then(
          () => undefined,
          (e: Error) => e,
        );
        if (store.maintenance?.restore) assert.ok(error, "The backup replaced an existing ledger.");
      });
    },
  ],

  [
    "an archive contains all rows and verifies itself",
    async (store) => {
      const { archive, readArchive } = store.maintenance ?? {};
      if (!archive || !readArchive) return;
      await writeCalls(store, "a", "b");
      await withTempFile(async (file) => {
        const made = await archive(file, { before: NOON + 10_000, labels: true });
        assert.deepEqual([made.rows, made.from, made.to], [4, NOON, NOON + 1_000]);
        assert.equal(made.total.costNano, 1_400n);
        const { problems, ...read } = await readArchive(file);
        assert.deepEqual(problems, []);
        assert.deepEqual(read, made);
        const bytes = readFileSync(file);
        writeFileSync(file, bytes.subarray(0, bytes.length - 40));
        assert.ok((await readArchive(file)).problems.length > 0);
        assert.equal((await archive(file, { before: NOON, labels: false })).rows, 0);
      });
    },
  ],

  [
    "pruning keeps the sums of pruned rows and the usage of budgets",
    async (store, crash) => {
      const { planPrune, prune, readState } = store.maintenance ?? {};
      if (!planPrune || !prune) return;
      await writeCalls(store, "a", "b", "c");
      const [at, later] = [NOON + 86_400_000, NOON + 86_401_000];
      // This call is on the same day and has the same labels, but is not pruned.
      const evening = NOON + 6 * 3_600_000;
      const labels = { user: "4711", team: "core" };
      await store.apply([
        reserveCommand("e", { at: evening, labels }),
        settleCommand("e", { at: evening }),
      ]);
      await store.apply([
        reserveCommand("d", { at, claims: [limitClaim({ per: "total", max: 10n ** 9n }, 1_000n)] }),
        settleCommand("d", { at: later, costNano: 50n }),
      ]);
      const by = ["day", "key", "model"] as const;
      const sums = await store.sumEntries({ by });
      const budget = await readRemaining(store, { per: "total", max: 10n ** 9n }, later);
      const planned = await planPrune(NOON + 10_000);
      assert.equal(planned.rows, 6);
      assert.equal((await prune(NOON + 10_000)).rows, 6);
      const check = async (now: Store) => {
        assert.deepEqual((await readEntries(now, "a")).length, 0);
        assert.deepEqual((await readEntries(now, "d")).length, 2);
        assert.deepEqual(await now.sumEntries({ by }), sums);
        assert.equal(await readRemaining(now, { per: "total", max: 10n ** 9n }, later), budget);
        assert.deepEqual((await now.verify?.()) ?? [], []);
      };
      await check(store);
      assert.equal((await planPrune(NOON + 10_000)).rows, 0);
      assert.equal((await prune(NOON + 10_000)).rows, 0);
      if (readState) assert.equal((await readState()).prunedRows, 6);
      const next = await crash();
      await next.open({ instance: "next" });
      await check(next);
    },
  ],

  [
    "a prune ends, even if its date is in the future",
    async (store) => {
      const { prune } = store.maintenance ?? {};
      if (!prune) return;
      await writeCalls(store, "a", "b");
      const sums = await store.sumEntries({ by: ["key"] });
      assert.equal((await prune(MAX_DATE_MS)).rows, 4);
      assert.deepEqual(await store.sumEntries({ by: ["key"] }), sums);
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "rows after an older open call are not pruned",
    async (store) => {
      const { planPrune, prune } = store.maintenance ?? {};
      if (!planPrune || !prune) return;
      await writeCalls(store, "a");
      await applyOne(store, reserveCommand("open", { at: NOON + 1 }));
      await writeCalls(store, "b");
      const planned = await planPrune(NOON + 10_000);
      assert.equal(planned.rows, 2);
      assert.equal(planned.open?.attempt, "open");
      assert.equal((await prune(NOON + 10_000)).rows, 2);
      assert.equal((await readEntries(store, "b")).length, 2);
      await applyOne(store, settleCommand("open"));
      assert.equal((await readEntries(store, "open")).length, 2);
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "verification finds no errors during pruning or erasure",
    async (store) => {
      const { prune, erase } = store.maintenance ?? {};
      if (!prune || !erase) return;
      let over = false;
      const changed = (async () => {
        for (let day = 0; day < 4; day++) {
          const at = NOON + day * 86_400_000;
          for (let i = 0; i < 5; i++)
            await store.apply([
              reserveCommand(`${day}.${i}`, { at: at + i, labels: { user: "alice" } }),
              settleCommand(`${day}.${i}`, { at: at + i + 1 }),
            ]);
          await erase({ label: { name: "user", value: "alice" } });
          await prune(at - 1);
        }
      })().finally(() => (over = true));
      try {
        while (!over) assert.deepEqual((await store.verify?.()) ?? [], []);
      } finally {
        await changed;
      }
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],
];

// Checks of moving a ledger, for stores that support it: all content arrives, an interrupted move
// continues, and differences are rejected.

const BUDGET = { per: "total", max: 10n ** 9n } as const;

/**
 * Writes a key and calls. One call was corrected, and two are open, one of them without a limit.
 */
async function fillStore(store: Store): Promise<void> {
  const claims = [limitClaim(BUDGET, 1_000n)];
  await store.apply([
    { do: "key", at: NOON, key: { id: "alice", digest: "d1", created: NOON, name: "Alice" } },
    reserveCommand("a", { claims, labels: { user: "4711" } }),
    reserveCommand("b", { claims }),
    settleCommand("a", { costNano: 700n }),
  ]);
  await store.apply([
    settleCommand("b", { costNano: 300n, state: "estimated" }),
    { do: "adjust", at: NOON + 2_000, attempt: "a", costNano: -100n, reason: "late", actor: "ann" },
    reserveCommand("open", { claims }),
    { do: "progress", at: NOON, attempt: "open", usage: { output: 2 }, costNano: 40n },
    reserveCommand("free"),
  ]);
}

const rejectionCode = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => assert.fail("The transfer was not rejected."),
    (error: unknown) => getFault(error)?.code,
  );

async function transferPages(out: LedgerExport, into: LedgerImport): Promise<void> {
  let page: TransferredRows;
  let after = into.after;
  do {
    page = await out.readRows(after);
    await into.writeRows(page);
    after = page.next;
  } while (page.more);
}

/** Moves the whole ledger in one step. `change` edits everything except the rows. */
export async function transferAll(
  from: Store,
  to: Store,
  change: (rest: TransferredRemainder) => TransferredRemainder = (rest) => rest,
): Promise<TransferredRemainder> {
  await using out = await from.transfer!.openExport();
  await using into = await to.transfer!.openImport();
  await transferPages(out, into);
  await out.stopWrites();
  const rest = await out.readRemainder();
  await into.finish(change(rest));
  return rest;
}

const LIMIT = { scope: "key:alice", unit: "nano_usd", ...BUDGET } as const;

const COMPARED_DIMENSIONS = ["key", "model", "state"] as const;
/** Returns the data of finished calls that readers see. */
const readVisible = async (store: Store) => ({
  rows: (await Promise.all(["a", "b"].map((attempt) => readEntries(store, attempt))))
    .flat()
    .map(({ seq: _, ...row }) => row),
  sums: await store.sumEntries({ by: COMPARED_DIMENSIONS, state: "exact" }),
  key: await store.findKey("d1"),
});

/** Checks of a transfer to a store of the same kind, which the author's test creates. */
export const transferLaws: readonly Law[] = [
  [
    "a transferred ledger is identical: rows, sums, keys, budget usage, and open calls",
    async (store, crash, { createEmpty }) => {
      if (!store.transfer || !createEmpty) return;
      await fillStore(store);
      const before = await readVisible(store);
      const [counted] = (await store.readLimits?.([LIMIT], NOON)) ?? [];
      const there = await createEmpty();
      const rest = await transferAll(await crash(), there);
      assert.deepEqual(
        rest.lastProgress.map(([attempt, , costNano]) => [attempt, costNano]),
        [["open", 40n]],
      );
      assert.equal((await there.open(SECOND_OWNER)).recovered, 2);
      assert.deepEqual(await readVisible(there), before);
      const [end] = (await readEntries(there, "open")).filter(({ kind }) => kind === "settle");
      assert.deepEqual([end?.outcome, end?.costNano], ["recovered", 40n]);
      // The open call had a reservation. It is recovered with its last reported usage.
      const [now] = (await there.readLimits?.([LIMIT], NOON)) ?? [];
      if (counted) assert.deepEqual([now?.used, now?.reserved], [counted.used + 40n, 0n]);
      assert.equal(await readRemaining(there, BUDGET), BUDGET.max - 940n);
      assert.deepEqual((await there.verify?.()) ?? [], []);
      await there.apply([reserveCommand("next"), settleCommand("next")]);
      assert.deepEqual((await there.verify?.()) ?? [], []);
    },
  ],

  [
    "an interrupted transfer resumes, and the store cannot be opened until it is finished",
    async (store, crash, { createEmpty }) => {
      if (!store.transfer || !createEmpty) return;
      await fillStore(store);
      const before = await readVisible(store);
      const from = await crash();
      const there = await createEmpty();
      {
        await using out = await from.transfer!.openExport();
        await using into = await there.transfer!.openImport();
        assert.equal(into.after, 0);
        await into.writeRows(await out.readRows(0));
      }
      await assert.rejects(there.open(SECOND_OWNER));
      await using out = await from.transfer!.openExport();
      {
        await using into = await there.transfer!.openImport();
        assert.ok(into.after > 0, "the transfer must resume");
        await transferPages(out, into);
        await out.stopWrites();
        await into.finish(await out.readRemainder());
      }
      await there.open(SECOND_OWNER);
      assert.deepEqual(await readVisible(there), before);
      assert.deepEqual((await there.verify?.()) ?? [], []);
    },
  ],

  [
    "a transfer whose sums differ is rejected and leaves no ledger",
    async (store, crash, { createEmpty }) => {
      if (!store.transfer || !createEmpty) return;
      await fillStore(store);
      const there = await createEmpty();
      const another = (rest: TransferredRemainder): TransferredRemainder => ({
        ...rest,
        totals: rest.totals.map((total, i) =>
          i === 0 ? { ...total, costNano: total.costNano + 1n } : total,
        ),
      });
      const from = await crash();
      const error = await transferAll(from, there, another).then(
        () => assert.fail("The transfer was not rejected."),
        (e: unknown) => getFault(e)?.kind,
      );
      assert.equal(error, "invalid");
    },
  ],

  [
    "a transfer requires an empty target and a source without writers",
    async (store, crash, { openAnother }) => {
      if (!store.transfer) return;
      await applyOne(store, reserveCommand("a"));
      if (openAnother) {
        await using out = await (await openAnother()).transfer!.openExport();
        assert.equal(await rejectionCode(out.stopWrites()), "in_use");
      }
      assert.equal(await rejectionCode((await crash()).transfer!.openImport()), "not_empty");
    },
  ],
];
