// Checks of a store that several gateways open at the same time. For a store of one process, only
// the functions that it provides are checked.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { getFault } from "../../model/error.ts";
import type { StoreEvent } from "../../plugin/store/store-instance.ts";
import {
  limitClaim,
  FIRST_OWNER,
  readRemaining,
  NOON,
  applyOne,
  reserveCommand,
  readEntries,
  SECOND_OWNER,
  settleCommand,
  type Law,
} from "./fixtures.ts";

const WAIT_TIMEOUT_MS = 2_000;

/** Waits until the condition is true. Throws if it takes too long. */
async function waitUntil(is: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + WAIT_TIMEOUT_MS; !(await is()); await sleep(10))
    assert.ok(performance.now() < end, "the wait took longer than 2 s");
}

const toText = (value: Uint8Array): string => Buffer.from(value).toString();

/** Checks of leases, fencing, shared values, and events between instances. */
export const instanceLaws: readonly Law[] = [
  [
    "a lease is longer than the heartbeat interval",
    async (store) => {
      if (!store.lease) return;
      const { durationMs, heartbeatMs } = store.lease;
      assert.ok(
        heartbeatMs > 0 && durationMs > heartbeatMs,
        `the lease is ${durationMs} ms, the heartbeat interval ${heartbeatMs} ms`,
      );
    },
  ],

  [
    "a shared value is decided once and permanently, by one of many instances",
    async (store, crash, more) => {
      if (!store.getOrCreateShared) return;
      const other = await more.openAnother?.();
      await other?.open(SECOND_OWNER);
      const ask = (i: number) =>
        (i % 2 === 0 ? store : (other ?? store)).getOrCreateShared!("a", async () =>
          Buffer.from(`value ${i}`),
        );
      const all = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)));
      assert.match(toText(all[0]!), /^value \d+$/);
      assert.deepEqual(new Set(all.map(toText)).size, 1);
      const make = async () => assert.fail("the value must be decided");
      assert.deepEqual(toText(await store.getOrCreateShared("a", make)), toText(all[0]!));
      await assert.rejects(
        store.getOrCreateShared("b", async () => {
          throw new Error("not today");
        }),
        /not today/,
      );
      const bytes = Uint8Array.of(0, 255, 10);
      assert.deepEqual(
        Uint8Array.from(await store.getOrCreateShared("b", async () => bytes)),
        bytes,
      );
      const next = await crash();
      await next.open({ instance: "third" });
      assert.deepEqual(toText(await next.getOrCreateShared!("a", make)), toText(all[0]!));
    },
  ],

  [
    "an instance is listed as it registered, and is alive",
    async (store) => {
      if (!store.listInstances) return;
      const about = { version: "1.2.3", host: "here", pid: 4 };
      await store.open({ ...FIRST_OWNER, info: about });
      const mine = (await store.listInstances()).find(
        ({ instance }) => instance === FIRST_OWNER.instance,
      );
      assert.equal(mine?.state, "live");
      assert.deepEqual({ ...mine.info }, about);
      assert.ok(
        Math.abs(wallClock() - mine.lastHeartbeatAt) < 60_000,
        `last heartbeat at ${mine.lastHeartbeatAt}`,
      );
    },
  ],

  [
    "a key change at one instance is announced to the others, which then find the key",
    async (store, _crash, more) => {
      const other = await more.openAnother?.();
      if (!other) return;
      let notifications = 0;
      await store.open(
        FIRST_OWNER,
        ({ type }: StoreEvent) => void (type === "keys_changed" && notifications++),
      );
      await other.open(SECOND_OWNER);
      const key = { id: "k", digest: "d", created: NOON };
      await applyOne(other, { do: "key", at: NOON, key });
      await waitUntil(() => notifications > 0);
      assert.deepEqual(await store.findKey("d"), key);
      const before = notifications;
      await applyOne(other, { do: "key", at: NOON, key: { ...key, revoked: NOON } });
      await waitUntil(() => notifications > before);
      assert.equal((await store.findKey("d"))?.revoked, NOON);
    },
  ],

  [
    "an account change at one instance is announced to the others, and no change " +
      "overwrites another",
    async (store, _crash, more) => {
      const other = await more.openAnother?.();
      if (!other?.listAccounts) return;
      let notifications = 0;
      await store.open(
        FIRST_OWNER,
        ({ type }: StoreEvent) => void (type === "accounts_changed" && notifications++),
      );
      await other.open(SECOND_OWNER);
      const put = (version: number, name: string) =>
        ({ do: "account", at: NOON, account: { id: "a", created: NOON, version, name } }) as const;
      await applyOne(other, put(1, "theirs"));
      await waitUntil(() => notifications > 0);
      assert.deepEqual((await store.listAccounts!()).items, [put(1, "theirs").account]);
      const both = await Promise.allSettled([
        applyOne(store, put(2, "ours")),
        applyOne(other, put(2, "not ours")),
      ]);
      assert.equal(both.filter(({ status }) => status === "fulfilled").length, 1);
      assert.equal((await other.listAccounts()).items[0]?.version, 2);
    },
  ],

  [
    "a budget is shared by all instances, and any instance can settle a call",
    async (store, _crash, more) => {
      const other = await more.openAnother?.();
      if (!other) return;
      await other.open(SECOND_OWNER);
      const both = [store, other];
      const budget = [limitClaim({ max: 10_000n }, 1_000n)];
      const verdicts = await Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          applyOne(both[i % 2]!, reserveCommand(`a${i}`, { claims: budget })),
        ),
      );
      assert.equal(verdicts.filter(({ ok }) => ok).length, 10);
      const open = verdicts.flatMap(({ ok }, i) => (ok ? [`a${i}`] : []));
      // Each call is settled on the other instance first, and then again on its own instance.
      for (const attempt of open) {
        const own = Number(attempt.slice(1)) % 2;
        await applyOne(both[1 - own]!, settleCommand(attempt, { costNano: 500n }));
        await applyOne(both[own]!, settleCommand(attempt, { costNano: 500n }));
      }
      assert.equal(await readRemaining(store, {}), 5_000n);
      assert.equal(await readRemaining(other, {}), 5_000n);
      const listed = (await other.listEntries({}, { limit: 100 })).items;
      assert.equal(listed.filter(({ attempt }) => open.includes(attempt)).length, 20);
      const seqs = listed.map(({ seq }) => seq);
      assert.deepEqual(
        seqs,
        [...new Set(seqs)].sort((a, b) => a - b),
      );
      const same = (await store.listEntries({}, { limit: 100 })).items.map(({ seq }) => seq);
      assert.deepEqual(same, seqs);
    },
  ],

  [
    "a live instance recovers the calls of a dead instance; the actual cost is " +
      "written as a correction",
    async (store, _crash, more) => {
      const other = await more.openAnother?.();
      if (!other || !more.expireLease) return;
      const news: StoreEvent[] = [];
      await other.open(SECOND_OWNER, (one) => void news.push(one));
      await applyOne(store, reserveCommand("a", { claims: [limitClaim({}, 1_000n)] }));
      await more.expireLease(FIRST_OWNER.instance);
      await waitUntil(async () => {
        await applyOne(other, { do: "heartbeat", at: NOON });
        return (await readEntries(other, "a")).length === 2;
      });
      assert.equal((await readEntries(other, "a"))[1]?.outcome, "recovered");
      await waitUntil(() => news.some(({ type }) => type === "calls_recovered"));
      assert.deepEqual(
        news.find(({ type }) => type === "calls_recovered"),
        { type: "calls_recovered", instance: FIRST_OWNER.instance, calls: 1 },
      );
      for (const batch of [[reserveCommand("b")], [settleCommand("a", { costNano: 300n })]])
        await assert.rejects(store.apply(batch), (error) => getFault(error)?.code === "fenced");
      assert.equal((await readEntries(other, "b")).length, 0);
      const { recovered } = await store.open(FIRST_OWNER);
      assert.equal(recovered, 0);
      await store.apply([
        reserveCommand("b"),
        settleCommand("a", { costNano: 300n }),
        settleCommand("b"),
      ]);
      const [, , correction, ...rest] = await readEntries(other, "a");
      assert.equal(correction?.costNano, -700n);
      assert.deepEqual(rest, []);
      assert.equal((await readEntries(other, "b")).length, 2);
      assert.equal(await readRemaining(other, {}), 9_700n);
    },
  ],
];
