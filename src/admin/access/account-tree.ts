// Combines the accounts of gateway.yaml and of the store into one tree. If both define an account
// with the same name, the account in gateway.yaml is used.
import type { AccountConfig } from "../../config/gateway-config.ts";
import type { AccountRecord, KeyDefaults, KeyLimit } from "../../plugin/store/account.ts";

/** An account, with its location if gateway.yaml defines it. */
export interface TreeAccount extends Omit<AccountRecord, "created" | "version"> {
  readonly created?: number;
  /**
   * Version of the record. `0` if the account is defined in gateway.yaml and no command can change
   * it.
   */
  readonly version: number;
}

/** Reads the current tree. */
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

  /**
   * Returns the existing ancestors and the account itself, outermost first. If an account is nested
   * in itself, the list ends before the first repetition.
   */
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

  /** Returns the accounts directly below this account. */
  children(id: string): TreeAccount[] {
    return this.all().filter(({ parent }) => parent === id);
  }

  /** Returns the number of levels from this account down. `1` if no account is nested in it. */
  height(id: string): number {
    const at = this.get(id)!;
    let maxHeight = 1;
    for (const { id: other } of this.#accounts.values()) {
      const place = this.ancestry(other).indexOf(at);
      if (place >= 0) maxHeight = Math.max(maxHeight, this.ancestry(other).length - place);
    }
    return maxHeight;
  }

  /** Returns the reason why the account's keys are rejected. Undefined if they are accepted. */
  closedReason(id: string): "closed" | "broken" | undefined {
    const chain = this.ancestry(id);
    if (chain.some(({ closedAt }) => closedAt !== undefined)) return "closed";
    return chain[0]?.parent === undefined ? undefined : "broken";
  }

  /**
   * Returns the default limits of a new key. Per unit, the limits of the nearest account apply, and
   * then the global limits.
   */
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
