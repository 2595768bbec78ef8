// Results for a principal with one account are the same whether other accounts exist or not, and so
// is the work before them: neither text nor timing reveals anything about others.
import * as fc from "fast-check";
import { expect, it, onTestFinished, vi } from "vitest";
import type { JsonObject } from "tollgate/plugin";
import { getFault, type Store, type StoreCommand } from "tollgate/plugin";
import type { AccountConfig } from "../../../src/config/gateway-config.ts";
import { accountCommands } from "../../../src/admin/commands/account-commands.ts";
import { CommandAudit } from "../../../src/admin/dispatch/command-audit.ts";
import type { CommandSpec } from "../../../src/admin/schema/command-spec.ts";
import { CommandDispatcher } from "../../../src/admin/dispatch/command-dispatcher.ts";
import type { CommandPrincipal } from "../../../src/runtime/access/principal.ts";
import { createKeyCommands } from "../../../src/admin/commands/key-commands.ts";
import { createLedgerCommands } from "../../../src/admin/commands/ledger-commands.ts";
import {
  createShowCommand,
  createRequestCommands,
} from "../../../src/admin/commands/request-commands.ts";
import { RequestRing } from "../../../src/runtime/requests/request-ring.ts";
import { RequestStats } from "../../../src/runtime/requests/request-stats.ts";
import {
  createRepositoryReads,
  type KeyRepository,
} from "../../../src/admin/access/key-repository.ts";
import { COMMAND_SPECS } from "../../../src/admin/schema/command-specs.ts";
import { listAllKeys } from "../../../src/runtime/store-keys.ts";
import { jsonReplacer } from "../../../src/admin/socket/control-client.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { createRequestRecord } from "../../kit/request-record.ts";
import { turnEventLoop } from "../../kit/wait.ts";
import { makeMemory } from "../../plugins/stores/stores-under-test.ts";
import { trialCount } from "../../kit/law-effort.ts";

const GIVER: CommandPrincipal = {
  name: "admin:lead",
  role: "owner",
  account: "research",
  credentialId: "token:lead",
  channel: "token",
};

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
  },
];
const OWN = [inFile("acme"), inFile("research", "acme"), inFile("lab", "research")];
const THEIRS = [inFile("sales", "acme"), inFile("sales-east", "sales")];

const used = (n: string, key: string, account: string, words: string): StoreCommand[] => {
  const target = { provider: "demo", model: "echo", protocol: null, credential: words };
  const of = { key, account, target, labels: { team: words }, at: NOON };
  return [reserveCommand(`${n}-1`, of), settleCommand(`${n}-1`, { at: NOON })];
};
const key = (id: string, name: string, account?: string): StoreCommand => ({
  do: "key",
  at: NOON,
  key: { id, name, digest: `digest-of-${id}`, created: NOON, account },
});
const COMMANDS_OF: Readonly<Record<"own" | "theirs", readonly StoreCommand[]>> = {
  own: [
    key("kOwn", "laptop", "research"),
    key("kLab", "bench", "lab"),
    ...used("o1", "kOwn", "acme/research", "core"),
    ...used("o2", "kLab", "acme/research/lab", "web"),
  ],
  theirs: [
    key("kTheirs", "their-laptop", "sales"),
    key("kSame", "laptop", "sales"),
    key("kFree", "free"),
    ...used("t1", "kTheirs", "acme/sales", "sales-core"),
    ...used("t2", "kFree", "acme/sales/sales-east", "sales-web"),
  ],
};

const seen = (n: number, key: string | undefined, account: string | undefined) =>
  createRequestRecord({
    at: NOON + n,
    id: `seen-${n}`,
    key,
    account,
    outcome: n % 3 === 0 ? "upstream_error" : "ok",
    status: n % 3 === 0 ? 502 : 200,
  });

/** Requests in the gateway's history, and open ones. */
function liveOf(others: boolean) {
  const ring = new RequestRing(1_000, NOON);
  const stats = new RequestStats(() => NOON);
  const rows = [
    seen(1, "kTheirs", "acme/sales"),
    seen(2, "kOwn", "acme/research"),
    seen(3, "kFree", undefined),
    seen(4, "kFree", "acme/sales/sales-east"),
    seen(5, "kLab", "acme/research/lab"),
    seen(6, "kOwn", "acme/research"),
    seen(7, undefined, undefined),
  ].filter(({ account }) => others || account?.includes("research"));
  ring.add(rows);
  stats.add(rows);
  const underWay = rows.map(({ at, id, key, account, model }) => ({
    startedAt: at,
    id,
    key,
    account,
    model,
    worker: 0,
    phase: "calling",
  }));
  return {
    history: { recentRequests: ring, requestStats: stats } as never,
    stats: async () => ({ webSocketsByFrontend: {} }) as never,
    inFlightRequests: async () => underWay as never,
  };
}

/** A gateway's commands with a store, and each query to the store. */
async function world(others: boolean) {
  const { store: kept } = await makeMemory();
  await kept.open({ instance: "one" });
  await kept.apply([...COMMANDS_OF.own, ...(others ? COMMANDS_OF.theirs : [])]);
  const asked: string[] = [];
  const store = new Proxy(kept, {
    get: (of, name) => {
      const member = Reflect.get(of, name) as unknown;
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => (asked.push(String(name)), member.apply(of, args));
    },
  }) as Store;
  const accounts = new Map(others ? [...OWN, ...THEIRS] : OWN);
  const around = () => ({
    hasModel: () => true,
    hasFrontend: () => true,
    fileAccounts: accounts,
    locationOf: () => "gateway.yaml",
    keyDefaults: undefined,
  });
  const shelf: KeyRepository = {
    ...createRepositoryReads(store, () => NOON),
    writeKey: async (record) => void (await store.apply([{ do: "key", at: NOON, key: record }])),
    writeOpening: async () => {},
    writeAccount: async (account) =>
      void (await store.apply([{ do: "account", at: NOON, account }])),
  };
  const path = (id: string): string[] => {
    const at = accounts.get(id);
    return at ? [...(at.parent === undefined ? [] : path(at.parent)), id] : [id];
  };
  const gate = new CommandDispatcher({
    commands: {
      ...createLedgerCommands(
        store,
        async () => {},
        () => ({ account: [...accounts.keys()] }),
      ),
      ...createRequestCommands({ store, running: liveOf(others) }),
      // Without a running gateway it does not wait for a request that may arrive.
      ...createShowCommand({ store }),
      ...createKeyCommands(shelf, around, () => NOON),
      ...accountCommands(shelf, around, () => NOON),
    },
    pluginCommands: { find: () => undefined, all: () => [] },
    scopes: { accountPath: path, listKeys: listAllKeys(store) },
    audit: new CommandAudit({
      auditLog: undefined,
      mask: { maskText: (text) => text },
      now: () => NOON,
      log: { error() {} },
    }),
  });
  const ask = async (name: string, input: JsonObject) => {
    asked.length = 0;
    const said = await gate.dispatch(name, input, GIVER).catch((error: unknown) => {
      const fault = getFault(error);
      if (!fault) throw error;
      return { fault };
    });
    return { said: JSON.stringify(said, jsonReplacer), asked: asked.join() };
  };
  return ask;
}

/** New secrets differ each time. */
const settled = (said: string): string =>
  said.replaceAll(/"(secret|id|created)":("[^"]*"|\d+)/g, '"$1":"…"');

const NAMES = Object.entries(COMMAND_SPECS as Readonly<Record<string, CommandSpec>>)
  .filter(
    ([name, { accountScope }]) =>
      // Those of `status`, `explain`, and models concern the gateway.
      accountScope && /^(ledger|usage|keys|accounts|requests|stats)\./.test(name),
  )
  .map(([name]) => name);
const THEIR_WORDS = [
  "sales",
  "sales-east",
  "acme/sales",
  "acme",
  "kTheirs",
  "kSame",
  "kFree",
  "their-laptop",
  "free",
  "team=sales-core",
  "sales-web",
];
const OWN_WORDS = ["research", "lab", "kOwn", "laptop", "bench", "team=core", "web"];
const MEMBERS = ["account", "key", "id", "label", "credential", "model", "provider", "outcome"];

const question = (words: readonly string[]) =>
  fc.record({
    name: fc.constantFrom(...NAMES),
    said: fc.dictionary(fc.constantFrom(...MEMBERS), fc.constantFrom(...words), { maxKeys: 2 }),
    by: fc.constantFrom(undefined, ["key"], ["account"], ["label"], ["credential"]),
    after: fc.constantFrom(undefined, 0, 1, 3, 50),
    limit: fc.constantFrom(undefined, 1, 2),
    last: fc.constantFrom(undefined, 1, 2, 5),
  });
/** The members of the input that the command accepts. */
function inputOf({
  name,
  said,
  by,
  ...more
}: {
  name: string;
  said: JsonObject;
  by: readonly string[] | undefined;
  after: number | undefined;
  limit: number | undefined;
  last: number | undefined;
}) {
  const { properties = {}, required = [] } = (COMMAND_SPECS as Record<string, CommandSpec>)[name]!
    .input as { properties?: object; required?: readonly string[] };
  const input = Object.fromEntries(
    Object.entries(said).filter(([member]) => Object.hasOwn(properties, member)),
  );
  for (const member of required) input[member] ??= "kOwn";
  // A search continues with a text cursor, and the others with a number.
  for (const [member, value] of Object.entries(more))
    if (value !== undefined && Object.hasOwn(properties, member) && name !== "requests.search")
      input[member] = value;
  return name === "ledger.totals" && by ? { ...input, by: [...by] } : input;
}

it("is the same as without other accounts", async () => {
  // A search ends after some time. Here no time passes.
  vi.spyOn(performance, "now").mockReturnValue(1_000);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(NAMES).toEqual(
    expect.arrayContaining([
      "accounts.list",
      "keys.list",
      "ledger.totals",
      "usage.series",
      "requests.list",
      "requests.live",
      "requests.search",
      "requests.series",
    ]),
  );
  await fc.assert(
    fc.asyncProperty(question([...OWN_WORDS, ...THEIR_WORDS]), async (one) => {
      const [alone, among] = [await world(false), await world(true)];
      const input = inputOf(one);
      const [a, b] = [await alone(one.name, input), await among(one.name, input)];
      expect(settled(b.said)).toBe(settled(a.said));
    }),
    { numRuns: trialCount(400) },
  );
});

it("objects of others and unknown objects are rejected after the same work", async () => {
  await fc.assert(
    fc.asyncProperty(question(THEIR_WORDS), async (one) => {
      const [first, second] = [await world(true), await world(true)];
      const input = inputOf(one);
      const never = Object.fromEntries(
        Object.entries(input).map(([member, word]) => [
          member,
          THEIR_WORDS.includes(word as string) ? "never-was" : word,
        ]),
      ) as JsonObject;
      const [there, nowhere] = [await first(one.name, input), await second(one.name, never)];
      expect(there.asked).toBe(nowhere.asked);
      const words = new Set(Object.values(input).filter((word) => typeof word === "string"));
      let said = settled(there.said);
      for (const word of [...words].toSorted((a, b) => b.length - a.length))
        if (THEIR_WORDS.includes(word)) said = said.replaceAll(`\\"${word}\\"`, '\\"never-was\\"');
      expect(said).toBe(settled(nowhere.said));
    }),
    { numRuns: trialCount(400) },
  );
});

it("a wait for new requests ends with the account's own, not with those of others", async () => {
  const { store } = await makeMemory();
  const live = liveOf(false);
  const ring = (live.history as unknown as { recentRequests: RequestRing }).recentRequests;
  const list = createRequestCommands({ store, running: live })["requests.list"];
  const { next } = (await list({ account: "research" }, GIVER)) as { next: number };
  expect(next).toBe(3);
  let ended = false;
  const waiting = Promise.resolve(
    list({ account: "research", after: next, waitMs: 30_000 }, GIVER),
  );
  void waiting.finally(() => (ended = true));
  for (let n = 10; n < 20; n++) {
    ring.add([seen(n, "kTheirs", "acme/sales"), seen(n, undefined, undefined)]);
    await turnEventLoop(5);
  }
  expect(ended).toBe(false);
  ring.add([seen(30, "kLab", "acme/research/lab")]);
  expect(await waiting).toMatchObject({ items: [{ id: "seen-30" }], next: 4, missed: 0 });
});

it("a command that reads an account reads the principal's own by default", () => {
  const rows: readonly (readonly [string, CommandSpec])[] = Object.entries(COMMAND_SPECS);
  const reading = rows.filter(
    ([, of]) => !of.writes && of.accountScope?.accountMember === "account",
  );
  expect(reading.length).toBeGreaterThan(5);
  expect(reading.filter(([, of]) => !of.accountScope!.defaultsToOwn).map(([name]) => name)).toEqual(
    [],
  );
});
