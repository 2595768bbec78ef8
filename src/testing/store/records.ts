// Checks of reading keys, entries, totals, and prices.
import assert from "node:assert/strict";
import type { KeyRecord } from "../../plugin/store/account.ts";
import type { Store, LedgerTotal } from "../../plugin/store/store.ts";
import {
  NOON,
  applyOne,
  reserveCommand,
  readEntries,
  settleCommand,
  type Law,
} from "./fixtures.ts";

/** Checks of keys, prices, and the members of an entry. */
export const recordLaws: readonly Law[] = [
  [
    "keys are found by digest, replaced completely, and listed in pages",
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
      assert.deepEqual(await store.findKey("d3"), key(3, { limits, labels: { a: "b" } }));
      assert.equal(await store.findKey("nobody"), undefined);
      await applyOne(store, { do: "key", at: NOON, key: key(3, { revoked: NOON + 9 }) });
      assert.deepEqual(await store.findKey("d3"), key(3, { revoked: NOON + 9 }));
      const page = await store.listKeys({ limit: 2 });
      assert.deepEqual(
        page.items.map(({ id }) => id),
        ["k0", "k1"],
      );
      const rest = await store.listKeys({ after: page.next, limit: 10 });
      assert.deepEqual(
        rest.items.map(({ id }) => id),
        ["k2", "k3", "k4"],
      );
      assert.equal(rest.next, undefined);
    },
  ],

  [
    "entries are found by their fields and read in pages",
    async (store) => {
      await store.apply([
        reserveCommand("a", { at: NOON }),
        settleCommand("a", { at: NOON + 10, upstreamId: "up" }),
        reserveCommand("b", { at: NOON + 20, key: "bob" }),
        settleCommand("b", { at: NOON + 30, state: "estimated" }),
        reserveCommand("c", { at: NOON + 40, key: "bob" }),
      ]);
      const found = async (query: Parameters<Store["listEntries"]>[0]) =>
        (await store.listEntries(query)).items.map(({ attempt, kind }) => `${attempt} ${kind}`);
      assert.deepEqual(await found({ key: "bob" }), ["b reserve", "b settle", "c reserve"]);
      assert.deepEqual(await found({ upstreamId: "up" }), ["a settle"]);
      assert.deepEqual(await found({ state: "open" }), ["c reserve"]);
      assert.deepEqual(await found({ state: "estimated" }), ["b settle"]);
      assert.deepEqual(await found({ from: NOON + 10, to: NOON + 30 }), ["a settle", "b reserve"]);
      const page = await store.listEntries({}, { limit: 3 });
      assert.equal(page.items.length, 3);
      const rest = await store.listEntries({}, { limit: 3, after: page.next });
      assert.deepEqual(
        rest.items.map(({ attempt }) => attempt),
        ["b", "c"],
      );
      assert.equal(rest.next, undefined);
      assert.deepEqual(
        (await store.listEntries({}, { after: String(rest.items[1]!.seq) })).items,
        [],
      );
    },
  ],

  [
    "totals are the sums of their parts",
    async (store) => {
      const other = { provider: "anthropic", model: "opus", protocol: null, credential: "x" };
      await store.apply([
        reserveCommand("a", { labels: { team: "core", env: "dev" } }),
        settleCommand("a", { costNano: 2n ** 60n }),
        reserveCommand("b", { key: "bob", target: other }),
        settleCommand("b", {
          at: NOON + 86_400_000,
          state: "unpriced",
          costNano: null,
          usage: { output: 1 },
        }),
        reserveCommand("c"),
        settleCommand("c", { state: "void", costNano: 0n, usage: {} }),
        reserveCommand("d", { holdNano: 5n }),
        { do: "adjust", at: NOON, attempt: "a", costNano: -1n, reason: "r", actor: "x" },
      ]);
      const [{ estimated = 0, ...all } = {} as LedgerTotal, ...more] = await store.sumEntries({
        by: [],
      });
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
      const names = async (by: Parameters<Store["sumEntries"]>[0]["by"]) =>
        (await store.sumEntries({ by })).map((total) => [total.by, total.calls]);
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
      assert.equal((await store.sumEntries({ by: [], state: "void" }))[0]?.calls, 1);
      assert.equal((await store.sumEntries({ by: [], state: "open" }))[0]?.calls, 1);
      assert.equal((await store.sumEntries({ by: [], key: "bob" }))[0]?.unpriced, 1);
    },
  ],

  [
    "totals group any value by any field in any time zone",
    async (store) => {
      const clientRequest = {
        model: "fast",
        protocol: "messages",
        mode: "passthrough",
        stream: true,
      } as const;
      const other = { provider: "hub", model: "openai/gpt-6", protocol: null, credential: "paid" };
      // In Kathmandu, this is half an hour before midnight. The other calls are after midnight.
      const late = Date.UTC(2026, 5, 1, 17, 45);
      await store.apply([
        reserveCommand("a", {
          clientRequest: { ...clientRequest, frontend: "messages" },
          labels: { team: "core", env: "a" },
        }),
        settleCommand("a", { at: late, costNano: 100n }),
        reserveCommand("b", { target: other, account: "acme/web", price: null }),
        settleCommand("b", {
          at: late + 3_600_000,
          state: "estimated",
          costNano: 20n,
          outcome: "timeout",
        }),
        { do: "adjust", at: late, attempt: "a", costNano: -3n, reason: "r", actor: "x" },
      ]);
      const sums = async (query: Parameters<Store["sumEntries"]>[0]) =>
        (await store.sumEntries(query)).map(({ by, calls, costNano }) => [
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
      assert.deepEqual(await sums({ by: ["credential", "labels"], label: "team=core" }), [
        ["main", '{"env":"a","team":"core"}', 1, 97n],
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
        const [total] = await store.sumEntries({ ...query, by: [] });
        assert.equal(total?.calls ?? 0, calls, JSON.stringify(query));
        const { items } = await store.listEntries(query);
        const settles = items.filter(({ kind }) => kind === "settle");
        assert.equal(settles.length, calls, JSON.stringify(query));
      }
    },
  ],

  [
    "rows contain the accounts of their key, and are found and summed by each of these accounts",
    async (store) => {
      await store.apply([
        reserveCommand("a", { account: "acme/research/web" }),
        settleCommand("a", { costNano: 100n }),
        reserveCommand("b", { account: "acme" }),
        settleCommand("b", { costNano: 20n }),
        { do: "adjust", at: NOON, attempt: "a", costNano: 7n, reason: "r", actor: "x" },
        // The account was moved in the meantime.
        reserveCommand("c", { account: "other/research" }),
        settleCommand("c", { costNano: 3n }),
        reserveCommand("d"),
        settleCommand("d", { costNano: 1n }),
        reserveCommand("e", { account: "acmes" }),
      ]);
      assert.deepEqual(
        (await readEntries(store, "a")).map(({ kind, account }) => [kind, account]),
        ["reserve", "settle", "adjust"].map((kind) => [kind, "acme/research/web"]),
      );
      assert.deepEqual(
        (await readEntries(store, "d")).map(({ account }) => account),
        [undefined, undefined],
      );
      const found = async (account: string) =>
        (await store.listEntries({ account })).items.map(
          ({ attempt, kind }) => `${attempt} ${kind}`,
        );
      const ofA = ["a reserve", "a settle", "a adjust"];
      assert.deepEqual((await found("web")).sort(), [...ofA].sort());
      assert.deepEqual((await found("research")).sort(), [...ofA, "c reserve", "c settle"].sort());
      assert.deepEqual((await found("acme/research")).sort(), [...ofA].sort());
      assert.deepEqual(await found("other"), ["c reserve", "c settle"]);
      assert.deepEqual(await found("resea"), []);
      const sums = async (query: Parameters<Store["sumEntries"]>[0]) =>
        (await store.sumEntries(query)).map(({ by, calls, costNano }) => [
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
    "a pinned price does not change",
    async (store) => {
      if (!store.findPrice) return;
      const price = { lines: [{ unit: "input", usd: "0.15", per: 1_000_000 }] } as const;
      await applyOne(store, { do: "price", at: NOON, hash: "p1", price });
      await applyOne(store, { do: "price", at: NOON, hash: "p1", price: { lines: [] } });
      assert.deepEqual(await store.findPrice("p1"), price);
      assert.equal(await store.findPrice("p2"), undefined);
    },
  ],

  [
    "the ledger stores copies: later changes of an object do not affect it",
    async (store) => {
      const labels = { team: "core" };
      await applyOne(store, reserveCommand("a", { labels }));
      labels.team = "other";
      await applyOne(store, settleCommand("a"));
      assert.deepEqual((await readEntries(store, "a"))[1]?.labels, { team: "core" });
    },
  ],
];

// Checks with texts that a store does not control: provider IDs, client text, and paths.

/** Any text must be stored and must be found again. */
export const textLaws: readonly Law[] = [
  [
    "text from upstreams and clients may be arbitrary and can be stored and searched",
    async (store) => {
      const odd = ["\0", "a\0b", "\uD800", "'\"\\", "%00", "{}", "NULL", ""];
      for (const [i, upstreamId] of odd.entries()) {
        const labels = { [`n${upstreamId}`]: upstreamId };
        await store.apply([
          reserveCommand(`a${i}`, { labels }),
          settleCommand(`a${i}`, { upstreamId }),
        ]);
        const { items } = await store.listEntries({ upstreamId });
        assert.ok(
          items.some(({ attempt }) => attempt === `a${i}`),
          JSON.stringify(upstreamId),
        );
      }
      for (const text of odd) {
        for (const one of ["key", "account", "attempt", "provider", "model", "credential"] as const)
          assert.deepEqual((await store.listEntries({ [one]: text })).items, []);
        await store.listEntries({ label: text });
        await store.sumEntries({ by: ["key"], label: text });
        assert.equal(await store.findKey(text), undefined);
        await store.listKeys({ after: text });
      }
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],
];
