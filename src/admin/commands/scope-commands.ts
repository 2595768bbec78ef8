// Commands about scopes: their limits, and the usage of members. Members with usage are found in
// the labels of ledger rows, because counters contain only hashes.
import { randomUUID } from "node:crypto";
import type { ScopeConfig } from "../../config/gateway-config.ts";
import { fail } from "../../model/error.ts";
import { nanoToDecimal } from "../../money/decimal.ts";
import type { Scopes } from "../../pipeline/scopes/scope-table.ts";
import type { Identity } from "../../plugin/identity.ts";
import { formatLimit, parseLimit, type Limit, type LimitUsage } from "../../plugin/store/limit.ts";
import type { AccountRecord, KeyRecord } from "../../plugin/store/account.ts";
import type { ErasureRequest } from "../../plugin/store/ledger-maintenance.ts";
import type { MemberChange, Store } from "../../plugin/store/store.ts";
import type { ShownLimitUsage } from "../access/grants.ts";
import { toLimitUsage } from "../access/grants.ts";
import { withInputChecks } from "../dispatch/command-input.ts";

const DAY_MS = 86_400_000;
/** Maximum number of members that are shown. */
const MAX_MEMBERS = 50;
/** Maximum number of keys and accounts that an error names. */
const MAX_NAMED = 10;
/** Maximum number of limits that are read or changed at a time. */
const LIMITS_AT_ONCE = 500;

/** A scope of gateway.yaml. */
export interface ShownScope {
  readonly name: string;
  readonly from: readonly string[];
  readonly within: ScopeConfig["within"];
  readonly limits: readonly string[];
  readonly overflow: ScopeConfig["overflow"];
  /** Model that serves requests above a limit. */
  readonly downgradeModel?: string;
  readonly maxMembers: number;
  readonly idleMs: number;
  /** How ledger rows contain the value. */
  readonly label: ScopeConfig["label"];
}

/** A member with usage in the last 24 hours. */
export interface ShownMember {
  /** Value of the member, or its hash if the scope stores hashes. */
  readonly value: string;
  /** Key within which the value is unique. */
  readonly key?: string;
  readonly keyName?: string;
  /** Account within which the value is unique. */
  readonly account?: string;
  readonly calls: number;
  readonly costUsd: string;
  /** Usage of the limits. Undefined if the member has used nothing of them, or is a hash. */
  readonly limitUsage?: readonly ShownLimitUsage[];
}

/** A scope with its members, or with the usage of one member. */
export interface ScopeDetails {
  readonly scope: ShownScope;
  readonly limitUsage?: readonly ShownLimitUsage[];
  /** Members with the highest cost in the last 24 hours. */
  readonly members?: readonly ShownMember[];
  /** Number of members with usage in the last 24 hours. */
  readonly memberCount?: number;
}

export interface ScopeCommandsOptions {
  readonly store: Pick<Store, "sumEntries" | "readLimits">;
  readonly scopes: () => Scopes;
  /**
   * Returns the identity of a key that is given by its ID or name. Keys of gateway.yaml and users of
   * an identity provider are not in the store, and given by their ID.
   */
  readonly identityOf: (key: string) => Promise<Pick<Identity, "id" | "account">>;
  readonly listKeys: () => Promise<
    readonly Pick<KeyRecord, "id" | "name" | "account" | "labels" | "expires" | "revoked">[]
  >;
  /** Returns the accounts of the store. Undefined if it keeps none. */
  readonly listAccounts: () => Promise<
    readonly Pick<AccountRecord, "id" | "labels" | "closedAt">[] | undefined
  >;
  /** Returns the path of an account, such as "acme/research". */
  readonly accountPath: (account: string) => string;
  readonly changeMember: (limits: readonly Limit[], change: MemberChange) => Promise<void>;
  /** Erases data, and returns the hashes of the erased texts. */
  readonly erase: (what: ErasureRequest) => Promise<readonly string[]>;
  readonly now: () => number;
}

/** The owner of a value, as input members describe it. */
interface OwnerInput {
  readonly key?: string | undefined;
  readonly account?: string | undefined;
}

/** A member of a scope, as input members describe it. */
interface MemberInput extends OwnerInput {
  readonly value?: string | undefined;
}

export function createScopeCommands(of: ScopeCommandsOptions) {
  const commands = new ScopeCommands(of);
  return withInputChecks({
    "scopes.list": async (): Promise<{ readonly scopes: readonly ShownScope[] }> => ({
      scopes: of.scopes().configs.map(toShownScope),
    }),
    "scopes.show": async ({ name, search, ...member }): Promise<ScopeDetails> => {
      const config = commands.find(name);
      return config.from.length > 0 && member.value === undefined
        ? { scope: toShownScope(config), ...(await commands.listMembers(config, search)) }
        : commands.showMember(config, member);
    },
    "scopes.reset": async ({ name, ...member }): Promise<ScopeDetails> => {
      const config = commands.findWithMembers(name);
      const owner = await commands.ownerOf(config, member);
      await of.changeMember(commands.limitsOf(config, owner, member.value), { type: "reset" });
      return commands.showMember(config, member);
    },
    "scopes.raise": async ({ name, by, ...member }): Promise<ScopeDetails> => {
      const config = commands.findWithMembers(name);
      await commands.raise(config, member, by);
      return commands.showMember(config, member);
    },
    "scopes.erase": async ({ name, value, ...owner }) => {
      const hashes = await commands.erase(commands.findWithMembers(name), value, owner);
      return { texts: hashes.length, hashes };
    },
  });
}

class ScopeCommands {
  readonly #of: ScopeCommandsOptions;

  constructor(of: ScopeCommandsOptions) {
    this.#of = of;
  }

  find(name: string): ScopeConfig {
    const { configs } = this.#of.scopes();
    const known = configs.map((config) => config.name).join(", ") || "none";
    return (
      configs.find((config) => config.name === name) ??
      fail("not_found", `Scope "${name}" not found. Known scopes: ${known}.`, {
        code: "no_such_scope",
      })
    );
  }

  /** Returns a scope with members. Only the usage of a member can be changed. */
  findWithMembers(name: string): ScopeConfig {
    const config = this.find(name);
    return config.from.length > 0
      ? config
      : fail(
          "invalid",
          `The scope ${name} has no members, because it has no from. Change its limits in gateway.yaml.`,
          { code: "bad_input", param: "name" },
        );
  }

  async ownerOf({ name, within }: ScopeConfig, { key, account }: OwnerInput): Promise<string> {
    if (within === "gateway") return "";
    if (within === "account" && account !== undefined)
      return `account:${this.#of.accountPath(account)}`;
    if (key !== undefined) return this.#ownerOfKey(within, await this.#of.identityOf(key));
    return fail("invalid", `A value of ${name} is unique within a ${within}. Add --${within}.`, {
      code: "bad_input",
      param: within,
    });
  }

  /** Returns the owner of the values that requests with this key contain. */
  #ownerOfKey(
    within: ScopeConfig["within"],
    { id, account }: Pick<Identity, "id" | "account">,
  ): string {
    if (within === "gateway") return "";
    return within === "account" && account !== undefined
      ? `account:${this.#of.accountPath(account)}`
      : `key:${id}`;
  }

  /** Returns the limits of a member: its own, and those of the model that it is downgraded to. */
  limitsOf(config: ScopeConfig, owner: string, value: string | undefined): readonly Limit[] {
    const scopes = this.#of.scopes();
    const scope = scopes.scopeOf(config, owner, value);
    const downgraded = scopes.scopeOf(config, `${owner}+`, value);
    return [
      ...config.limits.map((limit) => ({ scope, ...limit })),
      ...(config.downgrade?.limits ?? []).map((limit) => ({ scope: downgraded, ...limit })),
    ];
  }

  async showMember(config: ScopeConfig, member: MemberInput): Promise<ScopeDetails> {
    const owner = await this.ownerOf(config, member);
    const limits = this.limitsOf(config, owner, config.from.length > 0 ? member.value : undefined);
    const usage = await this.#readLimits(limits);
    return {
      scope: toShownScope(config),
      limitUsage: toShownUsage(config, usage),
    };
  }

  async raise(config: ScopeConfig, member: MemberInput, by: string): Promise<void> {
    const { unit, per, max: amount } = parseLimit(by)!;
    const owner = await this.ownerOf(config, member);
    const limits = this.limitsOf(config, owner, member.value);
    const limit = limits.find((each) => each.unit === unit && each.per === per);
    if (!limit)
      return fail(
        "invalid",
        `The scope ${config.name} has no limit like ${by}. Its limits: ${limits.map(formatLimit).join(", ")}.`,
        { code: "bad_input", param: "by" },
      );
    const [usage] = await this.#readLimits([limit]);
    await this.#of.changeMember([limit], {
      type: "raise",
      id: randomUUID(),
      amount: BigInt(amount),
      from: BigInt(usage?.used ?? 0),
    });
  }

  /** Erases the value from all rows, and resets the usage of the member for its owners. */
  async erase(config: ScopeConfig, value: string, owner: OwnerInput): Promise<readonly string[]> {
    const { name } = config;
    const hash = this.#of.scopes().hashOf(config, value);
    await this.#rejectLabelsInUse(name, value);
    const hashes = [
      ...(await this.#of.erase({ label: { name, value } })),
      ...(await this.#of.erase({ label: { name, value: hash } })),
    ];
    const isOfAll = owner.key === undefined && owner.account === undefined;
    const owners = isOfAll ? await this.#allOwners(config) : [await this.ownerOf(config, owner)];
    const limits = owners.flatMap((each) => this.limitsOf(config, each, value));
    for (let i = 0; i < limits.length; i += LIMITS_AT_ONCE) {
      const some = limits.slice(i, i + LIMITS_AT_ONCE);
      const usage = await this.#readLimits(some);
      const used = some.filter((_, at) => usage[at] === undefined || usage[at].used !== 0n);
      if (used.length > 0) await this.#of.changeMember(used, { type: "reset" });
    }
    return hashes;
  }

  /**
   * Throws if a key or an account that is in use has the label. The store would erase it there too,
   * and the requests of different keys would then have the same label.
   */
  async #rejectLabelsInUse(name: string, value: string): Promise<void> {
    const now = this.#of.now();
    const keys = await this.#of.listKeys();
    const accounts = (await this.#of.listAccounts()) ?? [];
    const found = [
      ...keys
        .filter(({ expires, revoked }) => revoked == null && (expires == null || expires > now))
        .filter(({ labels }) => labels?.[name] === value)
        .map(({ id }) => `key ${id}`),
      ...accounts
        .filter(({ closedAt, labels }) => closedAt == null && labels?.[name] === value)
        .map(({ id }) => `account ${id}`),
    ];
    if (found.length === 0) return;
    const more = found.length > MAX_NAMED ? `, and ${found.length - MAX_NAMED} more` : "";
    fail(
      "invalid",
      `The value is also a label of these keys and accounts, which are in use: ${found.slice(0, MAX_NAMED).join(", ")}${more}. Change their label ${name}, revoke the keys, or close the accounts first.`,
      { code: "bad_input", param: "value" },
    );
  }

  async #allOwners({ within }: ScopeConfig): Promise<readonly string[]> {
    if (within === "gateway") return [""];
    const keys = await this.#of.listKeys();
    return [...new Set(keys.map((key) => this.#ownerOfKey(within, key)))];
  }

  /** Returns the members with usage in the last 24 hours, the most expensive first. */
  async listMembers(
    config: ScopeConfig,
    search = "",
  ): Promise<Pick<ScopeDetails, "members" | "memberCount">> {
    const names = new Map((await this.#of.listKeys()).map(({ id, name }) => [id, name]));
    const found = new Map<string, FoundMember>();
    for (const { value, id, account, calls, costNano } of await this.#readTotals(config)) {
      if (!value.includes(search)) continue;
      // The path of an account is complete in rows.
      const isOfAccount = config.within === "account" && account !== "";
      const owner = isOfAccount ? `account:${account}` : this.#ownerOfKey(config.within, { id });
      const name = JSON.stringify([owner, value]);
      const before = found.get(name);
      found.set(name, {
        owner,
        value,
        key: { id, name: names.get(id) },
        calls: calls + (before?.calls ?? 0),
        costNano: costNano + (before?.costNano ?? 0n),
      });
    }
    const shown = [...found.values()]
      .toSorted((a, b) => (a.costNano < b.costNano ? 1 : a.costNano > b.costNano ? -1 : 0))
      .slice(0, MAX_MEMBERS);
    const limits = shown.map(({ owner, value }) => this.limitsOf(config, owner, value));
    const usage = await this.#readLimits(limits.flat());
    const perMember = limits[0]?.length ?? 0;
    return {
      members: shown.map((member, i) =>
        toShownMember(config, member, usage.slice(i * perMember, (i + 1) * perMember)),
      ),
      memberCount: found.size,
    };
  }

  /** Returns the sums of the last 24 hours by value, key, and account of the calls. */
  async #readTotals({ name, within }: ScopeConfig): Promise<readonly ValueTotal[]> {
    const prefix = `${name}=`;
    const totals = await this.#of.store.sumEntries({
      by: ["label", "key", ...(within === "account" ? (["account"] as const) : [])],
      from: this.#of.now() - DAY_MS,
    });
    const found = new Map<string, ValueTotal>();
    for (const { by, calls, costNano } of totals) {
      const { label = "", key: id = "", account = "" } = by as Readonly<Record<string, string>>;
      if (!label.startsWith(prefix)) continue;
      const value = label.slice(prefix.length);
      found.set(JSON.stringify([value, id, account]), { value, id, account, calls, costNano });
    }
    return withoutNested(found);
  }

  async #readLimits(limits: readonly Limit[]): Promise<readonly LimitUsage[]> {
    if (limits.length === 0) return [];
    return (await this.#of.store.readLimits?.(limits, this.#of.now())) ?? [];
  }
}

/** Sum of the calls of one value, key, and account. */
interface ValueTotal {
  readonly value: string;
  /** ID of the key. */
  readonly id: string;
  /** Path of the account, or an empty text. */
  readonly account: string;
  readonly calls: number;
  readonly costNano: bigint;
}

/**
 * Returns the sums of the accounts themselves. A call is counted under each parent of its account
 * too, and a key that was moved has calls of several accounts.
 */
function withoutNested(totals: ReadonlyMap<string, ValueTotal>): readonly ValueTotal[] {
  const own = new Map<string, ValueTotal>(totals);
  for (const { value, id, account, calls, costNano } of totals.values()) {
    const end = account.lastIndexOf("/");
    const name = JSON.stringify([value, id, account.slice(0, end)]);
    const parent = end < 0 ? undefined : own.get(name);
    if (parent)
      own.set(name, {
        ...parent,
        calls: parent.calls - calls,
        costNano: parent.costNano - costNano,
      });
  }
  return [...own.values()].filter(({ calls }) => calls > 0);
}

interface FoundMember {
  readonly owner: string;
  readonly value: string;
  readonly key: { readonly id: string; readonly name?: string | undefined };
  readonly calls: number;
  readonly costNano: bigint;
}

function toShownMember(
  config: ScopeConfig,
  { owner, value, key, calls, costNano }: FoundMember,
  usage: readonly LimitUsage[],
): ShownMember {
  return {
    value,
    ...(owner.startsWith("key:") && {
      key: key.id,
      ...(key.name !== undefined && { keyName: key.name }),
    }),
    ...(owner.startsWith("account:") && { account: owner.slice("account:".length) }),
    calls,
    costUsd: nanoToDecimal(costNano),
    ...(usage.some(({ used, reserved }) => used !== 0n || reserved !== 0n) && {
      limitUsage: toShownUsage(config, usage),
    }),
  };
}

/**
 * Returns the usage of a member's limits without its hash. The limits after a downgrade follow the
 * others, and are marked with +. A member that was raised may have used less than 0.
 */
const toShownUsage = (
  { name, limits }: ScopeConfig,
  usage: readonly LimitUsage[],
): readonly ShownLimitUsage[] =>
  usage.map((one, i) =>
    toLimitUsage({
      ...one,
      scope: `scope:${name}${i < limits.length ? "" : "+"}`,
      used: one.used < 0n ? 0n : one.used,
    }),
  );

const toShownScope = (config: ScopeConfig): ShownScope => ({
  name: config.name,
  from: config.from.map(({ text }) => text),
  within: config.within,
  limits: config.limits.map(formatLimit),
  overflow: config.overflow,
  ...(config.downgrade && { downgradeModel: config.downgrade.model }),
  maxMembers: config.maxMembers,
  idleMs: config.idleMs,
  label: config.label,
});
