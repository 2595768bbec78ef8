// The observer `reconcile` in a test context: rows and sums of the ledger, the days that are read,
// and the report of a difference.
import { createTestContext } from "tollgate/testing";
import type { Context, LedgerEntry, LedgerTotal } from "tollgate/plugin";
import { expect, it } from "vitest";
import { reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { makeSqlite } from "../stores/stores-under-test.ts";
import reconcile from "../../../plugins/observers/reconcile.ts";
import { readCalls } from "../../../plugins/observers/reconcile/ledger-calls.ts";

const DAY_MS = 86_400_000;
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

const row = (more: Partial<LedgerEntry>): LedgerEntry => ({
  seq: 1,
  kind: "settle",
  attempt: "a",
  request: "r",
  at: Date.parse("2026-11-27T12:00:00Z"),
  key: "k",
  target: { provider: "openai", model: "gpt-6", protocol: "responses", credential: "main" },
  usage: { input: 10 },
  costNano: 20n,
  state: "exact",
  outcome: "ok",
  labels: {},
  ...more,
});
const total = (more: Partial<LedgerTotal> & { state?: string; outcome?: string }): LedgerTotal => ({
  by: {
    day: "2026-11-27",
    model: "openai/gpt-6",
    credential: "main",
    state: more.state ?? "exact",
    outcome: more.outcome ?? "ok",
  },
  calls: 1,
  usage: { input: 10 },
  costNano: 20n,
  unpriced: 0,
  ...more,
});
const ledgerOf = (
  rows: readonly LedgerEntry[],
  totals: readonly LedgerTotal[],
): Context["ledger"] => ({
  listEntries: async ({ outcome }) => ({
    items: rows.filter((each) => outcome === undefined || each.outcome === outcome),
  }),
  sumEntries: async () => totals,
});
const period = { from: Date.parse("2026-11-27"), to: Date.parse("2026-11-28") };

it("reads calls with their corrections, and the sums of calls whose rows were pruned", async () => {
  const rows = [
    row({ attempt: "a" }),
    row({ attempt: "b", state: "unpriced", costNano: null }),
    row({ attempt: "a", kind: "adjust", outcome: "adjusted", costNano: 5n }),
    row({ attempt: "old", kind: "adjust", outcome: "adjusted", costNano: 7n }),
  ];
  const totals = [
    total({ calls: 4, usage: { input: 45 }, costNano: 95n }),
    total({ state: "unpriced", costNano: 0n }),
    total({ state: "estimated", outcome: "recovered", usage: { output: 3 }, costNano: 9n }),
    total({ outcome: "adjusted", calls: 0, usage: {}, costNano: 12n }),
  ];
  const calls = await readCalls(ledgerOf(rows, totals), "openai", period);
  expect(
    calls.map(({ attempt, state, recovered, summed, nano }) => [
      attempt,
      state,
      recovered,
      summed,
      nano,
    ]),
  ).toEqual([
    ["a", "exact", false, undefined, 25n],
    ["b", "unpriced", false, undefined, 0n],
    ["", "exact", false, 3, 75n],
    ["", "estimated", true, 1, 9n],
  ]);
  expect(calls[2]!.usage.input).toBe(35);
});

it("reads the same totals from a store before and after it was pruned", async () => {
  const { store, dispose } = await makeSqlite();
  await store.open({ instance: "a" });
  const at = Date.parse("2026-11-27T12:00:00Z");
  const { provider } = reserveCommand("x", { at }).target;
  for (const [i, state] of (["exact", "estimated", "exact", "unpriced"] as const).entries())
    await store.apply([
      reserveCommand(`call-${i}`, { at }),
      settleCommand(`call-${i}`, {
        at,
        state,
        usage: { input: 10 + i },
        costNano: state === "unpriced" ? null : BigInt(5 + i),
      }),
    ]);
  const rows = await readCalls(store, provider, period);
  expect(rows.map(({ summed }) => summed)).toEqual([undefined, undefined, undefined, undefined]);
  await store.maintenance!.prune!(at + 1);
  const sums = await readCalls(store, provider, period);
  expect(sums.every(({ summed }) => summed !== undefined)).toBe(true);
  const totals = (calls: typeof rows) => [
    calls.reduce((all, { nano }) => all + nano, 0n),
    calls.reduce((all, { usage }) => all + (usage.input ?? 0), 0),
    calls.reduce((all, { summed = 1 }) => all + summed, 0),
    new Set(calls.map(({ state, credential, day }) => `${state} ${credential} ${day}`)),
  ];
  expect(totals(sums)).toEqual(totals(rows));
  await dispose();
});

it("names no call as pruned that ended while the ledger was read", async () => {
  const calls = await readCalls(
    ledgerOf([row({ attempt: "a" }), row({ attempt: "b" })], [total({})]),
    "openai",
    period,
  );
  expect(calls.map(({ attempt }) => attempt)).toEqual(["a", "b"]);
});

it("compares each day once, with the days next to it, and reports a difference above the bound", async () => {
  const asked: URL[] = [];
  let billed = "20";
  await using test = createTestContext({
    id: "observers.reconcile",
    ledger: ledgerOf([], []),
    fetch: async (to) => {
      const url = new URL(String(to));
      asked.push(url);
      const start = Number(url.searchParams.get("start_time"));
      const results = url.pathname.endsWith("/costs")
        ? `{"amount":{"value":${billed},"currency":"usd"},"line_item":"gpt-6, input","quantity":10}`
        : "";
      // The day after the first day that is read.
      return new Response(
        `{"data":[{"start_time":${start + DAY_MS / 1_000},"results":[${results}]}],"has_more":false}`,
      );
    },
  });
  const ticks: (() => unknown)[] = [];
  const { ctx, logs, reportedEvents } = test;
  await reconcile.setup(
    {
      bills: { openai: { from: "openai", key: "sk-admin-0123456789" } },
      daily: true,
      max_difference: 10,
    },
    { ...ctx, runEvery: (_, tick) => void ticks.push(tick as () => unknown) },
  );
  await ticks[0]!();
  await ticks[0]!();
  const from = Math.floor((Date.now() - 2 * DAY_MS) / DAY_MS) * DAY_MS;
  expect(asked.map(({ pathname }) => pathname)).toEqual([
    "/v1/organization/costs",
    "/v1/organization/usage/completions",
  ]);
  const query = asked[0]!.searchParams;
  expect([query.get("start_time"), query.get("end_time")].map(Number)).toEqual([
    (from - DAY_MS) / 1_000,
    (from + 2 * DAY_MS) / 1_000,
  ]);
  expect(reportedEvents).toMatchObject([
    {
      type: "plugin_event",
      plugin: "observers.reconcile",
      name: "bill_differs",
      data: {
        provider: "openai",
        day: dayOf(from),
        differenceUsd: "20",
        causes: { outside: "20" },
      },
    },
  ]);
  expect(logs.map(({ message }) => message)).toEqual(["bill differs from ledger"]);
  billed = "10";
  await reconcile.setup(
    {
      bills: { openai: { from: "openai", key: "sk-admin-0123456789" } },
      daily: true,
      max_difference: 10,
    },
    { ...ctx, runEvery: (_, tick) => void ticks.push(tick as () => unknown) },
  );
  await ticks[1]!();
  expect(reportedEvents).toHaveLength(1);
  expect(logs.map(({ message }) => message).at(-1)).toBe("bill compared with ledger");
});
