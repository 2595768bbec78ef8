// What limits and budgets count, and when they let a key in again.
import assert from "node:assert/strict";
import type { Verdict } from "../../plugin/store.ts";
import { claim, left, NOON, one, reserve, rows, settle, type Law } from "./bench.ts";

const told = (verdict: Verdict): readonly number[] =>
  (verdict.ok ? (verdict.crossed ?? []) : []).map(({ percent }) => percent);

/** How each kind of window counts, and that a denial takes nothing. */
export const limitLaws: readonly Law[] = [
  [
    "claims are all or nothing, and a denial leaves no trace",
    async (store) => {
      const verdict = await one(
        store,
        reserve("a", {
          claims: [claim({}, 1_000n), claim({ scope: "team", max: 500n }, 1_000n)],
        }),
      );
      assert.ok(!verdict.ok);
      assert.equal(verdict.denied.scope, "team");
      assert.equal(verdict.denied.left, 500n);
      assert.ok(verdict.retryAfterMs > 0);
      assert.equal(await left(store, {}), 10_000n);
      assert.deepEqual(await rows(store, "a"), []);
      await one(store, reserve("a", { claims: [claim({}, 1_000n)] }));
      assert.equal((await rows(store, "a")).length, 1);
    },
  ],

  [
    "five hundred at once on a budget worth fifty: exactly fifty",
    async (store) => {
      const batches = Array.from({ length: 10 }, (_, b) =>
        store.apply(
          Array.from({ length: 50 }, (_, i) =>
            reserve(`a-${b}-${i}`, { claims: [claim({ max: 50_000n }, 1_000n)] }),
          ),
        ),
      );
      const verdicts = (await Promise.all(batches)).flat();
      assert.equal(verdicts.filter(({ ok }) => ok).length, 50);
      assert.equal(await left(store, { max: 50_000n }), 0n);
    },
  ],

  [
    "one meter claimed twice is taken once, against the stricter limit",
    async (store) => {
      const claims = [claim({ max: 10_000n }, 300n), claim({ max: 1_000n }, 300n)];
      assert.ok((await one(store, reserve("a", { claims }))).ok);
      assert.equal(await left(store, {}), 9_700n);
      const verdict = await one(
        store,
        reserve("b", { claims: [claims[0]!, claim({ max: 500n }, 300n)] }),
      );
      assert.ok(!verdict.ok);
      assert.equal(verdict.denied.max, 500n);
    },
  ],

  [
    "what a settle takes a window over is told with it, once",
    async (store) => {
      const crossed = async (attempt: string, costNano: bigint) => {
        await one(store, reserve(attempt, { claims: [claim({ max: 1_000n }, 900n)] }));
        const done = settle(attempt, { costNano });
        const [verdict, again] = [await one(store, done), await one(store, done)];
        assert.ok(verdict.ok && again.ok && again.crossed === undefined);
        return (verdict.crossed ?? []).map(({ percent, used, max }) => [percent, used, max]);
      };
      // What is held crosses nothing.
      assert.deepEqual(await crossed("a", 100n), []);
      assert.deepEqual(await crossed("b", 0n), []);
      assert.deepEqual(await crossed("c", 850n), [
        [50, 950n, 1_000n],
        [80, 950n, 1_000n],
        [95, 950n, 1_000n],
      ]);
      const over = await one(store, {
        do: "adjust",
        at: NOON,
        attempt: "a",
        costNano: 50n,
        reason: "dearer",
        actor: "test",
      });
      assert.ok(over.ok);
      const [crossing] = over.crossed ?? [];
      assert.deepEqual(
        [crossing?.percent, crossing?.used, crossing?.scope, crossing?.unit, crossing?.per],
        [100, 1_000n, "key:alice", "nano_usd", "total"],
      );
    },
  ],

  [
    "what was corrected downwards and goes over again is not told twice; parts of a raised limit are",
    async (store) => {
      let n = 0;
      const spend = async (costNano: bigint, max = 1_000n) => {
        const attempt = `spend-${++n}`;
        await one(store, reserve(attempt, { claims: [claim({ max }, 1n)] }));
        return told(await one(store, settle(attempt, { costNano })));
      };
      const correct = async (costNano: bigint) =>
        told(
          await one(store, {
            do: "adjust",
            at: NOON,
            attempt: "spend-1",
            costNano,
            reason: `nth ${++n}`,
            actor: "test",
          }),
        );
      assert.deepEqual(await spend(600n), [50]);
      assert.deepEqual(await correct(-200n), []);
      assert.deepEqual(await correct(150n), []);
      assert.deepEqual(await spend(100n), []);
      assert.deepEqual(await correct(-600n), []);
      assert.deepEqual(await spend(800n), [80]);
      assert.deepEqual(await spend(150n, 2_000n), [50]);
      assert.deepEqual(await spend(100n, 1_500n), []);
    },
  ],

  [
    "a settle turns what was held into what was used",
    async (store) => {
      const money = { max: 10_000n };
      const tokens = { unit: "tokens", per: "day", max: 1_000 } as const;
      const calls = { unit: "requests", per: "day", max: 10 } as const;
      const take = () => [claim(money, 5_000n), claim(tokens, 400n), claim(calls, 1n)];
      const states = async () => [
        await left(store, money),
        await left(store, tokens),
        await left(store, calls),
      ];
      await one(store, reserve("a", { claims: take() }));
      assert.deepEqual(await states(), [5_000n, 600n, 9n]);
      await one(
        store,
        settle("a", { costNano: 700n, usage: { input: 10, cache_read: 5, output: 20 } }),
      );
      assert.deepEqual(await states(), [9_300n, 965n, 9n]);
      // More than was held is charged all the same.
      await one(store, reserve("b", { claims: take() }));
      await one(store, settle("b", { costNano: 9_000n, usage: { output: 900 } }));
      assert.deepEqual(
        await states(),
        [300n, 65n, 8n].map((n, i) => (i === 0 ? 300n : n)),
      );
      await one(store, reserve("c", { claims: [claim(tokens, 50n), claim(calls, 1n)] }));
      await one(store, settle("c", { state: "void", costNano: 0n, usage: {} }));
      assert.deepEqual(await states(), [300n, 65n, 7n], "void costs a request and nothing else");
    },
  ],

  [
    "what was not reported counts as it was taken",
    async (store) => {
      const tokens = { unit: "tokens", per: "day", max: 1_000 } as const;
      await one(store, reserve("a", { claims: [claim({}, 600n), claim(tokens, 300n)] }));
      await one(store, settle("a", { state: "unpriced", costNano: null, usage: {} }));
      assert.equal(await left(store, {}), 9_400n);
      assert.equal(await left(store, tokens), 700n);
    },
  ],

  [
    "a rate says exactly when it lets in again",
    async (store) => {
      const rate = { unit: "requests", per: "minute", max: 7 } as const;
      const ask = (attempt: string, at: number) =>
        one(store, reserve(attempt, { at, claims: [claim(rate, 1n)] }));
      for (let i = 0; i < 7; i++) assert.ok((await ask(`a${i}`, NOON)).ok);
      const denied = await ask("b", NOON);
      assert.ok(!denied.ok);
      assert.equal(denied.denied.left, 0);
      assert.equal(denied.retryAfterMs, Math.ceil(60_000 / 7));
      assert.equal(denied.denied.resetsAt, NOON + 60_000);
      assert.ok(!(await ask("b", NOON + denied.retryAfterMs - 1)).ok);
      assert.ok((await ask("b", NOON + denied.retryAfterMs)).ok);
    },
  ],

  [
    "a rate in tokens is trued up, as credit and as debt",
    async (store) => {
      const rate = { unit: "tokens", per: "minute", max: 600 } as const;
      await one(store, reserve("a", { claims: [claim(rate, 500n)] }));
      await one(store, settle("a", { at: NOON, usage: { output: 100 } }));
      assert.equal(await left(store, rate), 500n);
      await one(store, reserve("b", { claims: [claim(rate, 100n)] }));
      await one(store, settle("b", { at: NOON, usage: { output: 1_100 } }));
      assert.equal(await left(store, rate), 0n);
      const denied = await one(store, reserve("c", { claims: [claim(rate, 1n)] }));
      // 1,200 in a bucket of 600: a minute of debt, and a tenth of a second for the one token.
      assert.ok(!denied.ok);
      assert.equal(denied.retryAfterMs, 60_100);
    },
  ],

  [
    "a request larger than the bucket gets the whole bucket, when it is full",
    async (store) => {
      const rate = { unit: "tokens", per: "minute", max: 600 } as const;
      assert.ok((await one(store, reserve("a", { claims: [claim(rate, 5_000n)] }))).ok);
      const denied = await one(store, reserve("b", { claims: [claim(rate, 5_000n)] }));
      assert.ok(!denied.ok);
      assert.equal(denied.retryAfterMs, 60_000);
    },
  ],

  [
    "a clock that is set back locks no key out",
    async (store) => {
      const rate = { unit: "requests", per: "minute", max: 2 } as const;
      const ask = (attempt: string, at: number) =>
        one(store, reserve(attempt, { at, claims: [claim(rate, 1n)] }));
      await ask("a", NOON);
      await ask("b", NOON);
      const yesterday = NOON - 86_400_000;
      assert.ok(!(await ask("c", yesterday)).ok, "nor is it a way around the limit");
      assert.ok((await ask("c", yesterday + 30_000)).ok);
      assert.ok(!(await ask("d", yesterday + 29_000)).ok, "a little disorder is not a jump");
    },
  ],

  [
    "a clock that jumps is no way around a budget",
    async (store) => {
      for (const per of ["day", "week", "month", "total"] as const) {
        const budget = { per, scope: `key:${per}` };
        const ask = (attempt: string, at: number) =>
          one(store, reserve(`${per}-${attempt}`, { at, claims: [claim(budget, 10_000n)] }));
        assert.ok((await ask("a", NOON)).ok);
        await one(store, settle(`${per}-a`, { at: NOON + 5, costNano: 10_000n }));
        // Forth, into a window of its own, and back: what was spent then is spent.
        const there = await ask("b", NOON + 40 * 86_400_000);
        assert.equal(there.ok, per !== "total");
        assert.ok(!(await ask("c", NOON + 10)).ok, per);
        if (there.ok) assert.ok(!(await ask("d", NOON + 40 * 86_400_000)).ok, per);
      }
    },
  ],

  [
    "leases end with their calls",
    async (store) => {
      const lease = { unit: "concurrent", per: "open", max: 2 } as const;
      const ask = (attempt: string) => one(store, reserve(attempt, { claims: [claim(lease, 1n)] }));
      await ask("a");
      await ask("b");
      assert.ok(!(await ask("c")).ok);
      await one(store, settle("a", { state: "void", costNano: 0n }));
      assert.ok((await ask("c")).ok);
    },
  ],

  [
    "a budget's window is the one the call began in",
    async (store) => {
      const day = { per: "day" } as const;
      const midnight = Date.UTC(2026, 5, 2);
      await one(store, reserve("a", { at: midnight - 1, claims: [claim(day, 3_000n)] }));
      await one(store, settle("a", { at: midnight + 5, costNano: 2_000n }));
      assert.equal(await left(store, day, midnight + 5), 10_000n);
      const denied = await one(
        store,
        reserve("b", { at: midnight + 6, claims: [claim({ ...day, max: 1n }, 2n)] }),
      );
      assert.ok(!denied.ok);
      assert.equal(denied.denied.resetsAt, midnight + 86_400_000);
      assert.equal(denied.retryAfterMs, 86_400_000 - 6);
      const months = await one(
        store,
        reserve("c", { claims: [claim({ per: "month" }, 0n), claim({ per: "week" }, 0n)] }),
      );
      assert.ok(months.ok);
      assert.deepEqual(
        months.limits?.map(({ resetsAt }) => new Date(resetsAt).toISOString().slice(0, 10)),
        ["2026-07-01", "2026-06-08"],
      );
    },
  ],
];
