// The accounts that the store keeps, as this process knows them: all of them, so that a request waits for none. Read when the process
// begins, told of each change before the command that made it is answered, and read anew when another gateway has changed some.
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { StoredAccounts } from "../../pipeline/accounts/accounts.ts";

/** Of one page. */
const PAGE_SIZE = 1_000;

export class AccountCache implements StoredAccounts {
  readonly #all = new Map<string, AccountRecord>();
  version = 0;

  get(id: string): AccountRecord | undefined {
    return this.#all.get(id);
  }

  values(): Iterable<AccountRecord> {
    return this.#all.values();
  }

  /** What is older than what is known changes nothing: a listing may have been begun before the last change. */
  put(record: AccountRecord): void {
    const known = this.#all.get(record.id);
    if (known && known.version > record.version) return;
    this.#all.set(record.id, record);
    this.version++;
  }

  /** All that the store has. Nothing is ever taken out there: what has ended is there still. */
  async load(store: Pick<Store, "listAccounts">): Promise<void> {
    let after: string | undefined;
    do {
      const page = await store.listAccounts?.({ after, limit: PAGE_SIZE });
      for (const record of page?.items ?? []) this.put(record);
      after = page?.next;
    } while (after !== undefined);
  }
}
