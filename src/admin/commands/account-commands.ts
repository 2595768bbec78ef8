// Commands to create, list, update, move, and close accounts. Accounts of gateway.yaml are listed
// together with accounts of the store, but can only be changed in the file. The same commands work
// in a running gateway and directly on the store.
import { MAX_ACCOUNT_DEPTH } from "../../config/sections/account-config.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail, getFault } from "../../model/error.ts";
import type { AccountRecord } from "../../plugin/store/account.ts";
import { AccountTree, type TreeAccount } from "../access/account-tree.ts";
import {
  type GrantTargets,
  mergeConverted,
  toLabels,
  toScopedLimits,
  parseLimits,
  assertVersion,
  assertAccountExists,
  mergeValue,
  type ShownLimitUsage,
  toLimitUsage,
  shownLimits,
  unknownGrantWarnings,
} from "../access/grants.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import type { KeyRepository } from "../access/key-repository.ts";
import type { InputOf } from "../schema/command-specs.ts";

/** An account as commands return it. Times are in Unix milliseconds. */
export interface ShownAccount extends Omit<TreeAccount, "limits" | "defaults"> {
  /** Limits as texts: "usd=5/month". */
  readonly limits?: readonly string[];
  readonly defaults?: { readonly limits: readonly string[] };
  /** Path from the outermost account: "acme/research". */
  readonly path: string;
  /**
   * State of the account. `broken`: its parent does not exist, so all requests of its keys are
   * rejected.
   */
  readonly state: "valid" | "closed" | "broken";
  /** Location in gateway.yaml: "gateway.yaml:12". Unset if the account is in the store. */
  readonly definedAt?: string;
  /** Number of keys directly in this account. */
  readonly keyCount: number;
  /**
   * Usage of the account's own limits. Unset if it has none, or if the store does not support it.
   */
  readonly limitUsage?: readonly ShownLimitUsage[];
}

type AccountInput = InputOf<"accounts.create"> | InputOf<"accounts.update">;

export const accountCommands = (
  repository: KeyRepository,
  targets: () => GrantTargets,
  now: () => number = wallClock,
) => new AccountCommands(repository, targets, now).commands();

class AccountCommands {
  readonly #repository: KeyRepository;
  readonly #grantTargets: () => GrantTargets;
  readonly #now: () => number;

  constructor(repository: KeyRepository, targets: () => GrantTargets, now: () => number) {
    this.#repository = repository;
    this.#grantTargets = targets;
    this.#now = now;
  }

  commands() {
    return withInputChecks({
      "accounts.list": (input) => this.#list(input),
      "accounts.show": (input) => this.#show(input),
      "accounts.create": (input) => this.#create(input),
      "accounts.update": (input) => this.#update(input),
      "accounts.close": (input) => this.#close(input),
    });
  }

  async #list({ closed = false }: InputOf<"accounts.list">) {
    const tree = await this.#readTree();
    const shown = await this.#toShown(tree, tree.all());
    return { accounts: closed ? shown : shown.filter((each) => each.closedAt === undefined) };
  }

  async #show({ id }: InputOf<"accounts.show">) {
    const tree = await this.#readTree();
    const account = this.#getAccount(tree, id);
    const above = tree.ancestry(id).slice(0, -1);
    const within = tree.children(id);
    const [own, ...rest] = await this.#toShown(tree, [account, ...above, ...within]);
    const keys = (await this.#repository.listKeys()).filter((key) => key.account === id);
    return {
      account: own!,
      ancestors: rest.slice(0, above.length),
      accounts: rest.slice(above.length),
      keys: [...new Map(keys.map(({ id: key, name }) => [key, { id: key, name }])).values()],
    };
  }

  async #create(input: InputOf<"accounts.create">) {
    const { id } = input;
    const tree = await this.#readTree(true);
    if (this.#grantTargets().fileAccounts.has(id)) this.#failDefinedInFile(id);
    const there = tree.get(id);
    if (there)
      fail(
        "conflict",
        there.closedAt === undefined
          ? `The account ${id} already exists.`
          : `The account ${id} existed before and is named in the ledger. Choose another ID.`,
        { code: "account_exists", param: "/id" },
      );
    const record: AccountRecord = {
      id,
      ...this.#mergeGrants(input, { id, version: 0 }),
      created: this.#now(),
      version: 1,
    };
    return this.#write(record, tree, "created");
  }

  async #update(input: InputOf<"accounts.update">) {
    const { id, version } = input;
    const tree = await this.#readTree(true);
    const before = await this.#assertChangeable(tree, id, version);
    const record: AccountRecord = {
      ...before,
      ...this.#mergeGrants(input, before),
      version: before.version + 1,
    };
    const moves = input.parent !== undefined && record.parent !== before.parent;
    return this.#write(record, tree, moves ? "moved" : "updated");
  }

  async #close({ id, version }: InputOf<"accounts.close">) {
    const tree = await this.#readTree(true);
    const before = await this.#assertChangeable(tree, id, version);
    if (before.closedAt !== undefined)
      return { account: (await this.#toShown(tree, [tree.get(id)!]))[0]! };
    const record = { ...before, closedAt: this.#now(), version: before.version + 1 };
    const { account } = await this.#write(record, tree, "closed");
    return { account };
  }

  /** Merges the input into the account. Members that the input sets replace the previous values. */
  #mergeGrants(input: AccountInput, before: TreeAccount): Omit<TreeAccount, "id" | "version"> {
    const scope = `account:${input.id}`;
    return {
      parent: mergeValue(input.parent, before.parent),
      name: mergeValue(input.name, before.name),
      limits: mergeConverted(input.limits, before.limits, (limits) =>
        toScopedLimits(parseLimits(limits), scope),
      ),
      defaults: mergeConverted(input.defaults, before.defaults, ({ limits }) => ({
        limits: parseLimits(limits),
      })),
      models: mergeValue(input.models, before.models),
      frontends: mergeValue(input.frontends, before.frontends),
      tools: mergeValue(input.tools, before.tools),
      privacy: mergeValue(input.privacy, before.privacy),
      labels: mergeConverted(input.labels, before.labels, toLabels),
      discloseLimits: mergeValue(input.discloseLimits, before.discloseLimits),
    };
  }

  async #write(
    record: AccountRecord,
    tree: AccountTree,
    change: "created" | "moved" | "updated" | "closed",
  ) {
    const { id, parent } = record;
    if (change === "created" || change === "moved") {
      assertAccountExists(parent, tree, "/parent");
      assertFits(record, tree);
    }
    await this.#repository.writeAccount(record).catch((error: unknown) => {
      const { code, message } = getFault(error) ?? {};
      if (code === "version_conflict") fail("conflict", message!, { code });
      throw error;
    });
    this.#repository.onChanged?.({ type: "account", change }, id);
    const after = await this.#readTree();
    const [account] = await this.#toShown(after, [after.get(id)!]);
    return { account: account!, warnings: unknownGrantWarnings(record, this.#grantTargets()) };
  }

  async #assertChangeable(tree: AccountTree, id: string, version: number | undefined) {
    if (this.#grantTargets().fileAccounts.has(id)) this.#failDefinedInFile(id);
    const before = this.#getAccount(tree, id) as AccountRecord;
    assertVersion(version, `account ${id}`, before.version);
    return before;
  }

  #getAccount(tree: AccountTree, id: string): TreeAccount {
    if (!tree.get(id))
      try {
        assertAccountExists(id, tree, "/id");
      } catch (error) {
        fail("not_found", getFault(error)!.message, { code: "no_such_account", param: "/id" });
      }
    return tree.get(id)!;
  }

  #failDefinedInFile(id: string): never {
    return fail(
      "conflict",
      `The account ${id} is defined in ${this.#grantTargets().locationOf(id)}. Change it there.`,
      { code: "account_in_file", param: "/id" },
    );
  }

  /**
   * @param writing Whether to throw if the store keeps no accounts.
   */
  async #readTree(writing = false): Promise<AccountTree> {
    const stored = await this.#repository.listAccounts();
    if (!stored && writing)
      fail(
        "unsupported",
        "This store does not support accounts. Define them under accounts in gateway.yaml.",
        {
          code: "no_accounts",
        },
      );
    return new AccountTree(this.#grantTargets().fileAccounts, stored ?? []);
  }

  async #toShown(tree: AccountTree, accounts: readonly TreeAccount[]): Promise<ShownAccount[]> {
    const keys = await this.#repository.listKeys();
    const held = new Map<string, Set<string>>();
    for (const { id, account } of keys)
      if (account !== undefined) held.set(account, (held.get(account) ?? new Set()).add(id));
    const counted = await this.#repository.readLimits(
      accounts.flatMap(({ limits }) => limits ?? []),
    );
    const { fileAccounts: file, locationOf } = this.#grantTargets();
    let at = 0;
    return accounts.map(({ limits, defaults, ...account }) => {
      const own = counted.slice(at, (at += limits?.length ?? 0));
      return {
        ...account,
        ...shownLimits({ limits, defaults }),
        path: tree.path(account.id),
        state: tree.closedReason(account.id) ?? "valid",
        ...(file.has(account.id) && { definedAt: locationOf(account.id) }),
        keyCount: held.get(account.id)?.size ?? 0,
        ...(own.length > 0 && { limitUsage: own.map(toLimitUsage) }),
      };
    });
  }
}

/** Throws if the account would be nested in itself or too deep. */
function assertFits({ id, parent }: AccountRecord, tree: AccountTree): void {
  if (parent === undefined) return;
  const above = tree.ancestry(parent);
  if (parent === id || above.some((each) => each.id === id)) {
    const path = [
      ...above.slice(above.findIndex((each) => each.id === id)).map((each) => each.id),
      id,
    ];
    fail("invalid", `Accounts cannot be nested in a cycle: ${path.join(" → ")}.`, {
      code: "account_cycle",
      param: "/parent",
    });
  }
  const levels = above.length + (tree.get(id) ? tree.height(id) : 1);
  if (levels > MAX_ACCOUNT_DEPTH)
    fail(
      "invalid",
      `Nesting ${id} under ${tree.path(parent)} would make ${levels} levels. The maximum is ${MAX_ACCOUNT_DEPTH}.`,
      {
        code: "account_too_deep",
        param: "/parent",
      },
    );
}
