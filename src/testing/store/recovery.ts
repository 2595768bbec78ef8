// What is left after a crash, and how the truth still comes in.
import assert from "node:assert/strict";
import { wallClock } from "../../lib/wall-clock.ts";
import type { Store } from "../../plugin/store.ts";
import {
  claim,
  left,
  NOON,
  one,
  refused,
  reserve,
  rows,
  second,
  first,
  settle,
  type Law,
} from "./bench.ts";

/** What the next owner finds after a crash, and what it presumes. */
export const recoveryLaws: readonly Law[] = [
  [
    "what was acknowledged is there after a crash, and open calls are presumed",
    async (store, crash) => {
      const lease = { unit: "concurrent", per: "open", max: 3 } as const;
      const claims = [claim({}, 1_000n), claim(lease, 1n)];
      await store.apply([
        reserve("done", { claims }),
        settle("done", { costNano: 400n }),
        reserve("held", { claims }),
        reserve("heard", { claims }),
        { do: "progress", at: NOON, attempt: "heard", usage: { output: 3 }, costNano: 250n },
      ]);
      const next = await crash();
      const { epoch, presumed } = await next.open(second);
      assert.ok(epoch > 1);
      assert.equal(presumed, 2);
      const held = (await rows(next, "held"))[1];
      assert.equal(held?.state, "estimated");
      assert.equal(held.outcome, "presumed");
      assert.equal(held.costNano, 1_000n);
      const heard = (await rows(next, "heard"))[1];
      assert.equal(heard?.costNano, 250n);
      assert.deepEqual(heard.usage, { output: 3 });
      assert.equal(await left(next, {}), 10_000n - 400n - 1_000n - 250n);
      assert.equal(await left(next, lease), 3n);
      assert.equal((await rows(next, "done")).length, 2);
    },
  ],

  [
    "the same owner again is no crash: its calls stay open",
    async (store) => {
      await one(store, reserve("a"));
      assert.equal((await store.open(first)).presumed, 0);
      await one(store, settle("a"));
      assert.equal((await rows(store, "a"))[1]?.outcome, "ok");
    },
  ],

  [
    "the truth about a presumed call is a correction, once",
    async (_store, crash) => {
      await _store.apply([reserve("a", { claims: [claim({}, 1_000n)] })]);
      const store = await crash();
      await store.open(second);
      const late = settle("a", { costNano: 300n, usage: { output: 7 } });
      await store.apply([late, late]);
      await store.apply([late]);
      const [, presumed, correction, ...more] = await rows(store, "a");
      assert.equal(presumed?.costNano, 1_000n);
      assert.equal(correction?.kind, "adjust");
      assert.equal(correction.costNano, -700n);
      assert.deepEqual(correction.usage, { output: 7 });
      assert.deepEqual(more, []);
      assert.equal(await left(store, {}), 9_700n);
    },
  ],

  [
    "an adjustment is written once, counts, and says who and why",
    async (store) => {
      await store.apply([reserve("a", { claims: [claim({}, 1_000n)] }), settle("a")]);
      const refund = {
        do: "adjust",
        at: NOON,
        attempt: "a",
        costNano: -200n,
        reason: "refund",
        actor: "eve",
      } as const;
      await store.apply([refund, refund]);
      await store.apply([refund, { ...refund, at: NOON + 1 }]);
      const found = (await rows(store, "a")).filter(({ kind }) => kind === "adjust");
      assert.equal(found.length, 2);
      assert.equal(found[0]?.reason, "refund");
      assert.equal(found[0].actor, "eve");
      assert.equal(await left(store, {}), 9_700n);
      await one(store, reserve("b"));
      await refused(store.apply([{ ...refund, attempt: "b" }]));
    },
  ],

  [
    "crossings are kept until they are told: over a crash, and of what recovery presumes",
    async (store, crash) => {
      if (!store.crossings) return;
      const budget = { max: 1_000n, per: "month" } as const;
      const spend = async (of: Store, attempt: string, costNano: bigint) => {
        const at = wallClock();
        await one(of, reserve(attempt, { at, claims: [claim(budget, 1n)], holdNano: 1n }));
        const verdict = await one(of, settle(attempt, { at, costNano }));
        return (verdict.ok && verdict.crossed) || [];
      };
      const untold = async (of: Store) =>
        (await of.crossings!.untold()).map(({ percent }) => percent);
      await store.crossings.told(await spend(store, "a", 600n));
      assert.deepEqual(await untold(store), []);
      await spend(store, "b", 250n);
      await one(
        store,
        reserve("c", { at: wallClock(), claims: [claim(budget, 110n)], holdNano: 110n }),
      );
      const next = await crash();
      assert.equal((await next.open(second)).presumed, 1);
      // 80 by a settle whose verdict nothing has told, 95 by the call that was open.
      assert.deepEqual(await untold(next), [80, 95]);
      const after = await crash();
      await after.open({ instance: "third" });
      assert.deepEqual(await untold(after), [80, 95]);
      await after.crossings!.told(await after.crossings!.untold());
      assert.deepEqual(await untold(after), []);
      const last = await crash();
      await last.open({ instance: "fourth" });
      assert.deepEqual(await untold(last), []);
      assert.deepEqual(
        (await spend(last, "d", 100n)).map(({ percent }) => percent),
        [100],
      );
      assert.deepEqual((await last.verify?.()) ?? [], []);
    },
  ],

  [
    "progress is best effort, and heard of open calls only",
    async (store) => {
      const heard = { do: "progress", at: NOON, attempt: "a", usage: { output: 1 } } as const;
      assert.deepEqual(await store.apply([heard]), [{ ok: true }]);
      await store.apply([reserve("a"), heard, settle("a"), heard]);
      assert.equal((await rows(store, "a")).length, 2);
      assert.deepEqual(await store.apply([{ do: "alive", at: NOON }]), [{ ok: true }]);
      assert.deepEqual(await store.apply([]), []);
    },
  ],

  [
    "after all that, it finds nothing wrong with itself",
    async (store, crash) => {
      await store.apply([
        reserve("a", { claims: [claim({}, 1_000n), claim({ per: "day" }, 1_000n)] }),
        reserve("b", { claims: [claim({}, 500n)] }),
        settle("a"),
      ]);
      await store.apply([
        { do: "adjust", at: NOON, attempt: "a", costNano: 9n, reason: "r", actor: "x" },
      ]);
      assert.deepEqual((await store.verify?.()) ?? [], []);
      const next = await crash();
      await next.open(second);
      assert.deepEqual((await next.verify?.()) ?? [], []);
    },
  ],

  [
    "and finds nothing wrong either while calls are written",
    async (store) => {
      let over = false;
      const written = (async () => {
        for (let i = 0; !over; i++) await store.apply([reserve(`w${i}`), settle(`w${i}`)]);
      })();
      try {
        for (let i = 0; i < 25; i++) assert.deepEqual((await store.verify?.()) ?? [], []);
      } finally {
        over = true;
        await written;
      }
    },
  ],
];
