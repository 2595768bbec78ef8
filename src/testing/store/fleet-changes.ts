// Checks that the changes of one instance are visible to all others, and that a store reports when
// it is unreachable.
import assert from "node:assert/strict";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { getFault } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/store/account.ts";
import {
  heartbeatCommand,
  fleetClaim,
  readLimitUsage,
  rowKinds,
  listEntriesUntil,
  settleNow,
  waitUntil,
  reserveNow,
  type FleetLaw,
} from "./fleet.ts";

const createKey = (more: Partial<KeyRecord> = {}): KeyRecord => ({
  id: "k",
  digest: "d".repeat(64),
  created: wallClock(),
  ...more,
});
const keyCommand = (record: KeyRecord) => ({ do: "key", at: wallClock(), key: record }) as const;

/** Checks of changes that must be visible to other instances. */
export const fleetChangeLaws: readonly FleetLaw[] = [
  [
    "a revocation at one instance takes effect at all instances within 1 s, and each " +
      "instance is notified",
    async (all) => {
      const made = createKey();
      await all[0].apply([keyCommand(made)]);
      for (const one of all)
        await waitUntil(
          async () => (await one.store.findKey(made.digest)) !== undefined,
          "a new key",
        );
      const before = all.map(({ events }) => events.length);
      const began = performance.now();
      await all[0].apply([keyCommand({ ...made, version: 2, revoked: wallClock() })]);
      for (const [i, one] of all.entries()) {
        const has = async () => (await one.store.findKey(made.digest))?.revoked !== undefined;
        await waitUntil(has, "a revoked key");
        if (i > 0) {
          const isNotified = () =>
            one.events.slice(before[i]).some(({ type }) => type === "keys_changed");
          // An instance applies the erasure immediately, or at its next heartbeat.
          await waitUntil(
            async () => isNotified() || (await one.apply([heartbeatCommand()]), isNotified()),
            "notification of a key",
          );
        }
      }
      const took = performance.now() - began;
      assert.ok(took < 1_500, `it took ${Math.round(took)} ms`);
    },
  ],

  [
    "one of two concurrent changes of a key is rejected, and a revoked key stays revoked",
    async (all) => {
      const made = createKey();
      await all[0].apply([keyCommand(made)]);
      const revoked = keyCommand({ ...made, version: 2, revoked: wallClock() });
      const renamed = keyCommand({ ...made, version: 2, name: "other" });
      const both = await Promise.allSettled([
        all[0].apply([revoked]),
        all.at(-1)!.apply([renamed]),
      ]);
      const lost = both.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
      assert.deepEqual(
        lost.map(getFault).map((fault) => fault?.code),
        ["version_conflict"],
      );
      // The change that came first is kept. Writing it again is not an error.
      const [won, late] = both[0].status === "fulfilled" ? [revoked, renamed] : [renamed, revoked];
      await all.at(-1)!.apply([won]);
      await assert.rejects(
        all[0].store.apply([late]),
        (error) => getFault(error)?.code === "version_conflict",
      );
      for (const { store } of all)
        await waitUntil(
          async () => (await store.findKey(made.digest))?.revoked === won.key.revoked,
          "the key of the successful change",
        );
      // The record that was read before the first change has no version.
      await assert.rejects(
        all[0].store.apply([keyCommand({ ...made, name: "old" })]),
        (error) => getFault(error)?.code === "version_conflict",
      );
      await all[0].apply([keyCommand({ ...won.key, version: 3, name: "third" })]);
    },
  ],

  [
    "other instances see the data of an instance's heartbeat, and its clock offset",
    async (all, { usesOwnClock }) => {
      if (!all[0].store.listInstances) return;
      const about = {
        version: "2.0.0",
        host: "there",
        pid: 7,
        generation: 3,
        config: "c".repeat(64),
      };
      const [one, other] = [all[0], all.at(-1)!];
      await one.apply([{ do: "heartbeat", at: wallClock() + 5_000, info: about }]);
      const find = async () =>
        (await other.store.listInstances!()).find(({ instance }) => instance === one.name);
      await waitUntil(async () => (await find())?.info?.generation === 3, "the reported state");
      const found = (await find())!;
      assert.deepEqual({ ...found.info }, about);
      assert.equal(found.state, "live");
      if (usesOwnClock && found.clockAheadMs !== undefined)
        assert.ok(Math.abs(found.clockAheadMs - 5_000) < 4_000, `${found.clockAheadMs} ms ahead`);
    },
  ],

  [
    "an unreachable store reports it, and commands from that time are applied once when it is reachable",
    async (all, { disconnect, reconnect }) => {
      if (!disconnect || !reconnect) return;
      const budget = fleetClaim("key:k", 10n ** 9n, 1_000n);
      const one = all[0];
      await one.apply([reserveNow("before", [budget])]);
      await disconnect();
      const batch = [reserveNow("during", [budget]), settleNow("before", 10n)];
      const under = one.apply(batch).catch(() => {});
      const gone = () => one.events.some(({ type }) => type === "unavailable");
      // Heartbeats continue during the outage, as in the host.
      await waitUntil(gone, "notification that the store is unavailable");
      // The host treats any other error as a defect of the calling plugin.
      for (const pending of [one.store.findKey("d".repeat(64)), one.store.listEntries({})])
        await assert.rejects(pending, (error) => getFault(error)?.kind === "unavailable");
      await reconnect();
      await under;
      await waitUntil(
        () =>
          one.apply(batch).then(
            () => true,
            () => false,
          ),
        "a response of the recovered store",
      );
      const rows = await listEntriesUntil(all.at(-1)!.store, 3);
      assert.deepEqual(rowKinds(rows, "before"), ["reserve", "ok"]);
      assert.deepEqual(rowKinds(rows, "during"), ["reserve"]);
      const usage = await readLimitUsage(one.store, budget);
      if (usage) assert.deepEqual(usage, [10n, 1_000n]);
    },
  ],

  [
    "a shared value is the same for all, whichever of 50 instances asks first",
    async (all) => {
      if (!all[0].store.getOrCreateShared) return;
      const ask = (i: number) =>
        all[i % all.length]!.store.getOrCreateShared!("one", async () => Buffer.from(`value ${i}`));
      const values = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)));
      assert.equal(new Set(values.map((each) => Buffer.from(each).toString())).size, 1);
    },
  ],

  [
    "an erasure at one instance takes effect at all instances: in rows, cached keys, and open calls",
    async (all) => {
      const erase = all[0].store.maintenance?.erase;
      if (!erase) return;
      const made = createKey({ labels: { user: "4711", team: "core" } });
      const labels = { user: "4711", team: "core" };
      await all[0].apply([keyCommand(made)]);
      for (const [i, one] of all.entries()) {
        await waitUntil(
          async () => (await one.store.findKey(made.digest)) !== undefined,
          "a new key",
        );
        for (const name of [`over-${i}`, `open-${i}`])
          await one.apply([{ ...reserveNow(name, []), labels }]);
        await one.apply([settleNow(`over-${i}`, 1n)]);
      }
      await erase({ label: { name: "user", value: "4711" } });
      const gone = { user: "erased", team: "core" };
      for (const one of all) {
        const has = async () =>
          (await one.store.findKey(made.digest))?.labels?.["user"] === "erased";
        // An instance applies the erasure immediately, or at its next heartbeat.
        await waitUntil(
          async () => (await has()) || (await one.apply([heartbeatCommand()]), has()),
          "a key's label",
        );
      }
      for (const [i, one] of all.entries()) await one.apply([settleNow(`open-${i}`, 1n)]);
      for (const one of all)
        for (const row of await listEntriesUntil(one.store, 4 * all.length))
          assert.deepEqual(row.labels, gone, `${row.kind} of ${row.attempt}`);
      assert.deepEqual((await all[0].store.verify?.()) ?? [], []);
    },
  ],
];
