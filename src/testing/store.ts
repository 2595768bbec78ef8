// The laws of a store, as named checks: any store that keeps them can keep the ledger.
// May import: plugin. Knows no test runner: a check that fails throws.
import assert from "node:assert/strict";
import { faultOf } from "../model/error.ts";
import type { Command, KeyRecord, Limit, Reserve, Settle, Store } from "../plugin/store.ts";

export interface StoreUnderTest {
  /** Not yet open. */
  store: Store;
  /** The owner dies without a word; what a next owner finds, not yet open. A store of one process may be the same one. */
  crash(): Promise<Store>;
  end(): Promise<void>;
}

export interface Check {
  name: string;
  run(): Promise<void>;
}

/** Noon, the first of June 2026, a Monday. */
export const NOON = Date.UTC(2026, 5, 1, 12);

export const reserve = (
  attempt: string,
  more: Partial<Reserve> & { at?: number } = {},
): Command & Reserve => ({
  do: "reserve",
  at: NOON,
  attempt,
  request: `r-${attempt}`,
  n: 1,
  key: "alice",
  target: { provider: "openai", model: "gpt-6", protocol: "chat-completions", credential: "main" },
  privacy: "off",
  labels: {},
  claims: [],
  holdNano: 1_000n,
  price: "p1",
  ...more,
});

export const settle = (
  attempt: string,
  more: Partial<Settle> & { at?: number } = {},
): Command & Settle => ({
  do: "settle",
  at: NOON + 1_000,
  attempt,
  state: "exact",
  usage: { input: 10, output: 20 },
  costNano: 700n,
  outcome: "ok",
  ...more,
});

const claim = (limit: Partial<Limit>, take: bigint): Limit & { take: bigint } => ({
  scope: "key:alice",
  unit: "nano_usd",
  max: 10_000n,
  per: "total",
  ...limit,
  take,
});

const first = { instance: "first", leaseMs: 10_000 };
const second = { instance: "second", leaseMs: 10_000 };

export function storeConformance(make: () => Promise<StoreUnderTest>): readonly Check[] {
  const checks: Check[] = [];
  const law = (name: string, run: (store: Store, crash: () => Promise<Store>) => Promise<void>) =>
    checks.push({
      name,
      async run() {
        const { store, crash, end } = await make();
        try {
          await store.open(first);
          await run(store, crash);
        } finally {
          await end();
        }
      },
    });
  const one = async (store: Store, command: Command) => (await store.apply([command]))[0]!;
  /** A claim that takes nothing says what is left and changes nothing but for its own two rows. */
  const left = async (store: Store, limit: Partial<Limit>, at = NOON): Promise<bigint> => {
    const attempt = `probe-${Math.random()}`;
    const verdict = await one(store, reserve(attempt, { at, claims: [claim(limit, 0n)] }));
    assert.ok(verdict.ok && verdict.limits);
    await one(store, settle(attempt, { at, state: "void", costNano: 0n, usage: {} }));
    return BigInt(verdict.limits[0]!.left);
  };
  const refused = async (batch: Promise<unknown>): Promise<void> => {
    const error = await batch.then(
      () => assert.fail("The batch was not rejected."),
      (e: unknown) => e,
    );
    assert.equal(faultOf(error)?.kind, "invalid", String(error));
  };
  const rows = async (store: Store, attempt: string) => (await store.entries({ attempt })).items;

  law("a reserve and its settle are two entries that say all they were told", async (store) => {
    const asked = {
      model: "fast",
      frontend: "messages",
      protocol: "messages",
      lane: "translated",
      stream: true,
      basis: "row",
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
    const open = reserve("a", { labels: { team: "core" }, asked, privacy: "required" });
    const done = settle("a", {
      costNano: 9_007_199_254_740_993n,
      upstreamId: "u1",
      upstreamCostNano: 5n,
      parts,
      finish: "stop",
      ms: { head: 1.5, total: 20 },
    });
    assert.deepEqual(await store.apply([open, done]), [{ ok: true }, { ok: true }]);
    const [r, s] = await rows(store, "a");
    assert.ok(r && s);
    assert.equal(r.kind, "reserve");
    assert.deepEqual(r.asked, asked);
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
    assert.deepEqual(s.ms, { head: 1.5, total: 20 });
    assert.equal(s.privacy, "required");
    assert.equal(s.price, "p1");
  });

  law("a repeat changes nothing, in one batch or in the next", async (store) => {
    const claims = [claim({}, 1_000n)];
    await store.apply([reserve("a", { claims }), reserve("a", { claims })]);
    assert.ok((await one(store, reserve("a", { claims }))).ok);
    await store.apply([settle("a"), settle("a")]);
    await one(store, settle("a", { costNano: 5n }));
    assert.ok((await one(store, reserve("a", { claims: [claim({}, 99_999n)] }))).ok);
    assert.equal((await rows(store, "a")).length, 2);
    assert.equal(await left(store, {}), 9_300n);
  });

  law(
    "a settle without its reserve rejects the batch, and nothing of it happened",
    async (store) => {
      await refused(
        store.apply([
          reserve("a", { claims: [claim({}, 4_000n)] }),
          settle("nobody"),
          reserve("b"),
        ]),
      );
      assert.deepEqual((await store.entries({})).items, []);
      assert.equal(await left(store, {}), 10_000n);
      await store.apply([reserve("a"), settle("a")]);
      assert.equal((await rows(store, "a")).length, 2);
    },
  );

  law("what cannot be right is refused: negative, fractional, too large", async (store) => {
    await refused(store.apply([reserve("a", { claims: [claim({}, -1n)] })]));
    await refused(store.apply([reserve("a", { claims: [claim({ max: 1.5 }, 1n)] })]));
    await refused(store.apply([reserve("a", { at: Number.NaN })]));
    await store.apply([reserve("a")]);
    await refused(store.apply([settle("a", { costNano: 2n ** 63n })]));
    await refused(store.apply([settle("a", { costNano: -1n })]));
    await one(store, settle("a", { costNano: 2n ** 63n - 1n }));
    assert.equal((await rows(store, "a"))[1]?.costNano, 2n ** 63n - 1n);
  });

  law("claims are all or nothing, and a denial leaves no trace", async (store) => {
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
  });

  law("five hundred at once on a budget worth fifty: exactly fifty", async (store) => {
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
  });

  law("one meter claimed twice is taken once, against the stricter limit", async (store) => {
    const claims = [claim({ max: 10_000n }, 300n), claim({ max: 1_000n }, 300n)];
    assert.ok((await one(store, reserve("a", { claims }))).ok);
    assert.equal(await left(store, {}), 9_700n);
    const verdict = await one(
      store,
      reserve("b", { claims: [claims[0]!, claim({ max: 500n }, 300n)] }),
    );
    assert.ok(!verdict.ok);
    assert.equal(verdict.denied.max, 500n);
  });

  law("a settle turns what was held into what was used", async (store) => {
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
  });

  law("what nobody reported counts as it was taken", async (store) => {
    const tokens = { unit: "tokens", per: "day", max: 1_000 } as const;
    await one(store, reserve("a", { claims: [claim({}, 600n), claim(tokens, 300n)] }));
    await one(store, settle("a", { state: "unpriced", costNano: null, usage: {} }));
    assert.equal(await left(store, {}), 9_400n);
    assert.equal(await left(store, tokens), 700n);
  });

  law("a rate says exactly when it lets in again", async (store) => {
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
  });

  law("a rate in tokens is trued up, as credit and as debt", async (store) => {
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
  });

  law("a request larger than the bucket gets the whole bucket, when it is full", async (store) => {
    const rate = { unit: "tokens", per: "minute", max: 600 } as const;
    assert.ok((await one(store, reserve("a", { claims: [claim(rate, 5_000n)] }))).ok);
    const denied = await one(store, reserve("b", { claims: [claim(rate, 5_000n)] }));
    assert.ok(!denied.ok);
    assert.equal(denied.retryAfterMs, 60_000);
  });

  law("a clock that is set back locks nobody out", async (store) => {
    const rate = { unit: "requests", per: "minute", max: 2 } as const;
    const ask = (attempt: string, at: number) =>
      one(store, reserve(attempt, { at, claims: [claim(rate, 1n)] }));
    await ask("a", NOON);
    await ask("b", NOON);
    const yesterday = NOON - 86_400_000;
    assert.ok(!(await ask("c", yesterday)).ok, "nor is it a way around the limit");
    assert.ok((await ask("c", yesterday + 30_000)).ok);
    assert.ok(!(await ask("d", yesterday + 29_000)).ok, "a little disorder is not a jump");
  });

  law("leases end with their calls", async (store) => {
    const lease = { unit: "concurrent", per: "open", max: 2 } as const;
    const ask = (attempt: string) => one(store, reserve(attempt, { claims: [claim(lease, 1n)] }));
    await ask("a");
    await ask("b");
    assert.ok(!(await ask("c")).ok);
    await one(store, settle("a", { state: "void", costNano: 0n }));
    assert.ok((await ask("c")).ok);
  });

  law("a budget's window is the one the call began in", async (store) => {
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
  });

  law(
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
  );

  law("the same owner again is no crash: its calls stay open", async (store) => {
    await one(store, reserve("a"));
    assert.equal((await store.open(first)).presumed, 0);
    await one(store, settle("a"));
    assert.equal((await rows(store, "a"))[1]?.outcome, "ok");
  });

  law("the truth about a presumed call is a correction, once", async (_store, crash) => {
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
  });

  law("an adjustment is written once, counts, and says who and why", async (store) => {
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
  });

  law("keys are found by digest, replaced whole, and listed in pages", async (store) => {
    const key = (i: number, more: Partial<KeyRecord> = {}): KeyRecord => ({
      id: `k${i}`,
      digest: `d${i}`,
      created: NOON + i,
      ...more,
    });
    const limits = [{ scope: "k", unit: "nano_usd", max: 2n ** 60n, per: "month" }] as const;
    await store.apply(
      [0, 1, 2, 3, 4].map((i) => ({
        do: "key",
        at: NOON,
        key: key(i, { limits, labels: { a: "b" } }),
      })),
    );
    assert.deepEqual(await store.key("d3"), key(3, { limits, labels: { a: "b" } }));
    assert.equal(await store.key("nobody"), undefined);
    await one(store, { do: "key", at: NOON, key: key(3, { revoked: NOON + 9 }) });
    assert.deepEqual(await store.key("d3"), key(3, { revoked: NOON + 9 }));
    const page = await store.keys({ limit: 2 });
    assert.deepEqual(
      page.items.map(({ id }) => id),
      ["k0", "k1"],
    );
    const rest = await store.keys({ after: page.next, limit: 10 });
    assert.deepEqual(
      rest.items.map(({ id }) => id),
      ["k2", "k3", "k4"],
    );
    assert.equal(rest.next, undefined);
  });

  law("entries are found by what they are, and read in pages", async (store) => {
    await store.apply([
      reserve("a", { at: NOON }),
      settle("a", { at: NOON + 10, upstreamId: "up" }),
      reserve("b", { at: NOON + 20, key: "bob" }),
      settle("b", { at: NOON + 30, state: "estimated" }),
      reserve("c", { at: NOON + 40, key: "bob" }),
    ]);
    const found = async (query: Parameters<Store["entries"]>[0]) =>
      (await store.entries(query)).items.map(({ attempt, kind }) => `${attempt} ${kind}`);
    assert.deepEqual(await found({ key: "bob" }), ["b reserve", "b settle", "c reserve"]);
    assert.deepEqual(await found({ upstreamId: "up" }), ["a settle"]);
    assert.deepEqual(await found({ state: "open" }), ["c reserve"]);
    assert.deepEqual(await found({ state: "estimated" }), ["b settle"]);
    assert.deepEqual(await found({ from: NOON + 10, to: NOON + 30 }), ["a settle", "b reserve"]);
    const page = await store.entries({}, { limit: 3 });
    assert.equal(page.items.length, 3);
    const rest = await store.entries({}, { limit: 3, after: page.next });
    assert.deepEqual(
      rest.items.map(({ attempt }) => attempt),
      ["b", "c"],
    );
    assert.equal(rest.next, undefined);
    assert.deepEqual((await store.entries({}, { after: String(rest.items[1]!.seq) })).items, []);
  });

  law("totals are the sums of their parts", async (store) => {
    const other = { provider: "anthropic", model: "opus", protocol: null, credential: "x" };
    await store.apply([
      reserve("a", { labels: { team: "core", env: "dev" } }),
      settle("a", { costNano: 2n ** 60n }),
      reserve("b", { key: "bob", target: other }),
      settle("b", {
        at: NOON + 86_400_000,
        state: "unpriced",
        costNano: null,
        usage: { output: 1 },
      }),
      reserve("c"),
      settle("c", { state: "void", costNano: 0n, usage: {} }),
      reserve("d", { holdNano: 5n }),
      { do: "adjust", at: NOON, attempt: "a", costNano: -1n, reason: "r", actor: "x" },
    ]);
    assert.deepEqual(await store.totals({ by: [] }), [
      { by: {}, calls: 2, usage: { input: 10, output: 21 }, costNano: 2n ** 60n - 1n, unpriced: 1 },
    ]);
    const names = async (by: Parameters<Store["totals"]>[0]["by"]) =>
      (await store.totals({ by })).map((total) => [total.by, total.calls]);
    assert.deepEqual(await names(["key"]), [
      [{ key: "alice" }, 1],
      [{ key: "bob" }, 1],
    ]);
    assert.deepEqual(await names(["provider", "model"]), [
      [{ provider: "anthropic", model: "opus" }, 1],
      [{ provider: "openai", model: "gpt-6" }, 1],
    ]);
    assert.deepEqual(await names(["day"]), [
      [{ day: "2026-06-01" }, 1],
      [{ day: "2026-06-02" }, 1],
    ]);
    assert.deepEqual(await names(["label"]), [
      [{ label: "" }, 1],
      [{ label: "env=dev" }, 1],
      [{ label: "team=core" }, 1],
    ]);
    assert.equal((await store.totals({ by: [], state: "void" }))[0]?.calls, 1);
    assert.equal((await store.totals({ by: [], state: "open" }))[0]?.calls, 1);
    assert.equal((await store.totals({ by: [], key: "bob" }))[0]?.unpriced, 1);
  });

  law("a pinned price stays what it was", async (store) => {
    if (!store.price) return;
    const price = { lines: [{ unit: "input", usd: "0.15", per: 1_000_000 }] } as const;
    await one(store, { do: "price", at: NOON, hash: "p1", price });
    await one(store, { do: "price", at: NOON, hash: "p1", price: { lines: [] } });
    assert.deepEqual(await store.price("p1"), price);
    assert.equal(await store.price("p2"), undefined);
  });

  law("the ledger holds copies: what is changed outside is not changed inside", async (store) => {
    const labels = { team: "core" };
    await one(store, reserve("a", { labels }));
    labels.team = "other";
    await one(store, settle("a"));
    assert.deepEqual((await rows(store, "a"))[1]?.labels, { team: "core" });
  });

  law("progress is best effort, and heard of open calls only", async (store) => {
    const heard = { do: "progress", at: NOON, attempt: "a", usage: { output: 1 } } as const;
    assert.deepEqual(await store.apply([heard]), [{ ok: true }]);
    await store.apply([reserve("a"), heard, settle("a"), heard]);
    assert.equal((await rows(store, "a")).length, 2);
    assert.deepEqual(await store.apply([{ do: "alive", at: NOON }]), [{ ok: true }]);
    assert.deepEqual(await store.apply([]), []);
  });

  law("after all that, it finds nothing wrong with itself", async (store, crash) => {
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
  });

  return checks;
}
