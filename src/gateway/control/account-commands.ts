// Accounts, as an operator handles them: made, listed, changed, moved, ended. Those of gateway.yaml are listed beside those of the store,
// and are changed in the file alone. The same commands in a running gateway and on the store itself.
import { MOST_LEVELS } from "../../config/accounts.ts";
import { wallClock } from "../../lib/wall-clock.ts";
import { fail, faultOf } from "../../model/error.ts";
import type { AccountRecord } from "../../plugin/account.ts";
import { AccountTree, type TreeAccount } from "./account-tree.ts";
import {
  type Around,
  changed,
  labelsOf,
  limitsOf,
  parsed,
  mustBeAt,
  mustStand,
  said,
  type ShownCount,
  shownCount,
  shownLimits,
  warnings,
} from "./grants.ts";
import { answering } from "./input.ts";
import type { Shelf } from "./shelf.ts";
import type { InputOf } from "./table.ts";

/** An account as it is shown. Times are Unix milliseconds. */
export interface ShownAccount extends Omit<TreeAccount, "limits" | "defaults"> {
  /** Each as in usd=5/month. */
  readonly limits?: readonly string[];
  readonly defaults?: { readonly limits: readonly string[] };
  /** From the outermost on: "acme/research". */
  readonly path: string;
  /** broken: what it stands in is not there, so its keys may use nothing. */
  readonly state: "valid" | "ended" | "broken";
  /** "gateway.yaml:12", of one that stands there; absent: the store has it. */
  readonly from?: string;
  /** How many keys draw on it directly. */
  readonly keys: number;
  /** What its own limits have counted; absent where it has none, or the store cannot tell. */
  readonly counted?: readonly ShownCount[];
}

type Wanted = InputOf<"accounts.create"> | InputOf<"accounts.update">;

export const accountCommands = (
  shelf: Shelf,
  around: () => Around,
  now: () => number = wallClock,
) => new AccountDesk(shelf, around, now).commands();

class AccountDesk {
  readonly #shelf: Shelf;
  readonly #around: () => Around;
  readonly #now: () => number;

  constructor(shelf: Shelf, around: () => Around, now: () => number) {
    this.#shelf = shelf;
    this.#around = around;
    this.#now = now;
  }

  commands() {
    return answering({
      "accounts.list": (input) => this.#list(input),
      "accounts.show": (input) => this.#show(input),
      "accounts.create": (input) => this.#create(input),
      "accounts.update": (input) => this.#update(input),
      "accounts.end": (input) => this.#end(input),
    });
  }

  async #list({ ended = false }: InputOf<"accounts.list">) {
    const tree = await this.#tree();
    const shown = await this.#shown(tree, tree.all());
    return { accounts: ended ? shown : shown.filter((each) => each.ended === undefined) };
  }

  async #show({ id }: InputOf<"accounts.show">) {
    const tree = await this.#tree();
    const account = this.#found(tree, id);
    const above = tree.chain(id).slice(0, -1);
    const within = tree.within(id);
    const [own, ...rest] = await this.#shown(tree, [account, ...above, ...within]);
    const keys = (await this.#shelf.keys()).filter((key) => key.account === id);
    return {
      account: own!,
      above: rest.slice(0, above.length),
      accounts: rest.slice(above.length),
      keys: [...new Map(keys.map(({ id: key, name }) => [key, { id: key, name }])).values()],
    };
  }

  async #create(input: InputOf<"accounts.create">) {
    const { id } = input;
    const tree = await this.#tree(true);
    if (this.#around().accounts.has(id)) this.#inFile(id);
    const there = tree.get(id);
    if (there)
      fail(
        "conflict",
        there.ended === undefined
          ? `There is an account ${id} already.`
          : `There was an account ${id}, and rows of the ledger name it: take another id.`,
        { code: "account_exists", param: "/id" },
      );
    const record: AccountRecord = {
      id,
      ...this.#grants(input, { id, version: 0 }),
      created: this.#now(),
      version: 1,
    };
    return this.#write(record, tree, "made");
  }

  async #update(input: InputOf<"accounts.update">) {
    const { id, version } = input;
    const tree = await this.#tree(true);
    const before = await this.#changeable(tree, id, version);
    const record: AccountRecord = {
      ...before,
      ...this.#grants(input, before),
      version: before.version + 1,
    };
    const moves = input.parent !== undefined && record.parent !== before.parent;
    return this.#write(record, tree, moves ? "moved" : "updated");
  }

  async #end({ id, version }: InputOf<"accounts.end">) {
    const tree = await this.#tree(true);
    const before = await this.#changeable(tree, id, version);
    if (before.ended !== undefined)
      return { account: (await this.#shown(tree, [tree.get(id)!]))[0]! };
    const record = { ...before, ended: this.#now(), version: before.version + 1 };
    const { account } = await this.#write(record, tree, "ended");
    return { account };
  }

  /** What is said takes the place of what was. */
  #grants(input: Wanted, before: TreeAccount): Omit<TreeAccount, "id" | "version"> {
    const scope = `account:${input.id}`;
    return {
      parent: said(input.parent, before.parent),
      name: said(input.name, before.name),
      limits: changed(input.limits, before.limits, (limits) => limitsOf(parsed(limits), scope)),
      defaults: changed(input.defaults, before.defaults, ({ limits }) => ({
        limits: parsed(limits),
      })),
      models: said(input.models, before.models),
      frontends: said(input.frontends, before.frontends),
      privacy: said(input.privacy, before.privacy),
      labels: changed(input.labels, before.labels, labelsOf),
      tells: said(input.tells, before.tells),
    };
  }

  async #write(
    record: AccountRecord,
    tree: AccountTree,
    change: "made" | "moved" | "updated" | "ended",
  ) {
    const { id, parent } = record;
    if (change === "made" || change === "moved") {
      mustStand(parent, tree, "/parent");
      mustFit(record, tree);
    }
    await this.#shelf.writeAccount(record).catch((error: unknown) => {
      const { code, message } = faultOf(error) ?? {};
      if (code === "changed_since") fail("conflict", message!, { code });
      throw error;
    });
    this.#shelf.changed?.({ type: "account", change }, id);
    const after = await this.#tree();
    const [account] = await this.#shown(after, [after.get(id)!]);
    return { account: account!, warnings: warnings(record, this.#around()) };
  }

  async #changeable(tree: AccountTree, id: string, version: number | undefined) {
    if (this.#around().accounts.has(id)) this.#inFile(id);
    const before = this.#found(tree, id) as AccountRecord;
    mustBeAt(version, `account ${id}`, before.version);
    return before;
  }

  #found(tree: AccountTree, id: string): TreeAccount {
    if (!tree.get(id))
      try {
        mustStand(id, tree, "/id");
      } catch (error) {
        fail("not_found", faultOf(error)!.message, { code: "no_such_account", param: "/id" });
      }
    return tree.get(id)!;
  }

  #inFile(id: string): never {
    return fail(
      "conflict",
      `The account ${id} stands in ${this.#around().stands(id)}: change it there.`,
      { code: "account_in_file", param: "/id" },
    );
  }

  /** `writing`: fails where the store keeps none. */
  async #tree(writing = false): Promise<AccountTree> {
    const stored = await this.#shelf.accounts();
    if (!stored && writing)
      fail(
        "unsupported",
        "This store keeps no accounts: write them under accounts in gateway.yaml.",
        {
          code: "no_accounts",
        },
      );
    return new AccountTree(this.#around().accounts, stored ?? []);
  }

  async #shown(tree: AccountTree, accounts: readonly TreeAccount[]): Promise<ShownAccount[]> {
    const keys = await this.#shelf.keys();
    const held = new Map<string, Set<string>>();
    for (const { id, account } of keys)
      if (account !== undefined) held.set(account, (held.get(account) ?? new Set()).add(id));
    const counted = await this.#shelf.counted(accounts.flatMap(({ limits }) => limits ?? []));
    const { accounts: file, stands } = this.#around();
    let at = 0;
    return accounts.map(({ limits, defaults, ...account }) => {
      const own = counted.slice(at, (at += limits?.length ?? 0));
      return {
        ...account,
        ...shownLimits({ limits, defaults }),
        path: tree.path(account.id),
        state: tree.closed(account.id) ?? "valid",
        ...(file.has(account.id) && { from: stands(account.id) }),
        keys: held.get(account.id)?.size ?? 0,
        ...(own.length > 0 && { counted: own.map(shownCount) }),
      };
    });
  }
}

/** No account stands in itself, and none is deeper than the levels that there are. */
function mustFit({ id, parent }: AccountRecord, tree: AccountTree): void {
  if (parent === undefined) return;
  const above = tree.chain(parent);
  if (parent === id || above.some((each) => each.id === id)) {
    const path = [
      ...above.slice(above.findIndex((each) => each.id === id)).map((each) => each.id),
      id,
    ];
    fail("invalid", `These accounts would stand in one another: ${path.join(" → ")}.`, {
      code: "account_cycle",
      param: "/parent",
    });
  }
  const levels = above.length + (tree.get(id) ? tree.height(id) : 1);
  if (levels > MOST_LEVELS)
    fail(
      "invalid",
      `${id} in ${tree.path(parent)} would make ${levels} levels; there are ${MOST_LEVELS} at most.`,
      {
        code: "account_too_deep",
        param: "/parent",
      },
    );
}
