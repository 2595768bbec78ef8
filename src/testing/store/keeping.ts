// What becomes of a ledger over the years, of stores that do something for it. What one leaves out is not asked of it.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KeyRecord } from "../../plugin/key.ts";
import type { Store } from "../../plugin/store.ts";
import { claim, left, NOON, one, reserve, rows, settle, type Law } from "./bench.ts";

/** The last moment that a Date can say. */
const NEVER = 8.64e15;

/** A file of its own for as long as the work lasts. */
async function withFile(work: (file: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-law-"));
  try {
    const file = join(folder, "file");
    writeFileSync(file, "");
    await work(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const calls = async (store: Store, ...attempts: string[]): Promise<void> => {
  for (const attempt of attempts)
    await store.apply([
      reserve(attempt, {
        labels: { user: "4711", team: "core" },
        claims: [claim({ per: "total", max: 10n ** 9n }, 1_000n)],
      }),
      settle(attempt, { costNano: 700n }),
    ]);
};

const key = (more: Partial<KeyRecord> = {}): KeyRecord => ({
  id: "alice",
  digest: "d1",
  created: NOON,
  name: "Alice's laptop",
  labels: { user: "4711", team: "core" },
  ...more,
});

/** Erasure, copies, archives and sums in place of rows. */
export const keepingLaws: readonly Law[] = [
  [
    "a label that is erased is said by no row and no key any more, and everything else is as it was",
    async (store) => {
      const erase = store.keeping?.erase;
      if (!erase) return;
      await one(store, { do: "key", at: NOON, key: key() });
      await calls(store, "a", "b");
      await one(store, reserve("open", { labels: { user: "4711" } }));
      const before = await store.totals({ by: [] });
      const { values } = await erase({ label: { name: "user", value: "4711" } });
      assert.ok(values.length > 0 && !JSON.stringify(values).includes("4711"));
      await one(store, settle("open"));
      for (const attempt of ["a", "b"])
        for (const row of await rows(store, attempt))
          assert.deepEqual(row.labels, { user: "erased", team: "core" });
      // What was open speaks of what it said when it began.
      for (const row of await rows(store, "open")) assert.deepEqual(row.labels, { user: "erased" });
      assert.deepEqual(await store.key("d1"), key({ labels: { user: "erased", team: "core" } }));
      const [after] = await store.totals({ by: [] });
      assert.equal(after!.costNano, before[0]!.costNano + 700n);
      const sums = await store.totals({ by: ["label"] });
      assert.deepEqual(
        sums.map(({ by, calls }) => [by["label"], calls]),
        [
          ["team=core", 2],
          ["user=erased", 3],
        ],
      );
      assert.deepEqual((await erase({ label: { name: "user", value: "4711" } })).values, []);
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "a label is said anew by calls that come after its erasure, and others of its value stay",
    async (store) => {
      const erase = store.keeping?.erase;
      if (!erase) return;
      await calls(store, "a");
      await store.apply([reserve("other", { labels: { name: "4711" } }), settle("other")]);
      await erase({ label: { name: "user", value: "4711" } });
      await calls(store, "b");
      assert.deepEqual((await rows(store, "b"))[1]?.labels, { user: "4711", team: "core" });
      assert.deepEqual((await rows(store, "other"))[1]?.labels, { name: "4711" });
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "a key that is erased has no name, and its rows have no labels that say anything",
    async (store, crash) => {
      const erase = store.keeping?.erase;
      if (!erase) return;
      await store.apply([
        { do: "key", at: NOON, key: key() },
        { do: "key", at: NOON, key: key({ id: "bob", digest: "d2", created: NOON + 1 }) },
      ]);
      await calls(store, "a");
      await store.apply([reserve("b", { key: "bob", labels: { user: "4711" } }), settle("b")]);
      await erase({ key: "alice" });
      const labels = { user: "erased", team: "erased" };
      assert.deepEqual(await store.key("d1"), key({ name: "erased", labels }));
      assert.deepEqual((await rows(store, "a"))[0]?.labels, labels);
      assert.deepEqual((await rows(store, "b"))[0]?.labels, { user: "4711" });
      assert.deepEqual((await erase({ key: "alice" })).values, []);
      assert.deepEqual((await store.verify?.()) ?? [], []);
      const next = await crash();
      await next.open({ instance: "next" });
      assert.deepEqual((await rows(next, "a"))[0]?.labels, labels);
      assert.deepEqual((await next.verify?.()) ?? [], []);
    },
  ],

  [
    "a copy is what the ledger was at one moment, and says so",
    async (store) => {
      const backup = store.keeping?.backup;
      if (!backup) return;
      await one(store, { do: "key", at: NOON, key: key() });
      await calls(store, "a", "b");
      await withFile(async (file) => {
        const copy = await backup(file);
        const [total] = await store.totals({ by: [] });
        assert.equal(copy.total.calls, 2);
        assert.equal(copy.total.costNano, total!.costNano);
        assert.deepEqual(copy.erased, []);
        assert.ok(readFileSync(file).length > 0);
        const error = await store.keeping?.restore?.(file).then(
          () => undefined,
          (e: Error) => e,
        );
        if (store.keeping?.restore) assert.ok(error, "It was put in the place of a ledger.");
      });
    },
  ],

  [
    "an archive has all rows, and proves itself",
    async (store) => {
      const { archive, readArchive } = store.keeping ?? {};
      if (!archive || !readArchive) return;
      await calls(store, "a", "b");
      await withFile(async (file) => {
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
    "rows that are pruned leave their sums and what budgets have counted",
    async (store, crash) => {
      const { plan, prune, state } = store.keeping ?? {};
      if (!plan || !prune) return;
      await calls(store, "a", "b", "c");
      const [at, later] = [NOON + 86_400_000, NOON + 86_401_000];
      // Of the same day and said the same, and it stays.
      const evening = NOON + 6 * 3_600_000;
      const labels = { user: "4711", team: "core" };
      await store.apply([reserve("e", { at: evening, labels }), settle("e", { at: evening })]);
      await store.apply([
        reserve("d", { at, claims: [claim({ per: "total", max: 10n ** 9n }, 1_000n)] }),
        settle("d", { at: later, costNano: 50n }),
      ]);
      const by = ["day", "key", "model"] as const;
      const sums = await store.totals({ by });
      const budget = await left(store, { per: "total", max: 10n ** 9n }, later);
      const planned = await plan(NOON + 10_000);
      assert.equal(planned.rows, 6);
      assert.equal((await prune(NOON + 10_000)).rows, 6);
      const check = async (now: Store) => {
        assert.deepEqual((await rows(now, "a")).length, 0);
        assert.deepEqual((await rows(now, "d")).length, 2);
        assert.deepEqual(await now.totals({ by }), sums);
        assert.equal(await left(now, { per: "total", max: 10n ** 9n }, later), budget);
        assert.deepEqual((await now.verify?.()) ?? [], []);
      };
      await check(store);
      assert.equal((await plan(NOON + 10_000)).rows, 0);
      assert.equal((await prune(NOON + 10_000)).rows, 0);
      if (state) assert.equal((await state()).prunedRows, 6);
      const next = await crash();
      await next.open({ instance: "next" });
      await check(next);
    },
  ],

  [
    "a prune ends, also when its day is still to come",
    async (store) => {
      const { prune } = store.keeping ?? {};
      if (!prune) return;
      await calls(store, "a", "b");
      const sums = await store.totals({ by: ["key"] });
      assert.equal((await prune(NEVER)).rows, 4);
      assert.deepEqual(await store.totals({ by: ["key"] }), sums);
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "no row goes that is behind an older open call",
    async (store) => {
      const { plan, prune } = store.keeping ?? {};
      if (!plan || !prune) return;
      await calls(store, "a");
      await one(store, reserve("open", { at: NOON + 1 }));
      await calls(store, "b");
      const planned = await plan(NOON + 10_000);
      assert.equal(planned.rows, 2);
      assert.equal(planned.open?.attempt, "open");
      assert.equal((await prune(NOON + 10_000)).rows, 2);
      assert.equal((await rows(store, "b")).length, 2);
      await one(store, settle("open"));
      assert.equal((await rows(store, "open")).length, 2);
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],

  [
    "nothing is found wrong while rows are pruned, or a label is erased",
    async (store) => {
      const { prune, erase } = store.keeping ?? {};
      if (!prune || !erase) return;
      let over = false;
      const changed = (async () => {
        for (let day = 0; day < 4; day++) {
          const at = NOON + day * 86_400_000;
          for (let i = 0; i < 5; i++)
            await store.apply([
              reserve(`${day}.${i}`, { at: at + i, labels: { user: "alice" } }),
              settle(`${day}.${i}`, { at: at + i + 1 }),
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
