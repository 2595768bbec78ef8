// What one instance changes, says or decides, all others know; and a store that cannot be reached says so.
import assert from "node:assert/strict";
import { wallClock } from "../../lib/wall-clock.ts";
import { faultOf } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import {
  alive,
  claim,
  counted,
  kinds,
  listedWhole,
  pay,
  soon,
  take,
  type FleetLaw,
} from "./fleet.ts";

const key = (more: Partial<KeyRecord> = {}): KeyRecord => ({
  id: "k",
  digest: "d".repeat(64),
  created: wallClock(),
  ...more,
});
const put = (record: KeyRecord) => ({ do: "key", at: wallClock(), key: record }) as const;

/** What instances know of one another. */
export const fleetChanges: readonly FleetLaw[] = [
  [
    "a key that one instance revokes is revoked at all within a second, and each of the others is told",
    async (all) => {
      const made = key();
      await all[0].tell([put(made)]);
      for (const one of all)
        await soon(async () => (await one.store.key(made.digest)) !== undefined, "a new key");
      const before = all.map(({ news }) => news.length);
      const began = performance.now();
      await all[0].tell([put({ ...made, version: 2, revoked: wallClock() })]);
      for (const [i, one] of all.entries()) {
        const has = async () => (await one.store.key(made.digest))?.revoked !== undefined;
        await soon(has, "a revoked key");
        if (i > 0) {
          const heard = () => one.news.slice(before[i]).some(({ type }) => type === "keys");
          // A store tells it at once, or at the instance's next sign of life.
          await soon(async () => heard() || (await one.tell([alive()]), heard()), "news of a key");
        }
      }
      const took = performance.now() - began;
      assert.ok(took < 1_500, `it took ${Math.round(took)} ms`);
    },
  ],

  [
    "of two that change a key at once one is told so, and a key that was revoked stays that",
    async (all) => {
      const made = key();
      await all[0].tell([put(made)]);
      const revoked = put({ ...made, version: 2, revoked: wallClock() });
      const renamed = put({ ...made, version: 2, name: "other" });
      const both = await Promise.allSettled([all[0].tell([revoked]), all.at(-1)!.tell([renamed])]);
      const lost = both.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
      assert.deepEqual(
        lost.map(faultOf).map((fault) => fault?.code),
        ["changed_since"],
      );
      // Whichever came first stands, and is no error when it is said once more.
      const [won, late] = both[0].status === "fulfilled" ? [revoked, renamed] : [renamed, revoked];
      await all.at(-1)!.tell([won]);
      await assert.rejects(
        all[0].store.apply([late]),
        (error) => faultOf(error)?.code === "changed_since",
      );
      for (const { store } of all)
        await soon(
          async () => (await store.key(made.digest))?.revoked === won.key.revoked,
          "the key that won",
        );
      // What was read before the first change has no version.
      await assert.rejects(
        all[0].store.apply([put({ ...made, name: "old" })]),
        (error) => faultOf(error)?.code === "changed_since",
      );
      await all[0].tell([put({ ...won.key, version: 3, name: "third" })]);
    },
  ],

  [
    "what an instance says of itself with a sign of life is what the others see, and how its clock is",
    async (all, { ownClock }) => {
      if (!all[0].store.instances) return;
      const about = {
        version: "2.0.0",
        host: "there",
        pid: 7,
        generation: 3,
        config: "c".repeat(64),
      };
      const [one, other] = [all[0], all.at(-1)!];
      await one.tell([{ do: "alive", at: wallClock() + 5_000, about }]);
      const find = async () =>
        (await other.store.instances!()).find(({ instance }) => instance === one.name);
      await soon(async () => (await find())?.about?.generation === 3, "what it says of itself");
      const found = (await find())!;
      assert.deepEqual({ ...found.about }, about);
      assert.equal(found.state, "live");
      if (ownClock && found.aheadMs !== undefined)
        assert.ok(Math.abs(found.aheadMs - 5_000) < 1_000, `${found.aheadMs} ms ahead`);
    },
  ],

  [
    "a store that cannot be reached says so, and what it is told meanwhile lands once, when it can be reached",
    async (all, { away, back }) => {
      if (!away || !back) return;
      const budget = claim("key:k", 10n ** 9n, 1_000n);
      const one = all[0];
      await one.tell([take("before", [budget])]);
      await away();
      const batch = [take("during", [budget]), pay("before", 10n)];
      const under = one.tell(batch).catch(() => {});
      const gone = () => one.news.some(({ type }) => type === "away");
      // It is asked for signs of life, too, as the host does.
      await soon(gone, "news of a store that is away");
      // A host takes any other error for a defect of the plugin that has asked.
      for (const asked of [one.store.key("d".repeat(64)), one.store.entries({})])
        await assert.rejects(asked, (error) => faultOf(error)?.kind === "unavailable");
      await back();
      await under;
      await soon(
        () =>
          one.tell(batch).then(
            () => true,
            () => false,
          ),
        "an answer of a store that is back",
      );
      const rows = await listedWhole(all.at(-1)!.store, 3);
      assert.deepEqual(kinds(rows, "before"), ["reserve", "ok"]);
      assert.deepEqual(kinds(rows, "during"), ["reserve"]);
      const told = await counted(one.store, budget);
      if (told) assert.deepEqual(told, [10n, 1_000n]);
    },
  ],

  [
    "what is shared is one for all, whichever instance of 50 asks first",
    async (all) => {
      if (!all[0].store.shared) return;
      const ask = (i: number) =>
        all[i % all.length]!.store.shared!("one", async () => Buffer.from(`value ${i}`));
      const said = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)));
      assert.equal(new Set(said.map((each) => Buffer.from(each).toString())).size, 1);
    },
  ],

  [
    "what is erased at one is erased at all: in rows, in keys that others remember, and of what others have open",
    async (all) => {
      const erase = all[0].store.keeping?.erase;
      if (!erase) return;
      const made = key({ labels: { user: "4711", team: "core" } });
      const labels = { user: "4711", team: "core" };
      await all[0].tell([put(made)]);
      for (const [i, one] of all.entries()) {
        await soon(async () => (await one.store.key(made.digest)) !== undefined, "a new key");
        for (const name of [`over-${i}`, `open-${i}`])
          await one.tell([{ ...take(name, []), labels }]);
        await one.tell([pay(`over-${i}`, 1n)]);
      }
      await erase({ label: { name: "user", value: "4711" } });
      const gone = { user: "erased", team: "core" };
      for (const one of all) {
        const has = async () => (await one.store.key(made.digest))?.labels?.["user"] === "erased";
        // A store tells it at once, or at the instance's next sign of life.
        await soon(
          async () => (await has()) || (await one.tell([alive()]), has()),
          "a key's label",
        );
      }
      for (const [i, one] of all.entries()) await one.tell([pay(`open-${i}`, 1n)]);
      for (const one of all)
        for (const row of await listedWhole(one.store, 4 * all.length))
          assert.deepEqual(row.labels, gone, `${row.kind} of ${row.attempt}`);
      assert.deepEqual((await all[0].store.verify?.()) ?? [], []);
    },
  ],
];
