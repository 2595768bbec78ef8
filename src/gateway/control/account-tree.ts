// All accounts as one tree: those of gateway.yaml and those of the store. A name that both have means the file's.
import type { AccountConfig } from "../../config/types.ts";
import type { AccountRecord, KeyDefaults, KeyLimit } from "../../plugin/account.ts";

/** An account, and where it stands when a file says it. */
export interface TreeAccount extends Omit<AccountRecord, "created" | "version"> {
  readonly created?: number;
  /** 0: it stands in the file, and no command changes it. */
  readonly version: number;
}

/** As it is now. */
export const treeOf = async (
  shelf: { accounts(): Promise<readonly AccountRecord[] | undefined> },
  file: ReadonlyMap<string, AccountConfig>,
): Promise<AccountTree> => new AccountTree(file, (await shelf.accounts()) ?? []);

export class AccountTree {
  readonly #all = new Map<string, TreeAccount>();

  constructor(file: ReadonlyMap<string, AccountConfig>, stored: Iterable<AccountRecord>) {
    for (const record of stored) this.#all.set(record.id, record);
    for (const [id, account] of file) this.#all.set(id, { ...account, version: 0 });
  }

  get(id: string): TreeAccount | undefined {
    return this.#all.get(id);
  }

  all(): TreeAccount[] {
    return [...this.#all.values()].sort((a, b) => (this.path(a.id) < this.path(b.id) ? -1 : 1));
  }

  /** From the outermost on, as far as there are any: one that stands in itself ends where it would begin again. */
  chain(id: string): readonly TreeAccount[] {
    const chain: TreeAccount[] = [];
    for (let at = this.get(id); at !== undefined && !chain.includes(at);) {
      chain.unshift(at);
      at = at.parent === undefined ? undefined : this.get(at.parent);
    }
    return chain;
  }

  path(id: string): string {
    return this.chain(id)
      .map((each) => each.id)
      .join("/");
  }

  /** Directly in it. */
  within(id: string): TreeAccount[] {
    return this.all().filter(({ parent }) => parent === id);
  }

  /** Levels of it and what stands in it: 1 of one in which none stands. */
  height(id: string): number {
    const at = this.get(id)!;
    let most = 1;
    for (const { id: other } of this.#all.values()) {
      const place = this.chain(other).indexOf(at);
      if (place >= 0) most = Math.max(most, this.chain(other).length - place);
    }
    return most;
  }

  /** Why its keys may use nothing; undefined: they may. */
  closed(id: string): "ended" | "broken" | undefined {
    const chain = this.chain(id);
    if (chain.some(({ ended }) => ended !== undefined)) return "ended";
    return chain[0]?.parent === undefined ? undefined : "broken";
  }

  /** What a new key of it gets: of each unit what the nearest says, and after all of them what holds everywhere. */
  defaults(id: string | undefined, everywhere: KeyDefaults | undefined): readonly KeyLimit[] {
    const said = id === undefined ? [] : this.chain(id).map(({ defaults }) => defaults);
    const limits: KeyLimit[] = [];
    for (const each of [...said.reverse(), everywhere]) {
      const units = limits.map(({ unit }) => unit);
      limits.push(...(each?.limits ?? []).filter(({ unit }) => !units.includes(unit)));
    }
    return limits;
  }
}
