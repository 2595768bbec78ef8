import * as fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { parseLimit, sayLimit } from "../../../src/cli/limit.ts";
import { aroundOf } from "../../../src/gateway/around.ts";
import type { Around } from "../../../src/gateway/control/grants.ts";
import { keyCommands, type ShownKey } from "../../../src/gateway/control/key-commands.ts";
import { readsOf, type Shelf } from "../../../src/gateway/control/shelf.ts";
import type { ControlCommand } from "../../../src/gateway/control/socket.ts";
import { digest, parse } from "../../../src/lib/key.ts";
import { faultOf } from "../../../src/model/error.ts";
import type { JsonObject } from "../../../src/model/values.ts";
import type { Limit } from "../../../src/plugin/limit.ts";
import type { KeyRecord } from "../../../src/plugin/key.ts";
import type { PageRequest } from "../../../src/plugin/store.ts";

const HOUR = 3_600_000;
let now: number;
let records: Map<string, KeyRecord>;
let commands: Readonly<Record<string, ControlCommand>>;

beforeEach(() => {
  now = Date.UTC(2026, 10, 21);
  records = new Map();
  const list = () => [...records.values()].sort((a, b) => a.created - b.created);
  // Pages of two, so that code that forgets the next one is seen.
  const keys = async ({ after }: PageRequest = {}) => {
    const from = Number(after ?? 0);
    const items = list().slice(from, from + 2);
    return { items, next: from + 2 < records.size ? `${from + 2}` : undefined };
  };
  commands = keyCommands(
    shelf({ keys }),
    () => ANYWHERE,
    () => now,
  );
});

/** Over a store that has these readings. */
const shelf = (store: Parameters<typeof readsOf>[0]): Shelf => ({
  ...readsOf(store, () => now),
  write: async (record) => void records.set(record.digest, record),
  writeOpening: async () => {},
  writeAccount: async () => {},
});
const ANYWHERE: Around = {
  model: () => true,
  frontend: () => true,
  accounts: new Map(),
  stands: () => "gateway.yaml",
  defaults: undefined,
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
    (error: unknown) => faultOf(error)?.message,
  );

test("a new key is known by its digest, and shown without it", async () => {
  const limits = [{ unit: "requests", max: 60, per: "minute" }];
  const { secret, key } = await does<Made>("create", { name: "a", models: ["demo/*"], limits });
  expect(parse(secret)?.id).toBe(key.id);
  expect(records.get(digest(secret))).toMatchObject({
    id: key.id,
    name: "a",
    models: ["demo/*"],
    created: now,
    limits: [{ scope: `key:${key.id}`, unit: "requests", max: 60, per: "minute" }],
  });
  for (const each of ["list", "show", "revoke"])
    expect(JSON.stringify(await does(each, each === "list" ? {} : { id: key.id }))).not.toContain(
      digest(secret),
    );
});

test("all keys are listed, page after page, each as it is now", async () => {
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

test("rotation keeps the key and its grants, and gives the old secret its time", async () => {
  const first = await does<Made>("create", { name: "a", privacy: "strict", labels: { team: "x" } });
  now += HOUR;
  const second = await does<Made>("rotate", { id: "a", overlapMs: HOUR });
  expect(second.key).toMatchObject({
    id: first.key.id,
    name: "a",
    privacy: "strict",
    labels: { team: "x" },
  });
  expect(parse(second.secret)?.id).toBe(first.key.id);
  expect(records.get(digest(first.secret))?.expires).toBe(now + HOUR);
  expect(records.get(digest(second.secret))?.expires).toBeUndefined();
  await does("rotate", { id: "a", overlapMs: 100 * HOUR });
  // What was to end sooner still does.
  expect(records.get(digest(first.secret))?.expires).toBe(now + HOUR);
  await does("revoke", { id: first.key.id });
  expect([...records.values()].every(({ revoked }) => revoked === now)).toBe(true);
  expect(await fault(does("rotate", { id: "a" }))).toContain("is revoked");
});

test("a name that two keys have is not enough", async () => {
  const [a, b] = [
    await does<Made>("create", { name: "x" }),
    await does<Made>("create", { name: "x" }),
  ];
  expect(await fault(does("revoke", { id: "x" }))).toContain("Several keys");
  await does("revoke", { id: a.key.id });
  expect(records.get(digest(b.secret))?.revoked).toBeUndefined();
  expect(await fault(does("show", { id: "y" }))).toContain('There is no key "y"');
});

test.each<[string, JsonObject]>([
  ["privacy", { privacy: "very" }],
  ["a limit's unit", { limits: [{ unit: "words", max: 1, per: "day" }] }],
  ["a limit's time", { limits: [{ unit: "tokens", max: 1, per: "year" }] }],
  ["concurrent a day", { limits: [{ unit: "concurrent", max: 1, per: "day" }] }],
  ["half a request", { limits: [{ unit: "requests", max: 0.5, per: "day" }] }],
  ["no models at all", { models: [] }],
  ["a list of numbers", { frontends: [1] }],
  ["a name that is none", { name: 7 }],
  ["limits that are none", { limits: "all" }],
])("nonsense is refused, and nothing is written: %s", async (_, input) => {
  expect(await fault(does("create", input))).toBeDefined();
  expect(records.size).toBe(0);
});

test("a limit reads as it was written", () => {
  const amount = fc.bigInt(0n, 10n ** 14n);
  const usd = fc
    .tuple(amount, fc.constantFrom("minute", "day", "month", "total"))
    .map(([max, per]) => ({ unit: "nano_usd", max: Number(max), per }) as Omit<Limit, "scope">);
  const count = fc
    .tuple(
      fc.constantFrom("requests", "tokens", "input", "output", "images"),
      fc.nat(),
      fc.constantFrom("hour", "week"),
    )
    .map(([unit, max, per]) => ({ unit, max, per }) as Omit<Limit, "scope">);
  const open = fc
    .nat()
    .map((max) => ({ unit: "concurrent", max, per: "open" }) as Omit<Limit, "scope">);
  fc.assert(
    fc.property(fc.oneof(usd, count, open), (limit) => {
      expect(parseLimit(sayLimit(limit))).toEqual(limit);
    }),
  );
});

test.each([
  "usd=5",
  "usd=1.0000000001/day",
  "requests=1.5/day",
  "requests=60",
  "concurrent=4/day",
  "x=1/day",
  "tokens=-1/day",
  "tokens=1/year",
  "",
])("no limit: %j", (text) => {
  expect(() => parseLimit(text)).toThrow("--limit is like");
});

test("a name that a valid key has already, and grants that name nothing here, are warned of", async () => {
  const config = {
    providers: new Map([
      ["demo", {}],
      ["local", {}],
    ]),
    unmounted: new Map([["openai", "OPENAI_API_KEY is not set"]]),
    models: new Map([
      ["fast", {}],
      ["claude-*", {}],
    ]),
    frontends: [{ id: "frontends.messages", use: "messages" }],
    middleware: [{ id: "middleware.receipts" }],
    accounts: new Map([["research", {}]]),
  };
  const around = aroundOf(config as never, {} as never, ["demo/echo", "demo/image"]);
  const warned = keyCommands(
    shelf({ keys: async () => ({ items: [...records.values()] }) }),
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
    expect.stringContaining(`${first.key.id} is named "laptop" too`),
    'Nothing that is here matches the model "demo/ehco".',
    'Nothing that is here matches the model "opnai/*".',
    'Nothing that is here matches the model "fsat".',
    'No frontend that is here is named "mesages".',
  ]);
  for (const { key } of [first, second]) await warned["keys.revoke"]!({ id: key.id });
  expect((await create({ name: "laptop" })).warnings).toEqual([]);
});
