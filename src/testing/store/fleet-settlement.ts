// Checks that each call ends once, whichever instance ends it, even if an instance dies before or
// resumes after its lease expired. Every reader must see the complete end of a call.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/time/wall-clock.ts";
import {
  heartbeatCommand,
  attemptIds,
  fleetClaim,
  readLimitUsage,
  countAllowed,
  isFenced,
  rowKinds,
  listEntries,
  listEntriesUntil,
  settleNow,
  waitUntil,
  reserveNow,
  onAll,
  type FleetInstance,
  type FleetLaw,
} from "./fleet.ts";

/** Checks of the settlement of calls in a fleet. */
export const fleetSettlementLaws: readonly FleetLaw[] = [
  [
    "each instance has a greater epoch than all earlier instances",
    async (all) => {
      const epochs: number[] = [];
      for (const [i, { store }] of all.entries())
        epochs.push((await store.open({ instance: `later-${i}` })).epoch);
      assert.deepEqual(
        epochs,
        [...new Set(epochs)].sort((a, b) => a - b),
      );
    },
  ],

  [
    "a batch without an acknowledgment can be repeated by any instance and is applied once",
    async (all) => {
      const budget = fleetClaim("key:k", 100_000n, 1_000n);
      const batch = [
        ...attemptIds(20).map((name) => reserveNow(name, [budget])),
        ...attemptIds(10).map((name) => settleNow(name, 300n)),
      ];
      await all[0].apply(batch);
      for (const one of [...all, all[0]])
        assert.equal(countAllowed(await one.apply(batch)), batch.length);
      const rows = await listEntriesUntil(all[0].store, 30);
      for (const name of attemptIds(10)) assert.deepEqual(rowKinds(rows, name), ["reserve", "ok"]);
      const usage = await readLimitUsage(all[0].store, budget);
      if (usage) assert.deepEqual(usage, [3_000n, 10_000n]);
    },
  ],

  [
    "a call that all instances settle concurrently ends only once",
    async (all) => {
      const budget = fleetClaim("key:k", 10n ** 9n, 1_000n);
      const names = attemptIds(40);
      await all[0].apply(names.map((name) => reserveNow(name, [budget])));
      await onAll(all, (one, i) =>
        one.apply(
          (i % 2 ? names : names.toReversed()).map((name) => settleNow(name, 500n)),
          7 + i,
        ),
      );
      const rows = await listEntriesUntil(all.at(-1)!.store, 80);
      for (const name of names) assert.deepEqual(rowKinds(rows, name), ["reserve", "ok"]);
      const usage = await readLimitUsage(all[0].store, budget);
      if (usage) assert.deepEqual(usage, [20_000n, 0n]);
    },
  ],

  [
    "open calls of a dead instance are settled once, at a heartbeat of a live instance",
    async (all, { expireLease }) => {
      if (!expireLease || all.length < 3) return;
      const [dead, one, other] = all as [FleetInstance, FleetInstance, FleetInstance];
      const budget = fleetClaim("key:k", 10n ** 9n, 1_000n);
      const names = attemptIds(60);
      await dead.apply(names.map((name) => reserveNow(name, [budget])));
      await dead.apply([
        { do: "progress", at: wallClock(), attempt: "a0", usage: { output: 3 }, costNano: 40n },
      ]);
      await expireLease(dead.name);
      await waitUntil(async () => {
        await onAll([one, other], (each) => each.apply([heartbeatCommand()]));
        return (await listEntries(one.store)).filter(({ kind }) => kind === "settle").length >= 60;
      }, "settling open calls of a dead instance");
      await onAll([one, other], (each) => each.apply([heartbeatCommand()]));
      const rows = await listEntriesUntil(other.store, 120);
      for (const name of names) assert.deepEqual(rowKinds(rows, name), ["reserve", "recovered"]);
      const usage = await readLimitUsage(one.store, budget);
      if (usage) assert.deepEqual(usage, [59_040n, 0n]);
      const recoveries = [...one.events, ...other.events].filter(
        ({ type }) => type === "calls_recovered",
      );
      assert.ok(
        recoveries.length > 0,
        "the live instances must be notified that calls were recovered",
      );
    },
  ],

  [
    "a fenced instance is rejected, reopens, and corrects each recovered call once; " +
      "no call stays open",
    async (all, { expireLease }) => {
      if (!expireLease || all.length < 2) return;
      const [zombie, other] = all as readonly FleetInstance[] as [FleetInstance, FleetInstance];
      const budget = fleetClaim("key:k", 10n ** 9n, 1_000n);
      const names = attemptIds(10);
      await zombie.apply(names.map((name) => reserveNow(name, [budget])));
      await expireLease(zombie.name);
      await waitUntil(async () => {
        await other.apply([heartbeatCommand()]);
        return (
          (await listEntries(other.store)).filter(({ kind }) => kind === "settle").length >= 10
        );
      }, "settling its open calls");
      const batch = [reserveNow("late", [budget]), ...names.map((name) => settleNow(name, 250n))];
      await assert.rejects(zombie.store.apply(batch), isFenced);
      await assert.rejects(zombie.store.apply([heartbeatCommand()]), isFenced);
      await zombie.store.open({ instance: zombie.name });
      // The fenced instance and another instance apply the same batch, as if both had received it.
      await onAll([zombie, other], (each) => each.apply(batch));
      await zombie.apply([settleNow("late", 100n)]);
      const rows = await listEntriesUntil(other.store, 32);
      for (const name of names)
        assert.deepEqual(rowKinds(rows, name), ["reserve", "recovered", "adjust"]);
      assert.deepEqual(rowKinds(rows, "late"), ["reserve", "ok"]);
      const usage = await readLimitUsage(other.store, budget);
      if (usage) assert.deepEqual(usage, [2_600n, 0n]);
    },
  ],

  [
    "a reader that reads pages during writes sees each entry once, and all instances " +
      "list the same entries",
    async (all) => {
      const names = all.map((_, i) => attemptIds(60, `w${i}.`));
      let writing = true;
      const seen: string[] = [];
      const reading = (async () => {
        let after: string | undefined;
        for (let last = false; ; last = !writing) {
          const page = await all[0].store.listEntries({}, { after, limit: 7 });
          for (const { seq, attempt, kind } of page.items) {
            after = String(seq);
            seen.push(`${attempt} ${kind}`);
          }
          // The list is read again after the last write, to include entries that are listed late.
          if (last && page.items.length === 0) return after;
          if (page.items.length === 0) await sleep(1);
        }
      })();
      await onAll(all, async (one, i) => {
        for (const name of names[i]!) {
          await one.apply([reserveNow(name, [])]);
          await one.apply([settleNow(name, 1n)]);
        }
      });
      const many = names.flat().length * 2;
      const whole = await listEntriesUntil(all.at(-1)!.store, many);
      await waitUntil(
        async () => (await listEntries(all[0].store)).length === many,
        "a complete listing",
      );
      writing = false;
      await reading;
      assert.equal(new Set(seen).size, seen.length, "the reader saw an entry twice");
      assert.deepEqual(
        seen,
        whole.map(({ attempt, kind }) => `${attempt} ${kind}`),
      );
    },
  ],
];
