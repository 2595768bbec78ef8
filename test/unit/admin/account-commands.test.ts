// Accounts and keys by command: rejections and their messages, defaults of new keys, and precedence
// of the file over the store.
import { beforeEach, expect, it } from "vitest";
import type { JsonObject } from "tollgate/plugin";
import type { AccountConfig } from "../../../src/config/gateway-config.ts";
import {
  accountCommands,
  type ShownAccount,
} from "../../../src/admin/commands/account-commands.ts";
import type { GrantTargets } from "../../../src/admin/access/grants.ts";
import { createKeyCommands, type ShownKey } from "../../../src/admin/commands/key-commands.ts";
import {
  createRepositoryReads,
  type KeyRepository,
} from "../../../src/admin/access/key-repository.ts";
import { digestKey } from "../../../src/lib/api-key.ts";
import { getFault } from "../../../src/model/error.ts";
import type { Store } from "../../../src/plugin/store/store.ts";
import { makeMemory } from "../../plugins/stores/stores-under-test.ts";

const inFile = (id: string, parent?: string): [string, AccountConfig] => [
  id,
  {
    id,
    parent,
    name: undefined,
    limits: [],
    models: undefined,
    frontends: undefined,
    privacy: undefined,
    labels: {},
    defaults: { limits: [{ unit: "requests", max: 60, per: "minute" }] },
  },
];
const around: GrantTargets = {
  hasModel: (pattern) => pattern.startsWith("demo/"),
  hasFrontend: () => true,
  fileAccounts: new Map([inFile("house"), inFile("wing", "house")]),
  locationOf: (id) => `gateway.yaml:${id === "house" ? 3 : 4}`,
  keyDefaults: { limits: [{ unit: "nano_usd", max: 5n, per: "month" }] },
};

let store: Store;
let told: string[];
const now = Date.UTC(2026, 10, 22);

const shelf = (of: Store): KeyRepository => ({
  ...createRepositoryReads(of, () => now),
  writeKey: async (key) => void (await of.apply([{ do: "key", at: now, key }])),
  writeOpening: async () => {},
  writeAccount: async (account) => void (await of.apply([{ do: "account", at: now, account }])),
  onChanged: ({ type, change }, id) => void told.push(`${type} ${change} ${id}`),
});
const ask = async <T>(command: string, input: JsonObject, of = store) => {
  const on = shelf(of);
  const commands = {
    ...createKeyCommands(
      on,
      () => around,
      () => now,
    ),
    ...accountCommands(
      on,
      () => around,
      () => now,
    ),
  };
  return (await commands[command as "keys.list"](input)) as T;
};
const refusal = (command: string, input: JsonObject, of = store) =>
  ask(command, input, of).then(
    () => undefined,
    (error: unknown) => {
      const { kind, code, message } = getFault(error)!;
      return [kind, code, message];
    },
  );
const account = async (command: string, input: JsonObject) =>
  (await ask<{ account: ShownAccount }>(`accounts.${command}`, input)).account;
const keyOf = async (command: string, input: JsonObject) =>
  (await ask<{ key: ShownKey; secret: string }>(`keys.${command}`, input)).key;

beforeEach(async () => {
  told = [];
  ({ store } = await makeMemory());
  await store.open({ instance: "one" });
});

it("an account is created inside one of the file, changed, moved, and revoked, each with its version, and observers are notified", async () => {
  const limits = ["usd=0.0000001/month"];
  expect(
    await account("create", { id: "web", parent: "wing", limits, models: ["demo/*"] }),
  ).toMatchObject({
    path: "house/wing/web",
    state: "valid",
    version: 1,
    limits,
    limitUsage: [
      {
        scope: "account:web",
        limit: limits[0],
        unit: "nano_usd",
        max: 100,
        remaining: 100,
        used: 0n,
        reserved: 0n,
      },
    ],
  });
  expect(await account("update", { id: "web", name: "Web", version: 1 })).toMatchObject({
    version: 2,
    models: ["demo/*"],
    name: "Web",
  });
  const { path, models } = await account("update", { id: "web", parent: null, models: null });
  expect([path, models]).toEqual(["web", undefined]);
  expect(await account("close", { id: "web" })).toMatchObject({ state: "closed", version: 4 });
  // A repetition changes nothing.
  expect(await account("close", { id: "web" })).toMatchObject({ version: 4, closedAt: now });
  expect(told).toEqual([
    "account created web",
    "account updated web",
    "account moved web",
    "account closed web",
  ]);
  expect(
    (await ask<{ accounts: ShownAccount[] }>("accounts.list", {})).accounts.map(
      ({ id, definedAt }) => [id, definedAt],
    ),
  ).toEqual([
    ["house", "gateway.yaml:3"],
    ["wing", "gateway.yaml:4"],
  ]);
});

it("an impossible change is rejected by name", async () => {
  // With house and wing these are sixteen.
  const deep = Array.from(
    { length: 11 },
    (_, i) => [`d${i}`, i === 0 ? "b" : `d${i - 1}`] as const,
  );
  for (const [id, parent] of [
    ["a", "wing"],
    ["b", "a"],
    ...deep,
    ["last", "d10"],
    ["x", undefined],
    ["y", "x"],
  ] as const)
    await account("create", { id, ...(parent && { parent }) });
  const said = async (command: string, input: JsonObject) =>
    (await refusal(command, input))!.slice(1).join(": ");
  expect(await said("accounts.create", { id: "c", parent: "last" })).toMatch(
    /account_too_deep: Nesting c under house\/wing\/a\/b\/d0\/.*\/last would make 17 levels/,
  );
  // A tree is as deep as its deepest account.
  expect(await said("accounts.update", { id: "x", parent: "d10" })).toMatch(
    /account_too_deep: Nesting x under house\/.*\/d10 would make 17/,
  );
  expect(await said("accounts.update", { id: "a", parent: "b" })).toMatch(
    /account_cycle: Accounts cannot be nested in a cycle: a → b → a\./,
  );
  expect(await said("accounts.create", { id: "a" })).toMatch(/account_exists/);
  expect(await said("accounts.update", { id: "house", name: "H" })).toBe(
    "account_in_file: The account house is defined in gateway.yaml:3. Change it there.",
  );
  expect(await said("accounts.close", { id: "wing" })).toMatch(/account_in_file.*gateway.yaml:4/);
  expect(await said("accounts.create", { id: "z", parent: "huose" })).toMatch(
    /unknown_account.*Did you mean "house"/,
  );
  expect(await said("accounts.show", { id: "zz" })).toMatch(/no_such_account/);
  expect(await said("accounts.create", { id: "Z/1" })).toMatch(/bad_input.*lowercase/);
  expect(
    await said("accounts.create", {
      id: "z",
      limits: ["concurrent=1/day"],
    }),
  ).toMatch(/bad_input/);
  expect(await said("accounts.update", { id: "b", name: "B", version: 7 })).toMatch(
    /version_conflict.*is now at version 1/,
  );
  await account("close", { id: "a" });
  expect(await said("accounts.create", { id: "z", parent: "b" })).toMatch(/account_closed/);
  expect(await said("keys.create", { account: "b" })).toMatch(/account_closed/);
  expect(await said("accounts.create", { id: "a" })).toMatch(/account_exists.*another ID/);
});

it("a store without accounts reports so, and lists those of the file", async () => {
  const plain: Store = {
    ...store,
    listAccounts: undefined as never,
    readLimits: undefined as never,
  };
  expect(await refusal("accounts.create", { id: "a" }, plain)).toEqual([
    "unsupported",
    "no_accounts",
    "This store does not support accounts. Define them under accounts in gateway.yaml.",
  ]);
  const { accounts } = await ask<{ accounts: ShownAccount[] }>("accounts.list", {}, plain);
  expect(accounts.map(({ id, limitUsage }) => [id, limitUsage])).toEqual([
    ["house", undefined],
    ["wing", undefined],
  ]);
});

it("a new key gets missing limits from its nearest account", async () => {
  expect((await keyOf("create", {})).limits).toEqual(["usd=0.000000005/month"]);
  expect((await keyOf("create", { account: "wing" })).limits).toEqual([
    "requests=60/minute",
    "usd=0.000000005/month",
  ]);
  await account("create", {
    id: "web",
    parent: "wing",
    defaults: { limits: ["usd=0.000000009/day"] },
  });
  expect((await keyOf("create", { account: "web" })).limits).toEqual([
    "usd=0.000000009/day",
    "requests=60/minute",
  ]);
  const limits = ["requests=1/day"];
  expect((await keyOf("create", { account: "web", limits })).limits).toEqual([
    "requests=1/day",
    "usd=0.000000009/day",
  ]);
  expect((await keyOf("create", { account: "web", defaults: false })).limits).toBeUndefined();
});

it("a key is changed without a new secret: omitted fields stay, null removes", async () => {
  const made = await ask<{ key: ShownKey; secret: string }>("keys.create", {
    name: "a",
    models: ["demo/*"],
    labels: { team: "x" },
    defaults: false,
  });
  const { id } = made.key;
  const limits = ["requests=3/day"];
  const { keys: [changed] = [], warnings } = await ask<{ keys: ShownKey[]; warnings: string[] }>(
    "keys.update",
    { id, limits, labels: null, models: ["nowhere/*"], version: 1 },
  );
  expect(changed).toMatchObject({
    id,
    name: "a",
    version: 2,
    limits,
  });
  expect([changed!.labels, warnings.length]).toEqual([undefined, 1]);
  expect(await store.findKey(digestKey(made.secret))).toMatchObject({
    models: ["nowhere/*"],
    version: 2,
  });
  await ask("keys.update", { id, limits: [], account: "wing" });
  expect(await store.findKey(digestKey(made.secret))).toMatchObject({
    limits: undefined,
    account: "wing",
    version: 3,
  });
  expect(await refusal("keys.update", { id, name: "b", version: 2 })).toEqual([
    "conflict",
    "version_conflict",
    expect.stringContaining("version 3"),
  ]);
  for (const [command, more] of [
    ["revoke", {}],
    ["move", {}],
    ["rotate", {}],
  ] as const)
    expect((await refusal(`keys.${command}`, { id, version: 1, ...more }))?.[1]).toBe(
      "version_conflict",
    );
  expect(told).toEqual([`key created ${id}`, `key updated ${id}`, `key moved ${id}`]);
});

it("a change of a rotated key applies to both secrets, and does not extend the old one", async () => {
  const first = await ask<{ key: ShownKey; secret: string }>("keys.create", { defaults: false });
  const { id } = first.key;
  const { secret } = await ask<{ secret: string }>("keys.rotate", { id, overlapMs: 1_000 });
  const limits = ["requests=3/day"];
  await ask("keys.update", { id, limits, expires: now + 9_000_000 });
  const [old, fresh] = await Promise.all(
    [first.secret, secret].map((each) => store.findKey(digestKey(each))),
  );
  expect([old!.expires, fresh!.expires]).toEqual([now + 1_000, now + 9_000_000]);
  expect(old!.limits).toEqual(fresh!.limits);
});

it("keys of another gateway are imported by their hashes, once", async () => {
  const keys = [
    { digest: digestKey("sk-theirs"), name: "theirs", account: "wing" },
    { digest: digestKey("sk-other"), revoked: true },
    { digest: digestKey("sk-theirs") },
  ];
  const first = await ask<{ keys: ShownKey[]; existing: number }>("keys.import", { keys });
  expect([first.keys.map(({ name, state }) => [name, state]), first.existing]).toEqual([
    [
      ["theirs", "valid"],
      [undefined, "revoked"],
    ],
    1,
  ]);
  expect(JSON.stringify(first)).not.toContain(digestKey("sk-theirs"));
  expect(await store.findKey(digestKey("sk-theirs"))).toMatchObject({
    account: "wing",
    limits: undefined,
  });
  expect(await ask("keys.import", { keys })).toMatchObject({ keys: [], existing: 3 });
  expect((await refusal("keys.import", { keys: [{ digest: "sk-theirs" }] }))?.[1]).toBe(
    "bad_input",
  );
  expect(
    (await refusal("keys.import", { keys: [{ digest: digestKey("c"), account: "nowhere" }] }))?.[1],
  ).toBe("unknown_account");
});

it("a key is shown with its own limits, and its accounts with theirs", async () => {
  const limits = ["requests=3/day"];
  await account("create", { id: "web", limits });
  const { id } = await keyOf("create", { account: "web", limits, defaults: false });
  const [listed] = (await ask<{ keys: ShownKey[] }>("keys.list", {})).keys;
  expect(listed!.limitUsage!.map(({ scope, remaining }) => [scope, remaining])).toEqual([
    [`key:${id}`, 3],
  ]);
  const [shown] = (await ask<{ keys: ShownKey[] }>("keys.show", { id })).keys;
  expect(shown!.limitUsage!.map(({ scope }) => scope)).toEqual([`key:${id}`, "account:web"]);
});
