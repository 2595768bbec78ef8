// Caches all accounts of the store in this process, so that no request waits for one. Accounts are
// loaded at startup and updated before the command that changes one is answered. They are reloaded
// when another gateway has changed accounts.
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { StoredAccounts } from "../../pipeline/accounts/accounts.ts";

/** Page size of the listing. */
const PAGE_SIZE = 1_000;

export class AccountCache implements StoredAccounts {
  readonly #all = new Map<string, AccountRecord>();
  readonly #listeners: (() => void)[] = [];
  version = 0;

  /** Calls the listener after each change of an account. */
  onChanged(listener: () => void): void {
    this.#listeners.push(listener);
  }

  get(id: string): AccountRecord | undefined {
    return this.#all.get(id);
  }

  values(): Iterable<AccountRecord> {
    return this.#all.values();
  }

  /**
   * Stores a record, unless a newer version is known. A listing may have begun before the latest
   * change.
   */
  put(record: AccountRecord): void {
    const known = this.#all.get(record.id);
    if (known && known.version > record.version) return;
    this.#all.set(record.id, record);
    this.version++;
    for (const listener of this.#listeners) listener();
  }

  /** Loads all accounts. No account has to be removed, because the store never deletes accounts. */
  async load(store: Pick<Store, "listAccounts">): Promise<void> {
    let after: string | undefined;
    do {
      const page = await store.listAccounts?.({ after, limit: PAGE_SIZE });
      for (const record of page?.items ?? []) this.put(record);
      after = page?.next;
    } while (after !== undefined);
  }
}
