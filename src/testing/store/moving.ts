// How a ledger moves, of stores that offer it: what arrives is what was left, an interrupted move goes on, and what differs is refused.
import assert from "node:assert/strict";
import { faultOf } from "../../model/error.ts";
import type { MovedIn, MovedOut, MovedRest, MovedRows } from "../../plugin/moving.ts";
import type { Store } from "../../plugin/store.ts";
import { claim, left, NOON, one, reserve, rows, second, settle, type Law } from "./bench.ts";

const BUDGET = { per: "total", max: 10n ** 9n } as const;

/** Calls of which one was corrected and two are open, one of them without a limit, a key, a price, and what an operator did. */
async function filled(store: Store): Promise<void> {
  const claims = [claim(BUDGET, 1_000n)];
  await store.apply([
    { do: "key", at: NOON, key: { id: "alice", digest: "d1", created: NOON, name: "Alice" } },
    reserve("a", { claims, labels: { user: "4711" } }),
    reserve("b", { claims }),
    settle("a", { costNano: 700n }),
  ]);
  await store.apply([
    settle("b", { costNano: 300n, state: "estimated" }),
    { do: "adjust", at: NOON + 2_000, attempt: "a", costNano: -100n, reason: "late", actor: "ann" },
    reserve("open", { claims }),
    { do: "progress", at: NOON, attempt: "open", usage: { output: 2 }, costNano: 40n },
    reserve("free"),
  ]);
}

const code = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => assert.fail("It was not refused."),
    (error: unknown) => faultOf(error)?.code,
  );

async function pages(out: MovedOut, into: MovedIn): Promise<void> {
  let page: MovedRows;
  let after = into.after;
  do {
    page = await out.rows(after);
    await into.take(page);
    after = page.next;
  } while (page.more);
}

/** All of it, in one go. `change`: of what is no row. */
async function moved(
  from: Store,
  to: Store,
  change: (rest: MovedRest) => MovedRest = (rest) => rest,
): Promise<MovedRest> {
  await using out = await from.moving!.out();
  await using into = await to.moving!.in();
  await pages(out, into);
  await out.quiet();
  const rest = await out.rest();
  await into.finish(change(rest));
  return rest;
}

const LIMIT = { scope: "key:alice", unit: "nano_usd", ...BUDGET } as const;

const by = ["key", "model", "state"] as const;
/** What readers are told of calls that are over. */
const told = async (store: Store) => ({
  rows: (await Promise.all(["a", "b"].map((attempt) => rows(store, attempt))))
    .flat()
    .map(({ seq: _, ...row }) => row),
  sums: await store.totals({ by, state: "exact" }),
  key: await store.key("d1"),
});

/** Moves into a store of the same kind, which its author's test makes. */
export const movingLaws: readonly Law[] = [
  [
    "a ledger that moves is the same there: rows, sums, keys, what budgets have counted, and what is open",
    async (store, crash, { fresh }) => {
      if (!store.moving || !fresh) return;
      await filled(store);
      const before = await told(store);
      const [counted] = (await store.counted?.([LIMIT], NOON)) ?? [];
      const there = await fresh();
      const rest = await moved(await crash(), there);
      assert.deepEqual(
        rest.heard.map(([attempt, , costNano]) => [attempt, costNano]),
        [["open", 40n]],
      );
      assert.equal((await there.open(second)).presumed, 2);
      assert.deepEqual(await told(there), before);
      const [end] = (await rows(there, "open")).filter(({ kind }) => kind === "settle");
      assert.deepEqual([end?.outcome, end?.costNano], ["presumed", 40n]);
      // What was open was held, and has used what was heard of it.
      const [now] = (await there.counted?.([LIMIT], NOON)) ?? [];
      if (counted) assert.deepEqual([now?.used, now?.held], [counted.used + 40n, 0n]);
      assert.equal(await left(there, BUDGET), BUDGET.max - 940n);
      assert.deepEqual((await there.verify?.()) ?? [], []);
      await there.apply([reserve("next"), settle("next")]);
      assert.deepEqual((await there.verify?.()) ?? [], []);
    },
  ],

  [
    "a move that was interrupted goes on behind what is there, and until it is finished nothing is opened",
    async (store, crash, { fresh }) => {
      if (!store.moving || !fresh) return;
      await filled(store);
      const before = await told(store);
      const from = await crash();
      const there = await fresh();
      {
        await using out = await from.moving!.out();
        await using into = await there.moving!.in();
        assert.equal(into.after, 0);
        await into.take(await out.rows(0));
      }
      await assert.rejects(there.open(second));
      await using out = await from.moving!.out();
      {
        await using into = await there.moving!.in();
        assert.ok(into.after > 0, "it begins anew");
        await pages(out, into);
        await out.quiet();
        await into.finish(await out.rest());
      }
      await there.open(second);
      assert.deepEqual(await told(there), before);
      assert.deepEqual((await there.verify?.()) ?? [], []);
    },
  ],

  [
    "what does not come to the same sums is refused, and is no ledger",
    async (store, crash, { fresh }) => {
      if (!store.moving || !fresh) return;
      await filled(store);
      const there = await fresh();
      const another = (rest: MovedRest): MovedRest => ({
        ...rest,
        totals: rest.totals.map((total, i) =>
          i === 0 ? { ...total, costNano: total.costNano + 1n } : total,
        ),
      });
      const from = await crash();
      const error = await moved(from, there, another).then(
        () => assert.fail("It was not refused."),
        (e: unknown) => faultOf(e)?.kind,
      );
      assert.equal(error, "invalid");
    },
  ],

  [
    "nothing moves into a store that has a ledger, nor out of one that is written to",
    async (store, crash, { another }) => {
      if (!store.moving) return;
      await one(store, reserve("a"));
      if (another) {
        await using out = await (await another()).moving!.out();
        assert.equal(await code(out.quiet()), "in_use");
      }
      assert.equal(await code((await crash()).moving!.in()), "not_empty");
    },
  ],
];
