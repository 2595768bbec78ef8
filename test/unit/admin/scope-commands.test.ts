// Members are listed with the exact cost of each account, also if a key was moved between accounts.
// A value that a key or an account in use has as a label is not erased.
import * as fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { getFault } from "tollgate/plugin";
import {
  createScopeCommands,
  type ScopeDetails,
  type ScopeCommandsOptions,
} from "../../../src/admin/commands/scope-commands.ts";
import type { ScopeConfig } from "../../../src/config/gateway-config.ts";
import { nanoToDecimal } from "../../../src/money/decimal.ts";
import { Scopes } from "../../../src/pipeline/scopes/scope-table.ts";
import type { Limit } from "../../../src/plugin/store/limit.ts";
import type { ErasureRequest } from "../../../src/plugin/store/ledger-maintenance.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { makeMemory } from "../../plugins/stores/stores-under-test.ts";

const config = (within: ScopeConfig["within"]): ScopeConfig =>
  ({
    name: "team",
    from: [{ text: "label:team" }],
    within,
    labels: {},
    limits: [],
    overflow: "refuse",
    downgrade: undefined,
    maxMembers: 10,
    idleMs: 3_600_000,
    label: "text",
  }) as never;

const createCommands = (
  within: ScopeConfig["within"],
  options: Partial<ScopeCommandsOptions>,
): ReturnType<typeof createScopeCommands> =>
  createScopeCommands({
    scopes: () => new Scopes([config(within)], Buffer.alloc(32)),
    identityOf: async (id) => ({ id }),
    listKeys: async () => [],
    listAccounts: async () => [],
    accountPath: (account) => account,
    changeMember: async () => {},
    now: () => NOON,
    store: {} as never,
    erase: async () => [],
    ...options,
  });

const calls = fc.array(
  fc.record({
    value: fc.constantFrom("web", "mail"),
    key: fc.constantFrom("alice", "bob"),
    account: fc.constantFrom(undefined, "acme", "acme/web", "acme/web/ui", "acme/mail", "other"),
    costNano: fc.nat(1_000).map(BigInt),
  }),
  { maxLength: 20 },
);

describe("scopes.show", () => {
  it("lists each member with the sum of its calls", () =>
    fc.assert(
      fc.asyncProperty(calls, async (some) => {
        const { store, dispose } = await makeMemory();
        onTestFinished(async () => dispose());
        await store.open({ instance: "i" });
        const sums = new Map<string, { calls: number; costNano: bigint }>();
        for (const [i, { value, key, account, costNano }] of some.entries()) {
          const labels = { team: value };
          await store.apply([
            reserveCommand(`a${i}`, { key, account, labels, at: NOON - 1_000 }),
            settleCommand(`a${i}`, { costNano, at: NOON - 1_000 }),
          ]);
          const member = `${account === undefined ? `key ${key}` : account} ${value}`;
          const before = sums.get(member) ?? { calls: 0, costNano: 0n };
          sums.set(member, {
            calls: before.calls + 1,
            costNano: before.costNano + costNano,
          });
        }
        const commands = createCommands("account", { store });
        const { members } = (await commands["scopes.show"]({ name: "team" })) as {
          members: readonly {
            value: string;
            key?: string;
            account?: string;
            calls: number;
            costUsd: string;
          }[];
        };
        expect(
          Object.fromEntries(
            members.map(({ value, key, account, calls, costUsd }) => [
              `${account ?? `key ${key}`} ${value}`,
              [calls, costUsd],
            ]),
          ),
        ).toEqual(
          Object.fromEntries(
            [...sums].map(([member, { calls, costNano }]) => [
              member,
              [calls, nanoToDecimal(costNano)],
            ]),
          ),
        );
      }),
      { numRuns: trialCount(50) },
    ));
});

describe("the scope of a limit that is shown", () => {
  const limit = { unit: "requests", max: 3n, per: "total" } as const;
  const scopesOf = async (from: ScopeConfig["from"]) => {
    const downgrade = { model: "demo/echo", limits: [limit] };
    const own = { ...config("key"), from, limits: [limit], downgrade };
    const commands = createCommands("key", {
      scopes: () => new Scopes([own], Buffer.alloc(32)),
      store: {
        readLimits: async (limits: readonly Limit[]) =>
          limits.map((one) => ({ ...one, used: 0n, reserved: 0n })),
      } as never,
    });
    const input = { name: "team", key: "ann+web@example.com", value: "web" };
    const { limitUsage } = (await commands["scopes.show"](input)) as ScopeDetails;
    return limitUsage!.map(({ scope }) => scope);
  };

  it.each([
    ["a member", config("key").from],
    ["a scope without members", []],
  ])("of %s ends with + only after a downgrade", async (_what, from) => {
    expect(await scopesOf(from)).toEqual(["scope:team", "scope:team+"]);
  });
});

describe("scopes.erase", () => {
  const erase = async (value: string) => {
    const erased: ErasureRequest[] = [];
    const labels = { team: "web" };
    const commands = createCommands("gateway", {
      listKeys: async () => [
        { id: "alice", labels },
        { id: "bob", labels: { team: "mail" }, revoked: NOON - 1 },
        { id: "carol", labels: { team: "mail" }, expires: NOON },
        { id: "dave", labels: { other: "mail" } },
      ],
      listAccounts: async () => [
        { id: "acme", labels },
        { id: "gone", labels: { team: "mail" }, closedAt: NOON - 1 },
      ],
      erase: async (what) => (erased.push(what), []),
    });
    const result = await commands["scopes.erase"]({ name: "team", value }).catch(getFault);
    return { result, erased };
  };

  it("is rejected if a key or an account in use has the value as a label", async () => {
    const { result, erased } = await erase("web");
    expect(result).toMatchObject({ code: "bad_input", param: "value" });
    expect(String((result as { message: string }).message)).toContain("key alice, account acme.");
    expect(erased).toEqual([]);
  });

  it("erases a value that only keys and accounts have that are not in use", async () => {
    const { erased } = await erase("mail");
    expect(erased).toContainEqual({ label: { name: "team", value: "mail" } });
  });
});
