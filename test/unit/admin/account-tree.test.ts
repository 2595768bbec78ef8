// The account tree compared with a model, command by command: created, moved, changed, and closed
// during open calls, with two processes and both stores. Each result, number, and row equals the
// model's.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import * as fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Reserve, Store } from "tollgate/plugin";
import type { AccountConfig } from "../../../src/config/gateway-config.ts";
import {
  accountCommands,
  type ShownAccount,
} from "../../../src/admin/commands/account-commands.ts";
import { createRepositoryReads } from "../../../src/admin/access/key-repository.ts";
import { AccountCache } from "../../../src/runtime/services/account-cache.ts";
import { getFault } from "../../../src/model/error.ts";
import type { JsonObject } from "../../../src/model/values.ts";
import { Accounts } from "../../../src/pipeline/accounts/accounts.ts";
import { makeMemory, makeSqlite } from "../../plugins/stores/stores-under-test.ts";

/** In its simplest form. */
interface Node {
  parent: string | undefined;
  max: bigint | undefined;
  ended: boolean;
  version: number;
  spent: bigint;
  held: bigint;
}
interface OpenCall {
  attempt: string;
  path: string;
  taken: string[];
  hold: bigint;
}
class Model {
  nodes = new Map<string, Node>();
  open: OpenCall[] = [];
  rows: [path: string, cost: bigint][] = [];

  path(id: string | undefined): string[] {
    const path: string[] = [];
    for (let at = id; at !== undefined; at = this.nodes.get(at)!.parent) path.unshift(at);
    return path;
  }
  within(id: string): string[] {
    return [...this.nodes.keys()].filter((each) => this.path(each).includes(id));
  }
  closed(id: string): boolean {
    return this.path(id).some((each) => this.nodes.get(each)!.ended);
  }
  /** Reason why it cannot be nested there. */
  refusal(id: string, parent: string | undefined): string | undefined {
    if (parent === undefined) return undefined;
    if (!this.nodes.has(parent)) return "unknown_account";
    if (this.closed(parent)) return "account_closed";
    if (this.path(parent).includes(id)) return "account_cycle";
    const below = this.nodes.has(id)
      ? Math.max(...this.within(id).map((each) => this.path(each).length))
      : 0;
    const height = this.nodes.has(id) ? below - this.path(id).length + 1 : 1;
    return this.path(parent).length + height > 16 ? "account_too_deep" : undefined;
  }
}

interface Real {
  store: Store;
  processes: readonly Accounts[];
  ask(command: string, input: JsonObject): Promise<unknown>;
  attempts: number;
}

const FILE = new Map<string, AccountConfig>([
  [
    "house",
    {
      id: "house",
      parent: undefined,
      name: undefined,
      limits: [{ scope: "account:house", unit: "nano_usd", max: 400n, per: "total" }],
      models: undefined,
      frontends: undefined,
      privacy: undefined,
      labels: {},
    },
  ],
]);
const newModel = () => {
  const model = new Model();
  const house = { parent: undefined, max: 400n, ended: false, version: 0, spent: 0n, held: 0n };
  model.nodes.set("house", house);
  return model;
};

async function newReal(store: Store): Promise<Real> {
  const known = [new AccountCache(), new AccountCache()];
  for (const each of known) await each.load(store);
  const commands = accountCommands(
    {
      ...createRepositoryReads(store, Date.now),
      writeKey: async () => {},
      writeOpening: async () => {},
      async writeAccount(account) {
        await store.apply([{ do: "account", at: Date.now(), account }]);
        for (const each of known) each.put(structuredClone(account));
      },
    },
    () => ({
      hasModel: () => true,
      hasFrontend: () => true,
      fileAccounts: FILE,
      locationOf: () => "gateway.yaml:3",
      keyDefaults: undefined,
    }),
  );
  return {
    store,
    processes: known.map((each) => new Accounts(FILE, each)),
    ask: (command, input) => (commands as any)[command](input),
    attempts: 0,
  };
}

const codeOf = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => undefined,
    (error: unknown) => getFault(error)?.code ?? String(error),
  );

type Run = (model: Model, real: Real) => Promise<void>;
const command = (said: string, run: Run): fc.AsyncCommand<Model, Real> => ({
  check: () => true,
  run,
  toString: () => said,
});

const IDS = ["a", "b", "c", "d", "e"];
const some = fc.constantFrom(...IDS, "house");
const parent = fc.option(some, { nil: undefined });
const max = fc.option(fc.bigInt(0n, 200n), { nil: undefined });
const limits = (id: string, most: bigint | undefined) =>
  most === undefined ? [] : [formatLimit({ unit: "nano_usd", max: most, per: "total" })];

const create = fc.tuple(some, parent, max).map(([id, under, most]) =>
  command(`create ${id} in ${under} ${most}`, async (model, real) => {
    const expected =
      id === "house"
        ? "account_in_file"
        : model.nodes.has(id)
          ? "account_exists"
          : model.refusal(id, under);
    const input = { id, limits: limits(id, most), ...(under !== undefined && { parent: under }) };
    expect(await codeOf(real.ask("accounts.create", input))).toBe(expected);
    if (expected === undefined)
      model.nodes.set(id, {
        parent: under,
        max: most,
        ended: false,
        version: 1,
        spent: 0n,
        held: 0n,
      });
  }),
);
const change = (id: string, model: Model): string | undefined =>
  id === "house" ? "account_in_file" : model.nodes.has(id) ? undefined : "no_such_account";

const move = fc.tuple(some, parent).map(([id, under]) =>
  command(`move ${id} to ${under}`, async (model, real) => {
    const node = model.nodes.get(id);
    const expected =
      change(id, model) ?? (node!.parent === under ? undefined : model.refusal(id, under));
    const input = { id, parent: under ?? null };
    expect(await codeOf(real.ask("accounts.update", input))).toBe(expected);
    if (expected !== undefined) return;
    node!.parent = under;
    node!.version++;
  }),
);
const resize = fc.tuple(some, max, fc.integer({ min: -1, max: 1 })).map(([id, most, off]) =>
  command(`limit ${id} ${most} at version ${off}`, async (model, real) => {
    const node = model.nodes.get(id);
    const expected = change(id, model) ?? (off === 0 ? undefined : "version_conflict");
    const input = {
      id,
      limits: limits(id, most),
      version: Math.max(0, (node?.version ?? 1) + off),
    };
    expect(await codeOf(real.ask("accounts.update", input))).toBe(expected);
    if (expected !== undefined) return;
    node!.max = most;
    node!.version++;
  }),
);
const end = some.map((id) =>
  command(`end ${id}`, async (model, real) => {
    const expected = change(id, model);
    expect(await codeOf(real.ask("accounts.close", { id }))).toBe(expected);
    const node = model.nodes.get(id)!;
    if (expected !== undefined || node.ended) return;
    node.ended = true;
    node.version++;
  }),
);
const begin = fc.tuple(some, fc.nat(1), fc.bigInt(1n, 60n)).map(([id, process, hold]) =>
  command(`call of ${id} holds ${hold}`, async (model, real) => {
    const branch = async () => real.processes[process]!.resolve(id);
    const closed = !model.nodes.has(id)
      ? "unknown_account"
      : model.closed(id)
        ? "account_closed"
        : undefined;
    expect(await codeOf(branch())).toBe(closed);
    if (closed !== undefined) return;
    const { path, limits: of } = await branch();
    expect(path).toBe(model.path(id).join("/"));
    const attempt = `t${real.attempts++}`;
    const reserve: Reserve & { at: number } = {
      do: "reserve",
      at: Date.now(),
      attempt,
      request: attempt,
      number: 1,
      key: "k",
      target: { provider: "p", model: "m", protocol: null, credential: "c" },
      privacy: "off",
      labels: {},
      account: path,
      claims: of.map((limit) => ({ ...limit, take: hold })),
      holdNano: hold,
      price: null,
    };
    const taken = model.path(id).filter((each) => model.nodes.get(each)!.max !== undefined);
    const full = taken.filter((each) => {
      const { spent, held, max: most } = model.nodes.get(each)!;
      return spent + held + hold > most!;
    });
    const [verdict] = await real.store.apply([reserve]);
    expect(verdict!.ok).toBe(full.length === 0);
    if (!verdict!.ok)
      return void expect(full).toContain(verdict!.denied.scope.slice("account:".length));
    for (const each of taken) model.nodes.get(each)!.held += hold;
    model.open.push({ attempt, path, taken, hold });
  }),
);
const finish = fc.tuple(fc.nat(), fc.bigInt(0n, 100n)).map(([which, percent]) =>
  command(`one of the open ends at ${percent} %`, async (model, real) => {
    const [call] = model.open.splice(which % (model.open.length || 1), 1);
    if (!call) return;
    const costNano = (call.hold * percent) / 100n;
    const { attempt } = call;
    await real.store.apply([
      { do: "settle", at: Date.now(), attempt, state: "exact", usage: {}, costNano, outcome: "ok" },
    ]);
    for (const each of call.taken) {
      const node = model.nodes.get(each)!;
      node.held -= call.hold;
      node.spent += costNano;
    }
    model.rows.push([call.path, costNano]);
  }),
);
const look = fc.constant(
  command("look", async (model, real) => {
    const { accounts } = (await real.ask("accounts.list", { closed: true })) as {
      accounts: readonly ShownAccount[];
    };
    expect(new Map(accounts.map((each) => [each.id, each.path]))).toEqual(
      new Map([...model.nodes.keys()].map((id) => [id, model.path(id).join("/")])),
    );
    for (const { id, state, version, limitUsage } of accounts) {
      const { max: most, spent, held, version: at } = model.nodes.get(id)!;
      expect([state, version]).toEqual([model.closed(id) ? "closed" : "valid", at]);
      if (most === undefined) expect(limitUsage).toBeUndefined();
      else {
        const left = most - spent - held;
        const of = limitUsage!.map((each) => [each.used, each.reserved, BigInt(each.remaining)]);
        expect(of).toEqual([[spent, held, left > 0n ? left : 0n]]);
      }
    }
    const sums = new Map<string, bigint>();
    for (const [path, cost] of model.rows)
      for (let at = path; at !== ""; at = at.includes("/") ? at.slice(0, at.lastIndexOf("/")) : "")
        sums.set(at, (sums.get(at) ?? 0n) + cost);
    const totals = await real.store.sumEntries({ by: ["account"] });
    expect(new Map(totals.map(({ by, costNano }) => [by["account"]!, costNano]))).toEqual(sums);
  }),
);

const stores = [
  ["memory", makeMemory, 30],
  ["sqlite", () => makeSqlite({ durability: "process" }), 2],
] as const;

describe.each(stores)("on the %s store", (_name, make, numRuns) => {
  it("equals its model, whatever is moved, changed, or revoked while calls are open", async () => {
    const made: { dispose(): Promise<void> }[] = [];
    onTestFinished(async () => void (await Promise.all(made.map((each) => each.dispose()))));
    await fc.assert(
      fc.asyncProperty(
        fc.commands(
          [
            create,
            create,
            create,
            move,
            move,
            move,
            move,
            resize,
            end,
            begin,
            begin,
            begin,
            finish,
            look,
          ],
          {
            maxCommands: 60,
            size: "max",
          },
        ),
        async (commands) => {
          const under = await make();
          made.push(under);
          await under.store.open({ instance: "one" });
          const real = await newReal(under.store);
          await fc.asyncModelRun(
            () => ({ model: newModel(), real }),
            [...commands, command("look", (m, r) => last(m, r))],
          );
        },
      ),
      { numRuns },
    );
  });
});

/** After everything, again. */
async function last(model: Model, real: Real): Promise<void> {
  const [of] = fc.sample(look, 1);
  await of!.run(model, real);
}
