// Checks of the rows that a ledger writes: each row is written once and complete, or not at all.
import assert from "node:assert/strict";
import {
  limitClaim,
  readRemaining,
  applyOne,
  assertInvalid,
  reserveCommand,
  readEntries,
  settleCommand,
  type Law,
} from "./fixtures.ts";

/** Checks of calls: reserve, settle, adjust, repeated commands, lists, and sums. */
export const entryLaws: readonly Law[] = [
  [
    "a reserve and its settle are two entries that contain all given fields",
    async (store) => {
      const asked = {
        model: "fast",
        frontend: "messages",
        protocol: "messages",
        mode: "translated",
        stream: true,
        policyBasis: "row",
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
        clientRequest: asked,
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
      assert.deepEqual(r.clientRequest, asked);
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
    "a filtered listing has every match, however many batches are between them",
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
    "a repeated command has no effect, in the same batch or a later one",
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
    "a settle without its reserve rejects the batch, and none of it is applied",
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
