// How what was written is found again: keys, entries, totals, prices.
import assert from "node:assert/strict";
import type { KeyRecord } from "../../plugin/key.ts";
import type { Store, Total } from "../../plugin/store.ts";
import { NOON, one, reserve, rows, settle, type Law } from "./bench.ts";

/** What a store keeps of keys, prices and the members of an entry. */
export const recordLaws: readonly Law[] = [
  [
    "keys are found by digest, replaced whole, and listed in pages",
    async (store) => {
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
    },
  ],

  [
    "entries are found by what they are, and read in pages",
    async (store) => {
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
    },
  ],

  [
    "totals are the sums of their parts",
    async (store) => {
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
      const [{ estimated = 0, ...all } = {} as Total, ...more] = await store.totals({ by: [] });
      assert.deepEqual(
        [all, estimated, more],
        [
          {
            by: {},
            calls: 2,
            usage: { input: 10, output: 21 },
            costNano: 2n ** 60n - 1n,
            unpriced: 1,
          },
          0,
          [],
        ],
      );
      const names = async (by: Parameters<Store["totals"]>[0]["by"]) =>
        (await store.totals({ by })).map((total) => [total.by, total.calls]);
      assert.deepEqual(await names(["key"]), [
        [{ key: "alice" }, 1],
        [{ key: "bob" }, 1],
      ]);
      assert.deepEqual(await names(["provider", "model"]), [
        [{ provider: "anthropic", model: "anthropic/opus" }, 1],
        [{ provider: "openai", model: "openai/gpt-6" }, 1],
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
    },
  ],

  [
    "totals are by anything, of anything, on any clock",
    async (store) => {
      const asked = {
        model: "fast",
        protocol: "messages",
        lane: "verbatim",
        stream: true,
      } as const;
      const other = { provider: "hub", model: "openai/gpt-6", protocol: null, credential: "paid" };
      // Half an hour before midnight, and after it, in Kathmandu.
      const late = Date.UTC(2026, 5, 1, 17, 45);
      await store.apply([
        reserve("a", {
          asked: { ...asked, frontend: "messages" },
          labels: { team: "core", env: "a" },
        }),
        settle("a", { at: late, costNano: 100n }),
        reserve("b", { target: other, account: "acme/web", price: null }),
        settle("b", {
          at: late + 3_600_000,
          state: "estimated",
          costNano: 20n,
          outcome: "timeout",
        }),
        { do: "adjust", at: late, attempt: "a", costNano: -3n, reason: "r", actor: "x" },
      ]);
      const sums = async (query: Parameters<Store["totals"]>[0]) =>
        (await store.totals(query)).map(({ by, calls, costNano }) => [
          ...query.by.map((each) => by[each]),
          calls,
          costNano,
        ]);
      assert.deepEqual(await sums({ by: ["frontend"] }), [
        ["", 1, 20n],
        ["messages", 1, 97n],
      ]);
      assert.deepEqual(await sums({ by: ["outcome"] }), [
        ["adjusted", 0, -3n],
        ["ok", 1, 100n],
        ["timeout", 1, 20n],
      ]);
      assert.deepEqual(await sums({ by: ["state", "price"] }), [
        ["adjusted", "p1", 0, -3n],
        ["estimated", "", 1, 20n],
        ["exact", "p1", 1, 100n],
      ]);
      assert.deepEqual(await sums({ by: ["accounts", "labels"] }), [
        ["", '{"env":"a","team":"core"}', 1, 97n],
        ["acme/web", "{}", 1, 20n],
      ]);
      assert.deepEqual(await sums({ by: ["hour"] }), [
        ["2026-06-01T17:00Z", 1, 97n],
        ["2026-06-01T18:00Z", 1, 20n],
      ]);
      const zone = "Asia/Kathmandu";
      assert.deepEqual(await sums({ by: ["hour"], zone }), [
        ["2026-06-01T23:00+05:45", 1, 97n],
        ["2026-06-02T00:00+05:45", 1, 20n],
      ]);
      assert.deepEqual(await sums({ by: ["day", "credential"], zone }), [
        ["2026-06-01", "main", 1, 97n],
        ["2026-06-02", "paid", 1, 20n],
      ]);
      for (const [query, calls] of [
        [{ provider: "hub" }, 1],
        [{ model: "openai/gpt-6" }, 2],
        [{ model: "gpt-6" }, 1],
        [{ model: "hub/openai/gpt-6" }, 1],
        [{ label: "team=core" }, 1],
        [{ label: "team" }, 0],
        [{ credential: "paid" }, 1],
        [{ frontend: "messages" }, 1],
        [{ outcome: "timeout", account: "web" }, 1],
      ] as const) {
        const [total] = await store.totals({ ...query, by: [] });
        assert.equal(total?.calls ?? 0, calls, JSON.stringify(query));
        const { items } = await store.entries(query);
        const settles = items.filter(({ kind }) => kind === "settle");
        assert.equal(settles.length, calls, JSON.stringify(query));
      }
    },
  ],

  [
    "rows say where their key stood, and are found and added up by every account of it",
    async (store) => {
      await store.apply([
        reserve("a", { account: "acme/research/web" }),
        settle("a", { costNano: 100n }),
        reserve("b", { account: "acme" }),
        settle("b", { costNano: 20n }),
        { do: "adjust", at: NOON, attempt: "a", costNano: 7n, reason: "r", actor: "x" },
        // It has moved since.
        reserve("c", { account: "other/research" }),
        settle("c", { costNano: 3n }),
        reserve("d"),
        settle("d", { costNano: 1n }),
        reserve("e", { account: "acmes" }),
      ]);
      assert.deepEqual(
        (await rows(store, "a")).map(({ kind, account }) => [kind, account]),
        ["reserve", "settle", "adjust"].map((kind) => [kind, "acme/research/web"]),
      );
      assert.deepEqual(
        (await rows(store, "d")).map(({ account }) => account),
        [undefined, undefined],
      );
      const found = async (account: string) =>
        (await store.entries({ account })).items.map(({ attempt, kind }) => `${attempt} ${kind}`);
      const ofA = ["a reserve", "a settle", "a adjust"];
      assert.deepEqual((await found("web")).sort(), [...ofA].sort());
      assert.deepEqual((await found("research")).sort(), [...ofA, "c reserve", "c settle"].sort());
      assert.deepEqual((await found("acme/research")).sort(), [...ofA].sort());
      assert.deepEqual(await found("other"), ["c reserve", "c settle"]);
      assert.deepEqual(await found("resea"), []);
      const sums = async (query: Parameters<Store["totals"]>[0]) =>
        (await store.totals(query)).map(({ by, calls, costNano }) => [
          by["account"],
          calls,
          costNano,
        ]);
      assert.deepEqual(await sums({ by: ["account"] }), [
        ["", 1, 1n],
        ["acme", 2, 127n],
        ["acme/research", 1, 107n],
        ["acme/research/web", 1, 107n],
        ["other", 1, 3n],
        ["other/research", 1, 3n],
      ]);
      assert.deepEqual(await sums({ by: [], account: "research" }), [[undefined, 2, 110n]]);
    },
  ],

  [
    "a pinned price stays what it was",
    async (store) => {
      if (!store.price) return;
      const price = { lines: [{ unit: "input", usd: "0.15", per: 1_000_000 }] } as const;
      await one(store, { do: "price", at: NOON, hash: "p1", price });
      await one(store, { do: "price", at: NOON, hash: "p1", price: { lines: [] } });
      assert.deepEqual(await store.price("p1"), price);
      assert.equal(await store.price("p2"), undefined);
    },
  ],

  [
    "the ledger holds copies: what is changed outside is not changed inside",
    async (store) => {
      const labels = { team: "core" };
      await one(store, reserve("a", { labels }));
      labels.team = "other";
      await one(store, settle("a"));
      assert.deepEqual((await rows(store, "a"))[1]?.labels, { team: "core" });
    },
  ],
];
