import { beforeEach, expect, test } from "vitest";
import { createGrantTargets, type GrantTargets } from "../../../src/admin/access/grants.ts";
import { createKeyCommands, type ShownKey } from "../../../src/admin/commands/key-commands.ts";
import {
  createRepositoryReads,
  type KeyRepository,
} from "../../../src/admin/access/key-repository.ts";
import type { CommandHandler } from "../../../src/admin/socket/control-socket.ts";
import { digestKey, parseKey } from "../../../src/lib/api-key.ts";
import { getFault } from "../../../src/model/error.ts";
import type { JsonObject } from "../../../src/model/values.ts";
import type { KeyRecord } from "../../../src/plugin/store/account.ts";
import type { PageRequest } from "../../../src/plugin/store/store.ts";

const HOUR = 3_600_000;
let now: number;
let records: Map<string, KeyRecord>;
let commands: Readonly<Record<string, CommandHandler>>;

beforeEach(() => {
  now = Date.UTC(2026, 10, 21);
  records = new Map();
  const list = () => [...records.values()].sort((a, b) => a.created - b.created);
  // Pages of two, so that code without paging fails.
  const keys = async ({ after }: PageRequest = {}) => {
    const from = Number(after ?? 0);
    const items = list().slice(from, from + 2);
    return { items, next: from + 2 < records.size ? `${from + 2}` : undefined };
  };
  commands = createKeyCommands(
    shelf({ listKeys: keys }),
    () => ANYWHERE,
    () => now,
  );
});

/** On a store with these results. */
const shelf = (store: Parameters<typeof createRepositoryReads>[0]): KeyRepository => ({
  ...createRepositoryReads(store, () => now),
  writeKey: async (record) => void records.set(record.digest, record),
  writeOpening: async () => {},
  writeAccount: async () => {},
});
const ANYWHERE: GrantTargets = {
  hasModel: () => true,
  hasFrontend: () => true,
  fileAccounts: new Map(),
  locationOf: () => "gateway.yaml",
  keyDefaults: undefined,
};

interface Made {
  secret: string;
  key: ShownKey;
}
const does = async <T>(name: string, input: JsonObject = {}) =>
  (await commands[`keys.${name}`]!(input)) as T;
const fault = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => getFault(error)?.message,
  );

test("a new key is looked up by its digest, and shown without it", async () => {
  const limits = ["requests=60/minute"];
  const { secret, key } = await does<Made>("create", { name: "a", models: ["demo/*"], limits });
  expect(parseKey(secret)?.id).toBe(key.id);
  expect(records.get(digestKey(secret))).toMatchObject({
    id: key.id,
    name: "a",
    models: ["demo/*"],
    created: now,
    limits: [{ scope: `key:${key.id}`, unit: "requests", max: 60, per: "minute" }],
  });
  for (const each of ["list", "show", "revoke"])
    expect(JSON.stringify(await does(each, each === "list" ? {} : { id: key.id }))).not.toContain(
      digestKey(secret),
    );
});

test("all keys are listed, page by page, in their current state", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    now++;
    ids.push((await does<Made>("create", { name: `k${i}`, expires: now + (i + 1) * HOUR })).key.id);
  }
  await does("revoke", { id: "k4" });
  now += 2.5 * HOUR;
  const { keys } = await does<{ keys: ShownKey[] }>("list");
  expect(keys.map(({ id, state }) => [id, state])).toEqual(
    ids.map((id, i) => [id, i < 2 ? "expired" : i === 4 ? "revoked" : "valid"]),
  );
});

test("rotation keeps the key and its grants, and the old secret stays valid for its time", async () => {
  const first = await does<Made>("create", { name: "a", privacy: "strict", labels: { team: "x" } });
  now += HOUR;
  const second = await does<Made>("rotate", { id: "a", overlapMs: HOUR });
  expect(second.key).toMatchObject({
    id: first.key.id,
    name: "a",
    privacy: "strict",
    labels: { team: "x" },
  });
  expect(parseKey(second.secret)?.id).toBe(first.key.id);
  expect(records.get(digestKey(first.secret))?.expires).toBe(now + HOUR);
  expect(records.get(digestKey(second.secret))?.expires).toBeUndefined();
  await does("rotate", { id: "a", overlapMs: 100 * HOUR });
  // An earlier end stays.
  expect(records.get(digestKey(first.secret))?.expires).toBe(now + HOUR);
  await does("revoke", { id: first.key.id });
  expect([...records.values()].every(({ revoked }) => revoked === now)).toBe(true);
  expect(await fault(does("rotate", { id: "a" }))).toContain("is revoked");
});

test("a name that two keys have is ambiguous", async () => {
  const [a, b] = [
    await does<Made>("create", { name: "x" }),
    await does<Made>("create", { name: "x" }),
  ];
  expect(await fault(does("revoke", { id: "x" }))).toContain("Several keys");
  await does("revoke", { id: a.key.id });
  expect(records.get(digestKey(b.secret))?.revoked).toBeUndefined();
  expect(await fault(does("show", { id: "y" }))).toContain('Key "y" not found');
});

test.each<[string, JsonObject]>([
  ["privacy", { privacy: "very" }],
  ["a limit as a mapping", { limits: [{ unit: "requests", max: 1, per: "day" }] }],
  ["a limit's unit", { limits: ["words=1/day"] }],
  ["a limit's time", { limits: ["tokens=1/year"] }],
  ["concurrent a day", { limits: ["concurrent=1/day"] }],
  ["half a request", { limits: ["requests=0.5/day"] }],
  ["no models at all", { models: [] }],
  ["a list of numbers", { frontends: [1] }],
  ["a name that is none", { name: 7 }],
  ["limits that are none", { limits: "all" }],
])("an invalid change is rejected, and nothing is written: %s", async (_, input) => {
  expect(await fault(does("create", input))).toBeDefined();
  expect(records.size).toBe(0);
});

test("a stored limit is shown as it was written", async () => {
  const limits = ["usd=12.5/month", "usd=100000000/total", "requests=60/minute", "concurrent=4"];
  const { key } = await does<Made>("create", { limits });
  expect(key.limits).toEqual(limits);
  expect([...records.values()][0]!.limits!.map(({ max }) => max)).toEqual([
    12_500_000_000,
    10n ** 17n,
    60,
    4,
  ]);
});

test("a name that a valid key has, and grants that name nothing, cause a warning", async () => {
  const config = {
    providers: new Map([
      ["demo", {}],
      ["local", {}],
    ]),
    unmountedProviders: new Map([["openai", "OPENAI_API_KEY is not set"]]),
    models: new Map([
      ["fast", {}],
      ["claude-*", {}],
    ]),
    frontends: [{ id: "frontends.messages", use: "messages" }],
    middleware: [{ id: "middleware.receipts" }],
    accounts: new Map([["research", {}]]),
  };
  const around = createGrantTargets(config as never, {} as never, ["demo/echo", "demo/image"]);
  const warned = createKeyCommands(
    shelf({ listKeys: async () => ({ items: [...records.values()] }) }),
    () => around,
    () => now,
  );
  const create = async (input: JsonObject) =>
    (await warned["keys.create"]!(input)) as { warnings: string[]; key: ShownKey };
  const first = await create({
    name: "laptop",
    models: ["demo/*", "*", "fast", "claude-opus-5", "openai/gpt-6", "local/any", "*/echo"],
    frontends: ["messages", "middleware.receipts"],
  });
  expect(first.warnings).toEqual([]);
  const second = await create({
    name: "laptop",
    models: ["demo/ehco", "opnai/*", "fsat", "demo/echo"],
    frontends: ["mesages"],
  });
  expect(second.warnings).toEqual([
    expect.stringContaining(`the key ${first.key.id} is also named "laptop"`),
    'No configured model matches "demo/ehco".',
    'No configured model matches "opnai/*".',
    'No configured model matches "fsat".',
    'Frontend "mesages" is not configured.',
  ]);
  for (const { key } of [first, second]) await warned["keys.revoke"]!({ id: key.id });
  expect((await create({ name: "laptop" })).warnings).toEqual([]);
});
