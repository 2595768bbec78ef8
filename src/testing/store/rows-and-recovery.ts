// Checks of the state after a crash, and of late settles.
import assert from "node:assert/strict";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { CLIENT_CREDENTIAL } from "../../model/usage.ts";
import type { Store } from "../../plugin/store/store.ts";
import {
  limitClaim,
  readRemaining,
  NOON,
  applyOne,
  assertInvalid,
  reserveCommand,
  readEntries,
  SECOND_OWNER,
  FIRST_OWNER,
  settleCommand,
  type Law,
} from "./fixtures.ts";

/** Checks of the data that the next owner finds and recovers after a crash. */
export const recoveryLaws: readonly Law[] = [
  [
    "acknowledged rows survive a crash, and open calls are recovered",
    async (store, crash) => {
      const lease = { unit: "concurrent", per: "open", max: 3 } as const;
      const claims = [limitClaim({}, 1_000n), limitClaim(lease, 1n)];
      await store.apply([
        reserveCommand("done", { claims }),
        settleCommand("done", { costNano: 400n }),
        reserveCommand("held", { claims }),
        reserveCommand("heard", { claims }),
        { do: "progress", at: NOON, attempt: "heard", usage: { output: 3 }, costNano: 250n },
      ]);
      const next = await crash();
      const { epoch, recovered } = await next.open(SECOND_OWNER);
      assert.ok(epoch > 1);
      assert.equal(recovered, 2);
      const held = (await readEntries(next, "held"))[1];
      assert.equal(held?.state, "estimated");
      assert.equal(held.outcome, "recovered");
      assert.equal(held.costNano, 1_000n);
      const withProgress = (await readEntries(next, "heard"))[1];
      assert.equal(withProgress?.costNano, 250n);
      assert.deepEqual(withProgress.usage, { output: 3 });
      assert.equal(await readRemaining(next, {}), 10_000n - 400n - 1_000n - 250n);
      assert.equal(await readRemaining(next, lease), 3n);
      assert.equal((await readEntries(next, "done")).length, 2);
    },
  ],

  [
    "a call that the client pays changes tokens and no budget of money, even after a crash",
    async (store, crash) => {
      const tokens = { unit: "tokens", per: "day", max: 1_000 } as const;
      const target = {
        provider: "max",
        model: "claude",
        protocol: "messages",
        credential: CLIENT_CREDENTIAL,
      };
      const claims = [limitClaim({}, 0n), limitClaim(tokens, 100n)];
      const open = (attempt: string) => reserveCommand(attempt, { target, claims, holdNano: 0n });
      const usage = { input: 20, output: 10, list_nano_usd: 4_000 };
      const paid = { state: "external", costNano: 0n, usage } as const;
      await store.apply([
        open("done"),
        settleCommand("done", paid),
        open("lost"),
        open("heard"),
        { do: "progress", at: NOON, attempt: "heard", usage: { output: 3 }, costNano: 250n },
      ]);
      await assertInvalid(
        store.apply([open("bad"), settleCommand("bad", { ...paid, costNano: 1n })]),
      );
      const next = await crash();
      await next.open(SECOND_OWNER);
      for (const attempt of ["done", "lost", "heard"]) {
        const settle = (await readEntries(next, attempt))[1];
        assert.deepEqual([settle?.state, settle?.costNano], ["external", 0n], attempt);
      }
      assert.equal(await readRemaining(next, {}), 10_000n);
      assert.equal(await readRemaining(next, tokens), 1_000n - 30n - 100n - 3n);
      const [sum] = await next.sumEntries({ by: ["state"], state: "external" });
      assert.equal(sum?.by["state"], "external");
      assert.deepEqual([sum.calls, sum.costNano, sum.unpriced], [3, 0n, 0]);
      assert.deepEqual(sum.usage, { input: 20, output: 13, list_nano_usd: 4_000 });
    },
  ],

  [
    "reopening by the same owner does not count as a crash: its calls stay open",
    async (store) => {
      await applyOne(store, reserveCommand("a"));
      assert.equal((await store.open(FIRST_OWNER)).recovered, 0);
      await applyOne(store, settleCommand("a"));
      assert.equal((await readEntries(store, "a"))[1]?.outcome, "ok");
    },
  ],

  [
    "the actual cost of a recovered call is written once, as a correction",
    async (_store, crash) => {
      await _store.apply([reserveCommand("a", { claims: [limitClaim({}, 1_000n)] })]);
      const store = await crash();
      await store.open(SECOND_OWNER);
      const late = settleCommand("a", { costNano: 300n, usage: { output: 7 } });
      await store.apply([late, late]);
      await store.apply([late]);
      const [, recovered, correction, ...more] = await readEntries(store, "a");
      assert.equal(recovered?.costNano, 1_000n);
      assert.equal(correction?.kind, "adjust");
      assert.equal(correction.costNano, -700n);
      assert.deepEqual(correction.usage, { output: 7 });
      assert.deepEqual(more, []);
      assert.equal(await readRemaining(store, {}), 9_700n);
    },
  ],

  [
    "an adjustment is written once, counts toward budgets, and contains its author and reason",
    async (store) => {
      await store.apply([
        reserveCommand("a", { claims: [limitClaim({}, 1_000n)] }),
        settleCommand("a"),
      ]);
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
      const found = (await readEntries(store, "a")).filter(({ kind }) => kind === "adjust");
      assert.equal(found.length, 2);
      assert.equal(found[0]?.reason, "refund");
      assert.equal(found[0].actor, "eve");
      assert.equal(await readRemaining(store, {}), 9_700n);
      await applyOne(store, reserveCommand("b"));
      await assertInvalid(store.apply([{ ...refund, attempt: "b" }]));
    },
  ],

  [
    "thresholds are kept until they are reported, even after a crash and for recovered calls",
    async (store, crash) => {
      if (!store.thresholds) return;
      const budget = { max: 1_000n, per: "month" } as const;
      const spend = async (of: Store, attempt: string, costNano: bigint) => {
        const at = wallClock();
        await applyOne(
          of,
          reserveCommand(attempt, { at, claims: [limitClaim(budget, 1n)], holdNano: 1n }),
        );
        const verdict = await applyOne(of, settleCommand(attempt, { at, costNano }));
        return (verdict.ok && verdict.thresholds) || [];
      };
      const untold = async (of: Store) =>
        (await of.thresholds!.listUndelivered()).map(({ percent }) => percent);
      await store.thresholds.markDelivered(await spend(store, "a", 600n));
      assert.deepEqual(await untold(store), []);
      await spend(store, "b", 250n);
      await applyOne(
        store,
        reserveCommand("c", {
          at: wallClock(),
          claims: [limitClaim(budget, 110n)],
          holdNano: 110n,
        }),
      );
      const next = await crash();
      assert.equal((await next.open(SECOND_OWNER)).recovered, 1);
      // 80% was reached by a settle whose result was never delivered, and 95% by the call that was
      // open.
      assert.deepEqual(await untold(next), [80, 95]);
      const after = await crash();
      await after.open({ instance: "third" });
      assert.deepEqual(await untold(after), [80, 95]);
      await after.thresholds!.markDelivered(await after.thresholds!.listUndelivered());
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
    "progress is best effort, and accepted for open calls only",
    async (store) => {
      const progress = { do: "progress", at: NOON, attempt: "a", usage: { output: 1 } } as const;
      assert.deepEqual(await store.apply([progress]), [{ ok: true }]);
      await store.apply([reserveCommand("a"), progress, settleCommand("a"), progress]);
      assert.equal((await readEntries(store, "a")).length, 2);
      assert.deepEqual(await store.apply([{ do: "heartbeat", at: NOON }]), [{ ok: true }]);
      assert.deepEqual(await store.apply([]), []);
    },
  ],

  [
    "verification then finds no errors",
    async (store, crash) => {
      await store.apply([
        reserveCommand("a", {
          claims: [limitClaim({}, 1_000n), limitClaim({ per: "day" }, 1_000n)],
        }),
        reserveCommand("b", { claims: [limitClaim({}, 500n)] }),
        settleCommand("a"),
      ]);
      await store.apply([
        { do: "adjust", at: NOON, attempt: "a", costNano: 9n, reason: "r", actor: "x" },
      ]);
      assert.deepEqual((await store.verify?.()) ?? [], []);
      const next = await crash();
      await next.open(SECOND_OWNER);
      assert.deepEqual((await next.verify?.()) ?? [], []);
    },
  ],

  [
    "verification finds no errors during writes",
    async (store) => {
      let over = false;
      const written = (async () => {
        for (let i = 0; !over; i++)
          await store.apply([reserveCommand(`w${i}`), settleCommand(`w${i}`)]);
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

// Checks of the rows that a ledger writes: each row is written once and complete, or not at all.

/** Checks of calls: reserve, settle, adjust, repeated commands, lists, and sums. */
export const entryLaws: readonly Law[] = [
  [
    "a reserve and its settle are two entries that contain all given fields",
    async (store) => {
      const clientRequest = {
        model: "fast",
        frontend: "messages",
        protocol: "messages",
        mode: "translated",
        stream: true,
        policyBasis: "row",
        argumentsHash: "sha256:1",
      } as const;
      const parts = [
        {
          model: "m",
          tier: "flex",
          usage: { output: 2 },
          price: "p2",
          costNano: 9_007_199_254_740_993n,
        },
      ];
      const open = reserveCommand("a", {
        labels: { team: "core" },
        clientRequest,
        privacy: "required",
      });
      const done = settleCommand("a", {
        costNano: 9_007_199_254_740_993n,
        upstreamId: "u1",
        upstreamCostNano: 5n,
        parts,
        finish: "stop",
        ms: { headers: 1.5, total: 20 },
      });
      assert.deepEqual(await store.apply([open, done]), [{ ok: true }, { ok: true }]);
      const [r, s] = await readEntries(store, "a");
      assert.ok(r && s);
      assert.equal(r.kind, "reserve");
      assert.deepEqual(r.clientRequest, clientRequest);
      assert.equal(r.holdNano, 1_000n);
      assert.equal(s.kind, "settle");
      assert.ok(s.seq > r.seq);
      assert.equal(s.key, "alice");
      assert.deepEqual(s.target, open.target);
      assert.deepEqual(s.labels, { team: "core" });
      assert.equal(s.costNano, 9_007_199_254_740_993n);
      assert.deepEqual(s.usage, { input: 10, output: 20 });
      assert.deepEqual(s.parts, parts);
      assert.equal(s.upstreamId, "u1");
      assert.equal(s.upstreamCostNano, 5n);
      assert.equal(s.finish, "stop");
      assert.deepEqual(s.ms, { headers: 1.5, total: 20 });
      assert.equal(s.privacy, "required");
      assert.equal(s.price, "p1");
    },
  ],

  [
    "a filtered listing contains every match, however many batches are between the matches",
    async (store) => {
      const called = (attempt: string, key: string) =>
        store.apply([reserveCommand(attempt, { key }), settleCommand(attempt)]);
      await called("first", "rare");
      for (let i = 0; i < 120; i++) await called(`other-${i}`, "common");
      await called("last", "rare");
      const found: string[] = [];
      let after: string | undefined;
      do {
        const page = await store.listEntries(
          { key: "rare" },
          { limit: 2, ...(after && { after }) },
        );
        found.push(...page.items.map(({ attempt }) => attempt));
        after = page.next;
      } while (after !== undefined);
      assert.deepEqual(found, ["first", "first", "last", "last"]);
    },
  ],

  [
    "a repeated command has no effect, in the same batch or a later batch",
    async (store) => {
      const claims = [limitClaim({}, 1_000n)];
      await store.apply([reserveCommand("a", { claims }), reserveCommand("a", { claims })]);
      assert.ok((await applyOne(store, reserveCommand("a", { claims }))).ok);
      await store.apply([settleCommand("a"), settleCommand("a")]);
      await applyOne(store, settleCommand("a", { costNano: 5n }));
      assert.ok(
        (await applyOne(store, reserveCommand("a", { claims: [limitClaim({}, 99_999n)] }))).ok,
      );
      assert.equal((await readEntries(store, "a")).length, 2);
      assert.equal(await readRemaining(store, {}), 9_300n);
    },
  ],

  [
    "a settle without its reserve rejects the batch, and no command of the batch is applied",
    async (store) => {
      await assertInvalid(
        store.apply([
          reserveCommand("a", { claims: [limitClaim({}, 4_000n)] }),
          settleCommand("nobody"),
          reserveCommand("b"),
        ]),
      );
      assert.deepEqual((await store.listEntries({})).items, []);
      assert.equal(await readRemaining(store, {}), 10_000n);
      await store.apply([reserveCommand("a"), settleCommand("a")]);
      assert.equal((await readEntries(store, "a")).length, 2);
    },
  ],

  [
    "invalid amounts are rejected: negative, fractional, too large",
    async (store) => {
      await assertInvalid(store.apply([reserveCommand("a", { claims: [limitClaim({}, -1n)] })]));
      await assertInvalid(
        store.apply([reserveCommand("a", { claims: [limitClaim({ max: 1.5 }, 1n)] })]),
      );
      await assertInvalid(store.apply([reserveCommand("a", { at: Number.NaN })]));
      await store.apply([reserveCommand("a")]);
      await assertInvalid(store.apply([settleCommand("a", { costNano: 2n ** 63n })]));
      await assertInvalid(store.apply([settleCommand("a", { costNano: -1n })]));
      await applyOne(store, settleCommand("a", { costNano: 2n ** 63n - 1n }));
      assert.equal((await readEntries(store, "a"))[1]?.costNano, 2n ** 63n - 1n);
    },
  ],
];
