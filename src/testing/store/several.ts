// What a store promises that several gateways open at once. Of a store of one process only what it offers is asked.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/wall-clock.ts";
import { faultOf } from "../../model/error.ts";
import type { StoreNews } from "../../plugin/instance.ts";
import { claim, first, left, NOON, one, reserve, rows, second, settle, type Law } from "./bench.ts";

const SOON_MS = 2_000;

/** Until it is so, or too late. */
async function soon(is: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + SOON_MS; !(await is()); await sleep(10))
    assert.ok(performance.now() < end, "it took longer than two seconds");
}

const text = (value: Uint8Array): string => Buffer.from(value).toString();

/** Leases, the fence, what is decided once, and what one instance hears of another. */
export const severalLaws: readonly Law[] = [
  [
    "a lease is longer than the time between two signs of life",
    async (store) => {
      if (!store.lease) return;
      const { ms, beatMs } = store.lease;
      assert.ok(
        beatMs > 0 && ms > beatMs,
        `a lease of ${ms} ms, a sign of life every ${beatMs} ms`,
      );
    },
  ],

  [
    "what is shared is decided once, by one of many, and for good",
    async (store, crash, more) => {
      if (!store.shared) return;
      const other = await more.another?.();
      await other?.open(second);
      const ask = (i: number) =>
        (i % 2 === 0 ? store : (other ?? store)).shared!("a", async () =>
          Buffer.from(`value ${i}`),
        );
      const all = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)));
      assert.match(text(all[0]!), /^value \d+$/);
      assert.deepEqual(new Set(all.map(text)).size, 1);
      const make = async () => assert.fail("it is decided");
      assert.deepEqual(text(await store.shared("a", make)), text(all[0]!));
      await assert.rejects(
        store.shared("b", async () => {
          throw new Error("not today");
        }),
        /not today/,
      );
      const bytes = Uint8Array.of(0, 255, 10);
      assert.deepEqual(Uint8Array.from(await store.shared("b", async () => bytes)), bytes);
      const next = await crash();
      await next.open({ instance: "third" });
      assert.deepEqual(text(await next.shared!("a", make)), text(all[0]!));
    },
  ],

  [
    "an instance is listed as it said of itself, and lives",
    async (store) => {
      if (!store.instances) return;
      const about = { version: "1.2.3", host: "here", pid: 4 };
      await store.open({ ...first, about });
      const mine = (await store.instances()).find(({ instance }) => instance === first.instance);
      assert.equal(mine?.state, "live");
      assert.deepEqual({ ...mine.about }, about);
      assert.ok(Math.abs(wallClock() - mine.heard) < 60_000, `heard of it at ${mine.heard}`);
    },
  ],

  [
    "a key that one instance changes is told to the others, who then find it",
    async (store, _crash, more) => {
      const other = await more.another?.();
      if (!other) return;
      let heard = 0;
      await store.open(first, ({ type }: StoreNews) => void (type === "keys" && heard++));
      await other.open(second);
      const key = { id: "k", digest: "d", created: NOON };
      await one(other, { do: "key", at: NOON, key });
      await soon(() => heard > 0);
      assert.deepEqual(await store.key("d"), key);
      const before = heard;
      await one(other, { do: "key", at: NOON, key: { ...key, revoked: NOON } });
      await soon(() => heard > before);
      assert.equal((await store.key("d"))?.revoked, NOON);
    },
  ],

  [
    "an account that one instance has changed is told to the others, and none overwrites another's change",
    async (store, _crash, more) => {
      const other = await more.another?.();
      if (!other?.accounts) return;
      let heard = 0;
      await store.open(first, ({ type }: StoreNews) => void (type === "accounts" && heard++));
      await other.open(second);
      const put = (version: number, name: string) =>
        ({ do: "account", at: NOON, account: { id: "a", created: NOON, version, name } }) as const;
      await one(other, put(1, "theirs"));
      await soon(() => heard > 0);
      assert.deepEqual((await store.accounts!()).items, [put(1, "theirs").account]);
      const both = await Promise.allSettled([
        one(store, put(2, "ours")),
        one(other, put(2, "not ours")),
      ]);
      assert.equal(both.filter(({ status }) => status === "fulfilled").length, 1);
      assert.equal((await other.accounts()).items[0]?.version, 2);
    },
  ],

  [
    "one budget is one for all instances, and a call ends wherever it is settled",
    async (store, _crash, more) => {
      const other = await more.another?.();
      if (!other) return;
      await other.open(second);
      const both = [store, other];
      const budget = [claim({ max: 10_000n }, 1_000n)];
      const verdicts = await Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          one(both[i % 2]!, reserve(`a${i}`, { claims: budget })),
        ),
      );
      assert.equal(verdicts.filter(({ ok }) => ok).length, 10);
      const open = verdicts.flatMap(({ ok }, i) => (ok ? [`a${i}`] : []));
      // By the other one than its own, and then once more by its own.
      for (const attempt of open) {
        const own = Number(attempt.slice(1)) % 2;
        await one(both[1 - own]!, settle(attempt, { costNano: 500n }));
        await one(both[own]!, settle(attempt, { costNano: 500n }));
      }
      assert.equal(await left(store, {}), 5_000n);
      assert.equal(await left(other, {}), 5_000n);
      const listed = (await other.entries({}, { limit: 100 })).items;
      assert.equal(listed.filter(({ attempt }) => open.includes(attempt)).length, 20);
      const seqs = listed.map(({ seq }) => seq);
      assert.deepEqual(
        seqs,
        [...new Set(seqs)].sort((a, b) => a - b),
      );
      const same = (await store.entries({}, { limit: 100 })).items.map(({ seq }) => seq);
      assert.deepEqual(same, seqs);
    },
  ],

  [
    "a dead instance's calls are presumed by one that lives; the truth is a correction",
    async (store, _crash, more) => {
      const other = await more.another?.();
      if (!other || !more.bury) return;
      const news: StoreNews[] = [];
      await other.open(second, (one) => void news.push(one));
      await one(store, reserve("a", { claims: [claim({}, 1_000n)] }));
      await more.bury(first.instance);
      await soon(async () => {
        await one(other, { do: "alive", at: NOON });
        return (await rows(other, "a")).length === 2;
      });
      assert.equal((await rows(other, "a"))[1]?.outcome, "presumed");
      await soon(() => news.some(({ type }) => type === "presumed"));
      assert.deepEqual(
        news.find(({ type }) => type === "presumed"),
        { type: "presumed", instance: first.instance, calls: 1 },
      );
      for (const batch of [[reserve("b")], [settle("a", { costNano: 300n })]])
        await assert.rejects(store.apply(batch), (error) => faultOf(error)?.code === "fenced");
      assert.equal((await rows(other, "b")).length, 0);
      const { presumed } = await store.open(first);
      assert.equal(presumed, 0);
      await store.apply([reserve("b"), settle("a", { costNano: 300n }), settle("b")]);
      const [, , correction, ...rest] = await rows(other, "a");
      assert.equal(correction?.costNano, -700n);
      assert.deepEqual(rest, []);
      assert.equal((await rows(other, "b")).length, 2);
      assert.equal(await left(other, {}), 9_700n);
    },
  ],
];
