// Attention items: all problems, the most urgent first, and for an admin of one account only those
// of that account.
import { expect, it } from "vitest";
import type { Limit } from "tollgate/plugin";
import { AccountTree } from "../../../src/admin/access/account-tree.ts";
import {
  type Attention,
  type AttentionOptions,
  createAttentionCommand,
} from "../../../src/admin/commands/attention.ts";

const NOW = 1_795_000_000_000;
const DAY = 86_400_000;

const budget = (scope: string, max: number, per: Limit["per"] = "month"): Limit => ({
  scope,
  unit: "nano_usd",
  max,
  per,
});
const account = (id: string, parent: string | undefined, limits: readonly Limit[]) =>
  [id, { id, parent, limits, version: 0 }] as const;

const TREE = new AccountTree(
  new Map([
    account("acme", undefined, [budget("account:acme", 100)]),
    account("research", "acme", [budget("account:research", 100)]),
    account("sales", "acme", [
      budget("account:sales", 100),
      budget("account:sales:m", 10, "minute"),
    ]),
  ]) as never,
  [],
);
const key = (id: string, at: string | undefined, more: object = {}) => ({
  id,
  name: `name of ${id}`,
  digest: id,
  created: 1,
  account: at,
  limits: [budget(`key:${id}`, 100)],
  ...more,
});

/** Used, of 100. */
const USED: Readonly<Record<string, bigint>> = {
  "account:acme": 79n,
  "account:research": 80n,
  "account:sales": 120n,
  "account:sales:m": 10n,
  "key:k1": 95n,
  "key:k2": 96n,
  "key:gone": 100n,
};

const listing = (id: string, retires: number | undefined) => ({
  id,
  provider: id.split("/")[0],
  retires: retires === undefined ? undefined : new Date(retires).toISOString(),
});

function asking(more: Partial<AttentionOptions> = {}, status: object = {}, readings: object = {}) {
  const { attention } = createAttentionCommand({
    status: async () =>
      ({
        unmountedProviders: [],
        quarantinedHooks: [],
        unreachablePlugins: [],
        modelLists: [],
        lastReload: undefined,
        ...status,
      }) as never,
    stats: async () =>
      ({ ledger: { ok: true }, certificates: [], cooldowns: [], ...readings }) as never,
    requestStats: {
      readSeries: () => ({ totals: [{ name: "acme/old" }, { name: "acme/new" }] }) as never,
    },
    current: () =>
      ({
        gen: {
          catalog: {
            list: () => [
              listing("acme/old", NOW + 20 * DAY),
              listing("acme/new", NOW + 200 * DAY),
              listing("acme/never", NOW + DAY),
              listing("acme/aliased", NOW - DAY),
              listing("acme/plain", undefined),
            ],
          },
        },
      }) as never,
    modelNames: () => new Map([["fast", ["acme/aliased", "acme/plain"]]]),
    repository: {
      listKeys: async () => [
        key("k1", "research"),
        key("k2", undefined),
        key("gone", "research", { revoked: 5 }),
      ],
      readLimits: async (limits) =>
        limits.map((limit) => ({
          ...limit,
          used: USED[limit.scope] ?? 0n,
          held: 0n,
          resetsAt: NOW + DAY,
        })) as never,
    },
    readTree: async () => TREE,
    now: () => NOW,
    ...more,
  });
  return (input: object = {}) => attention(input as never) as Promise<Attention>;
}
const kinds = ({ items }: Attention) =>
  items.map((item) =>
    item.kind === "budget" ? item.id : item.kind === "retirement" ? item.model : item.kind,
  );

it("has budgets that are nearly spent and models that retire soon, the urgent ones first", async () => {
  const all = await asking()();
  expect(kinds(all)).toEqual(["sales", "acme/aliased", "k2", "k1", "research", "acme/old"]);
  expect(all.items[1]).toMatchObject({ names: ["fast"], isUsed: false, severity: "bad" });
  expect(all.items[3]).toMatchObject({ subject: "key", name: "name of k1", used: 95n, max: 100 });
  expect(all).toMatchObject({ omitted: 0, uncheckedLimits: 0 });
});

it("has problems of the gateway", async () => {
  const all = await asking(
    {
      repository: { listKeys: async () => [], readLimits: async () => [] },
      modelNames: () => new Map(),
    },
    {
      lastReload: {
        ok: false,
        at: NOW - 5,
        problems: [{ file: "gateway.yaml", line: 3, message: "unknown key" }],
      },
      unmountedProviders: [{ provider: "spare", reason: "SPARE_KEY is not set" }],
      quarantinedHooks: [
        { plugin: "middleware.guard", hook: "edit", reason: "threw", until: NOW + 1 },
      ],
      modelLists: [
        { provider: "acme", credential: "main", failures: 2, lastError: { message: "401" } },
        { provider: "acme", credential: "spare", failures: 0 },
      ],
    },
    {
      ledger: { ok: false, reason: "disk full" },
      certificates: [
        { listener: "listen.tls", expiresAt: NOW + 3 * DAY },
        { listener: "admin.tls", expiresAt: NOW + 20 * DAY },
        { listener: "listen.tls.client_certificates", expiresAt: NOW + 90 * DAY },
      ],
      cooldowns: [
        {
          provider: "acme",
          credential: "main",
          reason: "overloaded",
          until: NOW + 9,
          state: "open",
        },
        {
          provider: "acme",
          credential: "next",
          reason: "overloaded",
          until: 0,
          state: "recovering",
        },
      ],
    },
  )();
  expect(kinds(all)).toEqual([
    "ledger",
    "reload",
    "certificate",
    "cooldown",
    "plugin",
    "certificate",
    "list",
    "acme/old",
    "unmounted",
  ]);
  expect(all.items[1]).toMatchObject({ problems: 1, first: "gateway.yaml:3: unknown key" });
});

it("has budgets of one account and those nested below it, and nothing of the gateway", async () => {
  const broken = { ledger: { ok: false, reason: "disk full" } };
  const own = await asking({}, {}, broken)({ account: "research" });
  expect(kinds(own)).toEqual(["acme/aliased", "k1", "research", "acme/old"]);
  const sales = await asking({}, {}, broken)({ account: "sales" });
  expect(kinds(sales)).toEqual(["sales", "acme/aliased", "acme/old"]);
});

it("limits the number of examined limits and of items", async () => {
  const keys = Array.from({ length: 12_000 }, (_, i) => key(`k${i}`, undefined));
  const counted: number[] = [];
  const all = await asking({
    repository: {
      listKeys: async () => keys,
      readLimits: async (limits) => {
        counted.push(limits.length);
        return limits.map((limit) => ({ ...limit, used: 100n, held: 0n, resetsAt: NOW })) as never;
      },
    },
  })();
  expect(counted).toEqual([10_000]);
  expect(all.items).toHaveLength(100);
  expect(all.omitted).toBeGreaterThan(9_000);
  expect(all.uncheckedLimits).toBe(2_003);
});

it("has prices that wait for approval, and a price document that was not accepted", async () => {
  const feed = (priceFeed: object) => asking({}, { priceFeed })();
  const found = async (priceFeed: object) =>
    (await feed(priceFeed)).items.find(({ kind }) => kind === "prices");
  expect(await found({ held: 2 })).toEqual({ kind: "prices", severity: "warn", held: 2 });
  expect(await found({ held: 0, lastError: "forged" })).toMatchObject({
    held: 0,
    reason: "forged",
  });
  expect(await found({ held: 0 })).toBeUndefined();
});
