// Checks of moving a ledger, for stores that support it: the content arrives complete, an
// interrupted move continues, and differences are rejected.
import assert from "node:assert/strict";
import { getFault } from "../../model/error.ts";
import type {
  LedgerImport,
  LedgerExport,
  TransferredRemainder,
  TransferredRows,
} from "../../plugin/store/ledger-transfer.ts";
import type { Store } from "../../plugin/store/store.ts";
import {
  limitClaim,
  readRemaining,
  NOON,
  applyOne,
  reserveCommand,
  readEntries,
  SECOND_OWNER,
  settleCommand,
  type Law,
} from "./fixtures.ts";

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
async function transferAll(
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
/** Returns what readers see of finished calls. */
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
