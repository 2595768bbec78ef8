// The ledger search: its pages together equal the ledger, and each has a limited amount of work.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Store, StoreCommand } from "tollgate/plugin";
import {
  searchRequests,
  type SearchedRequest,
  type SearchQuery,
  type SearchLimits,
} from "../../../src/admin/commands/request-search.ts";
import { COMMAND_SPECS } from "../../../src/admin/schema/command-specs.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { makeMemory } from "../../plugins/stores/stores-under-test.ts";
import { trialCount } from "../../kit/law-effort.ts";

const QUIET: SearchLimits = { now: () => 0, budgetMs: 1, maxStretchMs: 60_000 };
const HURRIED: SearchLimits = { now: () => 0, budgetMs: 0, maxStretchMs: 60_000 };

interface Called {
  readonly at: number;
  readonly outcome: string;
  readonly key: string;
}

async function ledger(calls: readonly Called[]) {
  const { store } = await makeMemory();
  await store.open({ instance: "one" });
  for (const [i, { at, outcome, key }] of calls.entries())
    await store.apply([
      reserveCommand(`c${i}`, { at, key }),
      settleCommand(`c${i}`, { at: at + 1, outcome }),
    ] as StoreCommand[]);
  const reads: { rows: number; limit: number }[] = [];
  const counting: Pick<Store, "listEntries"> = {
    async listEntries(query, page, of) {
      const found = await store.listEntries(query, page, of);
      reads.push({ rows: found.items.length, limit: page?.limit ?? 100 });
      return found;
    },
  };
  return { store: counting, reads };
}

async function pages(
  store: Pick<Store, "listEntries">,
  of: Partial<SearchQuery>,
  times: SearchLimits,
) {
  const found: SearchedRequest[][] = [];
  let after: string | undefined;
  for (let n = 0; n < 5_000; n++) {
    const page = await searchRequests(
      store,
      { query: {}, status: undefined, from: 0, to: NOON + 1e9, limit: 5, ...of, cursor: after },
      times,
    );
    found.push([...page.items]);
    after = page.next;
    if (after === undefined) return found;
  }
  throw new Error("The search does not end.");
}

const call = fc.record({
  // Close together, far apart, and at one moment.
  at: fc.oneof(
    fc.nat(3).map((n) => NOON - n),
    fc.nat(100_000).map((n) => NOON - n * 1_000),
    fc.nat(400).map((n) => NOON - n * 86_400_000),
  ),
  outcome: fc.constantFrom("ok", "timeout", "canceled", "invalid"),
  key: fc.constantFrom("k1", "k2"),
});
const STATUS = { ok: "ok", timeout: "failed", canceled: "canceled", invalid: "refused" } as const;

it("finds each matching request once, the newest first, for any page size", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { maxLength: 60 }),
      fc.constantFrom(undefined, "ok", "failed", "canceled", "refused"),
      fc.constantFrom(undefined, "k1"),
      fc.integer({ min: 1, max: 12 }),
      fc.constantFrom(QUIET, HURRIED),
      async (calls, status, key, limit, times) => {
        const { store, reads } = await ledger(calls);
        const found = (await pages(store, { status, limit, query: { key } }, times)).flat();
        const wanted = calls.flatMap((each, i) => {
          const its = STATUS[each.outcome as keyof typeof STATUS];
          const fits = (status ?? its) === its && (key ?? each.key) === each.key;
          return fits ? [{ id: `r-c${i}`, status: its, at: each.at + 1, key: each.key }] : [];
        });
        expect(found.map(({ id }) => id).toSorted()).toEqual(wanted.map(({ id }) => id).toSorted());
        for (const one of wanted) expect(found.find(({ id }) => id === one.id)).toMatchObject(one);
        const moments = found.map(({ at }) => at);
        expect(moments).toEqual(moments.toSorted((a, b) => b - a));
        for (const { rows, limit: most } of reads) expect(rows).toBeLessThanOrEqual(most);
      },
    ),
    { numRuns: trialCount(60) },
  );
});

it("reads a limited number of rows per page, also if many rows have one timestamp", async () => {
  const calls = Array.from({ length: 3_000 }, (_, i) => ({
    at: NOON - i * 10,
    outcome: "ok",
    key: "k1",
  }));
  const { store, reads } = await ledger(calls);
  const page = await searchRequests(
    store,
    { query: {}, status: undefined, from: 0, to: NOON + 100, cursor: undefined, limit: 50 },
    QUIET,
  );
  expect(page.items.length).toBeGreaterThanOrEqual(50);
  expect(page.items.length).toBeLessThanOrEqual(150);
  expect(page.items[0]).toMatchObject({ id: "r-c0", model: "openai/gpt-6", calls: [{ n: 1 }] });
  expect(reads.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThan(6_000);
});

it("rows with one timestamp are read page by page, and each is found once", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 120 }),
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: 1, max: 6 }),
      fc.constantFrom(undefined, "ok", "failed"),
      fc.constantFrom(QUIET, HURRIED),
      async (same, others, limit, status, times) => {
        const calls = [
          ...Array.from({ length: same }, (_, i) => ({ at: NOON, key: "k1", i })),
          ...Array.from({ length: others }, (_, i) => ({ at: NOON + i - 4, key: "k1", i })),
        ].map(({ i, ...each }) => ({ ...each, outcome: i % 3 === 0 ? "timeout" : "ok" }));
        const { store, reads } = await ledger(calls);
        const cut = await pages(store, { limit, status }, times);
        const wanted = calls.flatMap(({ outcome }, i) =>
          (status ?? STATUS[outcome as "ok"]) === STATUS[outcome as "ok"] ? [`r-c${i}`] : [],
        );
        expect(
          cut
            .flat()
            .map(({ id }) => id)
            .toSorted(),
        ).toEqual(wanted.toSorted());
        const moments = cut.flat().map(({ at }) => at);
        expect(moments).toEqual(moments.toSorted((a, b) => b - a));
        // A page's limit determines how many rows are read, not the number of rows with one
        // timestamp.
        for (const page of cut) expect(page.length).toBeLessThanOrEqual(6 * limit);
        for (const { rows } of reads) expect(rows).toBeLessThanOrEqual(4 * limit);
      },
    ),
    { numRuns: trialCount(60) },
  );
});

it("20,000 imported rows with one timestamp: one response reads a page of them", async () => {
  const calls = Array.from({ length: 10_000 }, () => ({ at: NOON, outcome: "ok", key: "k1" }));
  const { store, reads } = await ledger(calls);
  const of = {
    query: {},
    status: undefined,
    from: 0,
    to: NOON + 100,
    cursor: undefined,
    limit: 50,
  };
  const page = await searchRequests(store, of, QUIET);
  expect(page.items.length).toBeGreaterThanOrEqual(50);
  expect(page.next).toBeDefined();
  expect(reads.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThan(6_000);
});

it.each([
  ["openai/gpt-6", ["r-c0", "r-c1"]],
  ["gpt-6", ["r-c0", "r-c1"]],
  ["openai/*", ["r-c0", "r-c1"]],
  ["*gpt*", ["r-c0", "r-c1"]],
  // As the client requested it: an alias, or a pattern of aliases.
  ["fast", ["r-c0"]],
  ["fa*", ["r-c0"]],
  ["openai/fast", []],
  ["anthropic/*", ["r-c2"]],
  ["claude-9", ["r-c2"]],
  ["*", ["r-c0", "r-c1", "r-c2"]],
])("a model %s is found by its requested and served name", async (model, ids) => {
  const { store } = await makeMemory();
  await store.open({ instance: "one" });
  const target = { provider: "anthropic", model: "claude-9", protocol: null, credential: "c" };
  const asked = (model: string) => ({
    clientRequest: { frontend: "chat-completions", model, stream: false } as never,
  });
  const all = [
    { at: NOON, ...asked("fast") },
    { at: NOON + 1, ...asked("openai/gpt-6") },
    { at: NOON + 2, target },
  ];
  for (const [i, of] of all.entries())
    await store.apply([reserveCommand(`c${i}`, of), settleCommand(`c${i}`, { at: of.at + 1 })]);
  const found = (await pages(store, { query: { model } }, QUIET)).flat();
  expect(found.map(({ id }) => id).toSorted()).toEqual(ids);
});

it("an outcome in the ledger selects calls by their error kind", async () => {
  const { store } = await ledger(
    ["ok", "timeout", "rate_limited", "timeout"].map((outcome, i) => ({
      at: NOON + i,
      outcome,
      key: "k1",
    })),
  );
  const { input } = COMMAND_SPECS["requests.search"];
  expect(input.properties.outcome.type).toBe("string");
  const found = (await pages(store, { query: { outcome: "timeout" } }, QUIET)).flat();
  expect(found.map(({ id }) => id)).toEqual(["r-c3", "r-c1"]);
});

it("ends at the start of the requested range, and at the start of the ledger", async () => {
  const { store } = await ledger([
    { at: NOON - 50_000, outcome: "ok", key: "k1" },
    { at: NOON - 10, outcome: "ok", key: "k1" },
  ]);
  const of = { query: {}, status: undefined, to: NOON, cursor: undefined, limit: 50 };
  const page = await searchRequests(store, { ...of, from: NOON - 100 }, QUIET);
  expect(page).toMatchObject({
    items: [{ id: "r-c1" }],
    next: undefined,
    searchedBackTo: NOON - 100,
  });
  const nothing = await searchRequests(store, { ...of, from: NOON + 10, to: NOON + 20 }, QUIET);
  expect(nothing).toMatchObject({ items: [], next: undefined });
  await expect(
    searchRequests(store, { ...of, from: 0, cursor: "nonsense" }, QUIET),
  ).rejects.toThrow("Invalid `after`");
});

it("a range that takes too long is narrowed, and the page states how far it got", async () => {
  const { store } = await ledger([{ at: NOON - 3_000_000, outcome: "ok", key: "k1" }]);
  const widths: number[] = [];
  const slow: Pick<Store, "listEntries"> = {
    listEntries: async (query, page, of) => {
      const width = query.to! - query.from!;
      if (width > 0) widths.push(width);
      // Like a store that is told to stop.
      if (width > 900_000 && query.to! > NOON - 4_000_000)
        await new Promise((_, no) =>
          of!.signal!.addEventListener("abort", () => no(of!.signal!.reason)),
        );
      return store.listEntries(query, page, of);
    },
  };
  const found = (await pages(slow, { to: NOON }, { ...QUIET, maxStretchMs: 20 })).flat();
  expect(found).toMatchObject([{ id: "r-c0" }]);
  expect(Math.min(...widths)).toBeLessThanOrEqual(900_000);
});
