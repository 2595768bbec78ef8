// Checks of the usage that limits and budgets count, and of the time at which they accept a key
// again.
import assert from "node:assert/strict";
import { getFault } from "../../model/error.ts";
import type { CommandResult } from "../../plugin/store/store.ts";
import { formatMemberScope } from "../../plugin/store/member-scope.ts";
import {
  limitClaim,
  readRemaining,
  NOON,
  applyOne,
  SECOND_OWNER,
  reserveCommand,
  readEntries,
  settleCommand,
  type Law,
} from "./fixtures.ts";

const reachedPercents = (verdict: CommandResult): readonly number[] =>
  (verdict.ok ? (verdict.thresholds ?? []) : []).map(({ percent }) => percent);

/** Scope of a member of one group that becomes idle after an hour. */
const memberScope = (member: string): string => formatMemberScope("a", 3_600_000, member);
const memberClaim = (
  member: string,
  limit: Parameters<typeof limitClaim>[0],
  take: bigint,
): ReturnType<typeof limitClaim> =>
  limitClaim({ scope: memberScope(member), maxMembers: 10, ...limit }, take);

/** Checks that each type of window counts correctly, and that a denial reserves nothing. */
export const limitLaws: readonly Law[] = [
  [
    "claims are all or nothing, and a denial changes no meter",
    async (store) => {
      const verdict = await applyOne(
        store,
        reserveCommand("a", {
          claims: [limitClaim({}, 1_000n), limitClaim({ scope: "team", max: 500n }, 1_000n)],
        }),
      );
      assert.ok(!verdict.ok);
      assert.equal(verdict.denied.scope, "team");
      assert.equal(verdict.denied.remaining, 500n);
      assert.ok(verdict.retryAfterMs > 0);
      assert.equal(await readRemaining(store, {}), 10_000n);
      assert.deepEqual(await readEntries(store, "a"), []);
      await applyOne(store, reserveCommand("a", { claims: [limitClaim({}, 1_000n)] }));
      assert.equal((await readEntries(store, "a")).length, 1);
    },
  ],

  [
    "of 500 concurrent calls on a budget for 50 exactly 50 are admitted on one instance",
    async (store) => {
      const batches = Array.from({ length: 10 }, (_, b) =>
        store.apply(
          Array.from({ length: 50 }, (_, i) =>
            reserveCommand(`a-${b}-${i}`, { claims: [limitClaim({ max: 50_000n }, 1_000n)] }),
          ),
        ),
      );
      const verdicts = (await Promise.all(batches)).flat();
      assert.equal(verdicts.filter(({ ok }) => ok).length, 50);
      assert.equal(await readRemaining(store, { max: 50_000n }), 0n);
    },
  ],

  [
    "of 500 concurrent first calls of a member exactly 50 are admitted",
    async (store) => {
      const batches = Array.from({ length: 10 }, (_, b) =>
        store.apply(
          Array.from({ length: 50 }, (_, i) =>
            reserveCommand(`m-${b}-${i}`, {
              claims: [memberClaim("s1", { max: 50_000n }, 1_000n)],
            }),
          ),
        ),
      );
      const verdicts = (await Promise.all(batches)).flat();
      assert.equal(verdicts.filter(({ ok }) => ok).length, 50);
      assert.equal(await readRemaining(store, { scope: memberScope("s1"), max: 50_000n }), 0n);
    },
  ],

  [
    "a full group denies further members and changes nothing, and admits its own",
    async (store) => {
      const call = (attempt: string, member: string, max = 2) =>
        applyOne(
          store,
          reserveCommand(attempt, { claims: [memberClaim(member, { maxMembers: max }, 1_000n)] }),
        );
      assert.ok((await call("a", "s1")).ok);
      assert.ok((await call("b", "s2")).ok);
      const denied = await call("c", "s3");
      assert.ok(!denied.ok);
      assert.equal(denied.isFull, true);
      assert.equal(denied.denied.scope, memberScope("s3"));
      assert.ok(denied.retryAfterMs > 0);
      assert.deepEqual(await readEntries(store, "c"), []);
      assert.ok((await call("d", "s1")).ok);
      // The denied call was not counted as a member.
      assert.ok((await call("e", "s3", 3)).ok);
      assert.equal((await call("f", "s4", 3)).ok, false);
      // Another group has its own members.
      const other = limitClaim({ scope: "~b~60~s3", maxMembers: 1 }, 1_000n);
      assert.ok((await applyOne(store, reserveCommand("g", { claims: [other] }))).ok);
    },
  ],

  [
    "two limits of a new member take one place in its group, and two new members take two",
    async (store) => {
      const calls = { unit: "requests", max: 9, per: "day", maxMembers: 2 } as const;
      const one = [memberClaim("s1", { maxMembers: 2 }, 1_000n), memberClaim("s1", calls, 1n)];
      assert.ok((await applyOne(store, reserveCommand("a", { claims: one }))).ok);
      const two = [memberClaim("s2", calls, 1n), memberClaim("s3", calls, 1n)];
      const denied = await applyOne(store, reserveCommand("b", { claims: two }));
      assert.ok(!denied.ok && denied.isFull);
      assert.ok((await applyOne(store, reserveCommand("c", { claims: two.slice(1) }))).ok);
    },
  ],

  [
    "a limit that only counts denies no call",
    async (store) => {
      const claims = [limitClaim({ max: 1_500n, countsOnly: true }, 1_000n)];
      for (const attempt of ["a", "b", "c"])
        assert.ok((await applyOne(store, reserveCommand(attempt, { claims }))).ok);
      assert.equal(await readRemaining(store, {}), 7_000n);
      const denied = await applyOne(
        store,
        reserveCommand("d", { claims: [...claims, limitClaim({ max: 3_000n }, 1_000n)] }),
      );
      assert.ok(!denied.ok);
      assert.equal(denied.denied.max, 3_000n);
    },
  ],

  [
    "a member's window in total starts again after its idle time, and leaves its group",
    async (store) => {
      const claims = [memberClaim("s1", { maxMembers: 1 }, 9_000n)];
      assert.ok((await applyOne(store, reserveCommand("a", { claims }))).ok);
      await applyOne(store, settleCommand("a", { costNano: 9_000n }));
      const at = (minutes: number) => NOON + 1_000 + minutes * 60_000;
      const call = (attempt: string, minutes: number, of = claims) =>
        applyOne(store, reserveCommand(attempt, { at: at(minutes), claims: of }));
      const denied = await call("b", 59);
      assert.ok(!denied.ok && !denied.isFull);
      const other = [memberClaim("s2", { maxMembers: 1 }, 1_000n)];
      const full = await call("c", 59, other);
      assert.ok(!full.ok && full.isFull);
      assert.ok((await call("d", 60, other)).ok);
      // The first member has left, and needs a place again.
      const late = await call("e", 60);
      assert.ok(!late.ok && late.isFull);
      await applyOne(store, settleCommand("d", { at: at(60), costNano: 0n }));
      assert.ok((await call("f", 120)).ok);
      assert.equal(await readRemaining(store, { scope: memberScope("s1") }, at(120)), 1_000n);
    },
  ],

  [
    "thresholds of a member's window that starts again are reported again, even after a crash",
    async (store, crash) => {
      if (!store.thresholds) return;
      const claims = [memberClaim("s1", {}, 1n)];
      const spend = async (attempt: string, costNano: bigint, at = NOON) => {
        await applyOne(store, reserveCommand(attempt, { at, claims }));
        const result = await applyOne(store, settleCommand(attempt, { at, costNano }));
        return result;
      };
      const before = await spend("a", 9_000n);
      assert.deepEqual(reachedPercents(before), [50, 80]);
      await store.thresholds.markDelivered((before.ok && before.thresholds) || []);
      const again = await spend("b", 6_000n, NOON + 2 * 3_600_000);
      assert.deepEqual(reachedPercents(again), [50]);
      const endOf = (result: CommandResult) => result.ok && result.thresholds?.[0]?.resetsAt;
      assert.notEqual(endOf(again), endOf(before));
      const next = await crash();
      await next.open(SECOND_OWNER);
      assert.deepEqual(
        (await next.thresholds!.listUndelivered()).map(({ percent }) => percent),
        [50],
      );
    },
  ],

  [
    "an operator resets a member: it has used nothing, and its open calls stay reserved",
    async (store) => {
      const { take: _, ...limit } = memberClaim("s1", { maxMembers: 1 }, 0n);
      const claims = [{ ...limit, take: 4_000n }];
      assert.ok((await applyOne(store, reserveCommand("a", { claims }))).ok);
      const settled = await applyOne(store, settleCommand("a", { costNano: 6_000n }));
      assert.deepEqual(reachedPercents(settled), [50]);
      assert.ok((await applyOne(store, reserveCommand("b", { claims }))).ok);
      assert.equal(await readRemaining(store, { scope: limit.scope }), 0n);
      const reset = { do: "member", at: NOON, limits: [limit], change: { type: "reset" } } as const;
      assert.deepEqual(await store.apply([reset, reset]), [{ ok: true }, { ok: true }]);
      assert.equal(await readRemaining(store, { scope: limit.scope }), 6_000n);
      // The member keeps its place, and its thresholds are reported again.
      const other = [memberClaim("s2", { maxMembers: 1 }, 1_000n)];
      const full = await applyOne(store, reserveCommand("c", { claims: other }));
      assert.ok(!full.ok && full.isFull);
      const again = await applyOne(store, settleCommand("b", { costNano: 5_000n }));
      assert.deepEqual(reachedPercents(again), [50]);
      assert.equal(await readRemaining(store, { scope: limit.scope }), 5_000n);
    },
  ],

  [
    "an operator raises a member once, until its window starts again",
    async (store) => {
      const { take: _, ...limit } = memberClaim("s1", {}, 0n);
      const { scope } = limit;
      const raise = (id: string, from: bigint) =>
        store.apply([
          {
            do: "member",
            at: NOON,
            limits: [limit],
            change: { type: "raise", id, amount: 5_000n, from },
          },
        ]);
      const code = (expected: string) => (error: unknown) => {
        assert.equal(getFault(error)?.code, expected);
        return true;
      };
      await assert.rejects(raise("c1", 0n), code("no_such_member"));
      const claims = [{ ...limit, take: 9_000n }];
      assert.ok((await applyOne(store, reserveCommand("a", { claims }))).ok);
      await applyOne(store, settleCommand("a", { costNano: 9_000n }));
      assert.deepEqual(await raise("c1", 9_000n), [{ ok: true }]);
      assert.equal(await readRemaining(store, { scope }), 6_000n);
      // Another change of an operator who read the usage before the first one.
      await assert.rejects(raise("c2", 9_000n), code("version_conflict"));
      assert.deepEqual(await raise("c3", 4_000n), [{ ok: true }]);
      assert.equal(await readRemaining(store, { scope }), 11_000n);
      // The same commands again have no effect, even if the member has used more in between.
      assert.ok((await applyOne(store, reserveCommand("b", { claims }))).ok);
      await applyOne(store, settleCommand("b", { costNano: 9_000n }));
      assert.deepEqual(await raise("c1", 9_000n), [{ ok: true }]);
      assert.deepEqual(await raise("c3", 4_000n), [{ ok: true }]);
      assert.equal(await readRemaining(store, { scope }), 2_000n);
      assert.equal(await readRemaining(store, { scope }, NOON + 2 * 3_600_000), 10_000n);
    },
  ],

  [
    "an open call keeps its member, however long it lasts",
    async (store) => {
      const claims = [memberClaim("s1", { maxMembers: 1 }, 9_000n)];
      assert.ok((await applyOne(store, reserveCommand("a", { claims }))).ok);
      const later = NOON + 5 * 3_600_000;
      const denied = await applyOne(store, reserveCommand("b", { at: later, claims }));
      assert.ok(!denied.ok && !denied.isFull);
      const other = [memberClaim("s2", { maxMembers: 1 }, 1_000n)];
      const full = await applyOne(store, reserveCommand("c", { at: later, claims: other }));
      assert.ok(!full.ok && full.isFull);
    },
  ],

  [
    "a meter that is claimed twice is charged once, against the stricter limit",
    async (store) => {
      const claims = [limitClaim({ max: 10_000n }, 300n), limitClaim({ max: 1_000n }, 300n)];
      assert.ok((await applyOne(store, reserveCommand("a", { claims }))).ok);
      assert.equal(await readRemaining(store, {}), 9_700n);
      const verdict = await applyOne(
        store,
        reserveCommand("b", { claims: [claims[0]!, limitClaim({ max: 500n }, 300n)] }),
      );
      assert.ok(!verdict.ok);
      assert.equal(verdict.denied.max, 500n);
    },
  ],

  [
    "a settle reports each threshold that it reaches, once",
    async (store) => {
      const crossed = async (attempt: string, costNano: bigint) => {
        await applyOne(
          store,
          reserveCommand(attempt, { claims: [limitClaim({ max: 1_000n }, 900n)] }),
        );
        const done = settleCommand(attempt, { costNano });
        const [verdict, again] = [await applyOne(store, done), await applyOne(store, done)];
        assert.ok(verdict.ok && again.ok && again.thresholds === undefined);
        return (verdict.thresholds ?? []).map(({ percent, used, max }) => [percent, used, max]);
      };
      // Reservations do not count toward thresholds.
      assert.deepEqual(await crossed("a", 100n), []);
      assert.deepEqual(await crossed("b", 0n), []);
      assert.deepEqual(await crossed("c", 850n), [
        [50, 950n, 1_000n],
        [80, 950n, 1_000n],
        [95, 950n, 1_000n],
      ]);
      const over = await applyOne(store, {
        do: "adjust",
        at: NOON,
        attempt: "a",
        costNano: 50n,
        reason: "dearer",
        actor: "test",
      });
      assert.ok(over.ok);
      const [crossing] = over.thresholds ?? [];
      assert.deepEqual(
        [crossing?.percent, crossing?.used, crossing?.scope, crossing?.unit, crossing?.per],
        [100, 1_000n, "key:alice", "nano_usd", "total"],
      );
    },
  ],

  [
    "a threshold is reported once, even after a downward correction, and again for a raised limit",
    async (store) => {
      let n = 0;
      const spend = async (costNano: bigint, max = 1_000n) => {
        const attempt = `spend-${++n}`;
        await applyOne(store, reserveCommand(attempt, { claims: [limitClaim({ max }, 1n)] }));
        return reachedPercents(await applyOne(store, settleCommand(attempt, { costNano })));
      };
      const correct = async (costNano: bigint) =>
        reachedPercents(
          await applyOne(store, {
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
    "a settle replaces the reserved amount with the used amount",
    async (store) => {
      const money = { max: 10_000n };
      const tokens = { unit: "tokens", per: "day", max: 1_000 } as const;
      const calls = { unit: "requests", per: "day", max: 10 } as const;
      const take = () => [
        limitClaim(money, 5_000n),
        limitClaim(tokens, 400n),
        limitClaim(calls, 1n),
      ];
      const states = async () => [
        await readRemaining(store, money),
        await readRemaining(store, tokens),
        await readRemaining(store, calls),
      ];
      await applyOne(store, reserveCommand("a", { claims: take() }));
      assert.deepEqual(await states(), [5_000n, 600n, 9n]);
      await applyOne(
        store,
        settleCommand("a", { costNano: 700n, usage: { input: 10, cache_read: 5, output: 20 } }),
      );
      assert.deepEqual(await states(), [9_300n, 965n, 9n]);
      // If the cost exceeds the reservation, the excess is charged too.
      await applyOne(store, reserveCommand("b", { claims: take() }));
      await applyOne(store, settleCommand("b", { costNano: 9_000n, usage: { output: 900 } }));
      assert.deepEqual(
        await states(),
        [300n, 65n, 8n].map((n, i) => (i === 0 ? 300n : n)),
      );
      await applyOne(
        store,
        reserveCommand("c", { claims: [limitClaim(tokens, 50n), limitClaim(calls, 1n)] }),
      );
      await applyOne(store, settleCommand("c", { state: "void", costNano: 0n, usage: {} }));
      assert.deepEqual(
        await states(),
        [300n, 65n, 7n],
        "a void call must count as one request and nothing else",
      );
    },
  ],

  [
    "unreported usage counts as reserved",
    async (store) => {
      const tokens = { unit: "tokens", per: "day", max: 1_000 } as const;
      await applyOne(
        store,
        reserveCommand("a", { claims: [limitClaim({}, 600n), limitClaim(tokens, 300n)] }),
      );
      await applyOne(store, settleCommand("a", { state: "unpriced", costNano: null, usage: {} }));
      assert.equal(await readRemaining(store, {}), 9_400n);
      assert.equal(await readRemaining(store, tokens), 700n);
    },
  ],

  [
    "a rate limit reports exactly when it admits again",
    async (store) => {
      const rate = { unit: "requests", per: "minute", max: 7 } as const;
      const ask = (attempt: string, at: number) =>
        applyOne(store, reserveCommand(attempt, { at, claims: [limitClaim(rate, 1n)] }));
      for (let i = 0; i < 7; i++) assert.ok((await ask(`a${i}`, NOON)).ok);
      const denied = await ask("b", NOON);
      assert.ok(!denied.ok);
      assert.equal(denied.denied.remaining, 0);
      assert.equal(denied.retryAfterMs, Math.ceil(60_000 / 7));
      assert.equal(denied.denied.resetsAt, NOON + 60_000);
      assert.ok(!(await ask("b", NOON + denied.retryAfterMs - 1)).ok);
      assert.ok((await ask("b", NOON + denied.retryAfterMs)).ok);
    },
  ],

  [
    "a token rate is corrected to actual usage, as credit and as debt",
    async (store) => {
      const rate = { unit: "tokens", per: "minute", max: 600 } as const;
      await applyOne(store, reserveCommand("a", { claims: [limitClaim(rate, 500n)] }));
      await applyOne(store, settleCommand("a", { at: NOON, usage: { output: 100 } }));
      assert.equal(await readRemaining(store, rate), 500n);
      await applyOne(store, reserveCommand("b", { claims: [limitClaim(rate, 100n)] }));
      await applyOne(store, settleCommand("b", { at: NOON, usage: { output: 1_100 } }));
      assert.equal(await readRemaining(store, rate), 0n);
      const denied = await applyOne(store, reserveCommand("c", { claims: [limitClaim(rate, 1n)] }));
      // 1,200 in a bucket of 600 is a debt of 60 s, plus 0.1 s for the one token.
      assert.ok(!denied.ok);
      assert.equal(denied.retryAfterMs, 60_100);
    },
  ],

  [
    "a request larger than the bucket takes the full bucket when it is full",
    async (store) => {
      const rate = { unit: "tokens", per: "minute", max: 600 } as const;
      assert.ok(
        (await applyOne(store, reserveCommand("a", { claims: [limitClaim(rate, 5_000n)] }))).ok,
      );
      const denied = await applyOne(
        store,
        reserveCommand("b", { claims: [limitClaim(rate, 5_000n)] }),
      );
      assert.ok(!denied.ok);
      assert.equal(denied.retryAfterMs, 60_000);
    },
  ],

  [
    "a clock that is set back locks out no key",
    async (store) => {
      const rate = { unit: "requests", per: "minute", max: 2 } as const;
      const ask = (attempt: string, at: number) =>
        applyOne(store, reserveCommand(attempt, { at, claims: [limitClaim(rate, 1n)] }));
      await ask("a", NOON);
      await ask("b", NOON);
      const yesterday = NOON - 86_400_000;
      assert.ok(
        !(await ask("c", yesterday)).ok,
        "a clock that is set back must not bypass the limit",
      );
      assert.ok((await ask("c", yesterday + 30_000)).ok);
      assert.ok(
        !(await ask("d", yesterday + 29_000)).ok,
        "a small disorder must not count as a clock jump",
      );
    },
  ],

  [
    "a clock that jumps does not bypass a budget",
    async (store) => {
      for (const per of ["day", "week", "month", "total"] as const) {
        const budget = { per, scope: `key:${per}` };
        const ask = (attempt: string, at: number) =>
          applyOne(
            store,
            reserveCommand(`${per}-${attempt}`, { at, claims: [limitClaim(budget, 10_000n)] }),
          );
        assert.ok((await ask("a", NOON)).ok);
        await applyOne(store, settleCommand(`${per}-a`, { at: NOON + 5, costNano: 10_000n }));
        // A call moves to a later window with its own count, and then back. The usage of the first
        // window still counts.
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
      const ask = (attempt: string) =>
        applyOne(store, reserveCommand(attempt, { claims: [limitClaim(lease, 1n)] }));
      await ask("a");
      await ask("b");
      assert.ok(!(await ask("c")).ok);
      await applyOne(store, settleCommand("a", { state: "void", costNano: 0n }));
      assert.ok((await ask("c")).ok);
    },
  ],

  [
    "a call counts in the budget window in which it began",
    async (store) => {
      const day = { per: "day" } as const;
      const midnight = Date.UTC(2026, 5, 2);
      await applyOne(
        store,
        reserveCommand("a", { at: midnight - 1, claims: [limitClaim(day, 3_000n)] }),
      );
      await applyOne(store, settleCommand("a", { at: midnight + 5, costNano: 2_000n }));
      assert.equal(await readRemaining(store, day, midnight + 5), 10_000n);
      const denied = await applyOne(
        store,
        reserveCommand("b", { at: midnight + 6, claims: [limitClaim({ ...day, max: 1n }, 2n)] }),
      );
      assert.ok(!denied.ok);
      assert.equal(denied.denied.resetsAt, midnight + 86_400_000);
      assert.equal(denied.retryAfterMs, 86_400_000 - 6);
      const months = await applyOne(
        store,
        reserveCommand("c", {
          claims: [limitClaim({ per: "month" }, 0n), limitClaim({ per: "week" }, 0n)],
        }),
      );
      assert.ok(months.ok);
      assert.deepEqual(
        months.limits?.map(({ resetsAt }) => new Date(resetsAt).toISOString().slice(0, 10)),
        ["2026-07-01", "2026-06-08"],
      );
    },
  ],
];
