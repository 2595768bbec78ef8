// Each call ends once, whichever instance ends it, dies before that or comes back from the dead; and every reader sees all of it.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/wall-clock.ts";
import {
  alive,
  attempts,
  claim,
  counted,
  fits,
  isFenced,
  kinds,
  listed,
  listedWhole,
  pay,
  soon,
  take,
  together,
  type FleetInstance,
  type FleetLaw,
} from "./fleet.ts";

/** What becomes of calls in a fleet. */
export const fleetEnds: readonly FleetLaw[] = [
  [
    "each instance has a greater epoch than all before it",
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
    "a batch whose answer was lost may be told again, by its own instance and by another: nothing is there twice",
    async (all) => {
      const budget = claim("key:k", 100_000n, 1_000n);
      const batch = [
        ...attempts(20).map((name) => take(name, [budget])),
        ...attempts(10).map((name) => pay(name, 300n)),
      ];
      await all[0].tell(batch);
      for (const one of [...all, all[0]]) assert.equal(fits(await one.tell(batch)), batch.length);
      const rows = await listedWhole(all[0].store, 30);
      for (const name of attempts(10)) assert.deepEqual(kinds(rows, name), ["reserve", "ok"]);
      const told = await counted(all[0].store, budget);
      if (told) assert.deepEqual(told, [3_000n, 10_000n]);
    },
  ],

  [
    "a call that all instances settle at once ends once",
    async (all) => {
      const budget = claim("key:k", 10n ** 9n, 1_000n);
      const names = attempts(40);
      await all[0].tell(names.map((name) => take(name, [budget])));
      await together(all, (one, i) =>
        one.tell(
          (i % 2 ? names : names.toReversed()).map((name) => pay(name, 500n)),
          7 + i,
        ),
      );
      const rows = await listedWhole(all.at(-1)!.store, 80);
      for (const name of names) assert.deepEqual(kinds(rows, name), ["reserve", "ok"]);
      const told = await counted(all[0].store, budget);
      if (told) assert.deepEqual(told, [20_000n, 0n]);
    },
  ],

  [
    "what a dead instance has left open is settled once, at a sign of life of those that live",
    async (all, { bury }) => {
      if (!bury || all.length < 3) return;
      const [dead, one, other] = all as [FleetInstance, FleetInstance, FleetInstance];
      const budget = claim("key:k", 10n ** 9n, 1_000n);
      const names = attempts(60);
      await dead.tell(names.map((name) => take(name, [budget])));
      await dead.tell([
        { do: "progress", at: wallClock(), attempt: "a0", usage: { output: 3 }, costNano: 40n },
      ]);
      await bury(dead.name);
      await soon(async () => {
        await together([one, other], (each) => each.tell([alive()]));
        return (await listed(one.store)).filter(({ kind }) => kind === "settle").length >= 60;
      }, "settling what a dead instance left open");
      await together([one, other], (each) => each.tell([alive()]));
      const rows = await listedWhole(other.store, 120);
      for (const name of names) assert.deepEqual(kinds(rows, name), ["reserve", "presumed"]);
      const told = await counted(one.store, budget);
      if (told) assert.deepEqual(told, [59_040n, 0n]);
      const said = [...one.news, ...other.news].filter(({ type }) => type === "presumed");
      assert.ok(said.length > 0, "they were told that calls were presumed");
    },
  ],

  [
    "one that was taken for dead is refused, opens again, and brings the truth: one correction a call, and nothing stays open",
    async (all, { bury }) => {
      if (!bury || all.length < 2) return;
      const [zombie, other] = all as readonly FleetInstance[] as [FleetInstance, FleetInstance];
      const budget = claim("key:k", 10n ** 9n, 1_000n);
      const names = attempts(10);
      await zombie.tell(names.map((name) => take(name, [budget])));
      await bury(zombie.name);
      await soon(async () => {
        await other.tell([alive()]);
        return (await listed(other.store)).filter(({ kind }) => kind === "settle").length >= 10;
      }, "settling what it had open");
      const batch = [take("late", [budget]), ...names.map((name) => pay(name, 250n))];
      await assert.rejects(zombie.store.apply(batch), isFenced);
      await assert.rejects(zombie.store.apply([alive()]), isFenced);
      await zombie.store.open({ instance: zombie.name });
      // Its own, and a batch that another instance was told too: it was in both their hands.
      await together([zombie, other], (each) => each.tell(batch));
      await zombie.tell([pay("late", 100n)]);
      const rows = await listedWhole(other.store, 32);
      for (const name of names)
        assert.deepEqual(kinds(rows, name), ["reserve", "presumed", "adjust"]);
      assert.deepEqual(kinds(rows, "late"), ["reserve", "ok"]);
      const told = await counted(other.store, budget);
      if (told) assert.deepEqual(told, [2_600n, 0n]);
    },
  ],

  [
    "a reader that pages while all write misses nothing and sees nothing twice, and all list the same",
    async (all) => {
      const names = all.map((_, i) => attempts(60, `w${i}.`));
      let writing = true;
      const seen: string[] = [];
      const reading = (async () => {
        let after: string | undefined;
        for (let last = false; ; last = !writing) {
          const page = await all[0].store.entries({}, { after, limit: 7 });
          for (const { seq, attempt, kind } of page.items) {
            after = String(seq);
            seen.push(`${attempt} ${kind}`);
          }
          // Once more after the last was written, so that what was listed late is seen.
          if (last && page.items.length === 0) return after;
          if (page.items.length === 0) await sleep(1);
        }
      })();
      await together(all, async (one, i) => {
        for (const name of names[i]!) {
          await one.tell([take(name, [])]);
          await one.tell([pay(name, 1n)]);
        }
      });
      const many = names.flat().length * 2;
      const whole = await listedWhole(all.at(-1)!.store, many);
      await soon(async () => (await listed(all[0].store)).length === many, "a whole listing");
      writing = false;
      await reading;
      assert.equal(new Set(seen).size, seen.length, "it saw one twice");
      assert.deepEqual(
        seen,
        whole.map(({ attempt, kind }) => `${attempt} ${kind}`),
      );
    },
  ],
];
