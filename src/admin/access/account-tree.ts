// All accounts as one tree: those of gateway.yaml and those of the store. A name that both have means the file's.
import type { AccountConfig } from "../../config/gateway-config.ts";
import type { AccountRecord, KeyDefaults, KeyLimit } from "../../plugin/store/account.ts";

/** An account, and where it stands when a file says it. */
export interface TreeAccount extends Omit<AccountRecord, "created" | "version"> {
  readonly created?: number;
  /** 0: it stands in the file, and no command changes it. */
  readonly version: number;
}

/** As it is now. */
export const readAccountTree = async (
  shelf: { listAccounts(): Promise<readonly AccountRecord[] | undefined> },
  file: ReadonlyMap<string, AccountConfig>,
): Promise<AccountTree> => new AccountTree(file, (await shelf.listAccounts()) ?? []);

export class AccountTree {
  readonly #accounts = new Map<string, TreeAccount>();

  constructor(file: ReadonlyMap<string, AccountConfig>, stored: Iterable<AccountRecord>) {
    for (const record of stored) this.#accounts.set(record.id, record);
    for (const [id, account] of file) this.#accounts.set(id, { ...account, version: 0 });
  }

  get(id: string): TreeAccount | undefined {
    return this.#accounts.get(id);
  }

  all(): TreeAccount[] {
    return [...this.#accounts.values()].sort((a, b) =>
      this.path(a.id) < this.path(b.id) ? -1 : 1,
    );
  }

  /** From the outermost on, as far as there are any: one that stands in itself ends where it would begin again. */
  ancestry(id: string): readonly TreeAccount[] {
    const chain: TreeAccount[] = [];
    for (let at = this.get(id); at !== undefined && !chain.includes(at);) {
      chain.unshift(at);
      at = at.parent === undefined ? undefined : this.get(at.parent);
    }
    return chain;
  }

  path(id: string): string {
    return this.ancestry(id)
      .map((each) => each.id)
      .join("/");
  }

  /** Directly in it. */
  children(id: string): TreeAccount[] {
    return this.all().filter(({ parent }) => parent === id);
  }

  /** Levels of it and what stands in it: 1 of one in which none stands. */
  height(id: string): number {
    const at = this.get(id)!;
    let maxHeight = 1;
    for (const { id: other } of this.#accounts.values()) {
      const place = this.ancestry(other).indexOf(at);
      if (place >= 0) maxHeight = Math.max(maxHeight, this.ancestry(other).length - place);
    }
    return maxHeight;
  }

  /** Why its keys may use nothing; undefined: they may. */
  closedReason(id: string): "closed" | "broken" | undefined {
    const chain = this.ancestry(id);
    if (chain.some(({ closedAt }) => closedAt !== undefined)) return "closed";
    return chain[0]?.parent === undefined ? undefined : "broken";
  }

  /** What a new key of it gets: of each unit what the nearest says, and after all of them what holds everywhere. */
  defaultLimits(id: string | undefined, everywhere: KeyDefaults | undefined): readonly KeyLimit[] {
    const defaultsInChain =
      id === undefined ? [] : this.ancestry(id).map(({ defaults }) => defaults);
    const limits: KeyLimit[] = [];
    for (const each of [...defaultsInChain.reverse(), everywhere]) {
      const units = limits.map(({ unit }) => unit);
      limits.push(...(each?.limits ?? []).filter(({ unit }) => !units.includes(unit)));
    }
    return limits;
  }
}
