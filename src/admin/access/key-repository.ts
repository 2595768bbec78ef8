// Access to keys and accounts for commands. The interface is the same in a running gateway and on
// the store itself.
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { Limit, LimitUsage } from "../../plugin/store/limit.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { createOpeningRows } from "./opening-balance.ts";

export interface KeyRepository {
  /** Lists all keys in order of creation, including expired and revoked ones. */
  listKeys(): Promise<readonly KeyRecord[]>;
  /** Lists all accounts by ID, including closed ones. Undefined if the store keeps none. */
  listAccounts(): Promise<readonly AccountRecord[] | undefined>;
  /** Returns the usage of limits. Empty if the store does not support it. */
  readLimits(limits: readonly Limit[]): Promise<readonly LimitUsage[]>;
  /** Writes a key. When it resolves, the key is durable and every process uses it. */
  writeKey(record: KeyRecord): Promise<void>;
  writeAccount(record: AccountRecord): Promise<void>;
  /** Writes what a key has spent elsewhere. Resolves when the rows are durable. */
  writeOpening(opening: ReturnType<typeof createOpeningRows>): Promise<void>;
  /** Called after a key or an account was changed. */
  onChanged?(what: RecordChange, id: string): void;
}

export type RecordChange =
  | { type: "key"; change: "created" | "moved" | "updated" | "rotated" | "revoked" }
  | { type: "account"; change: "created" | "moved" | "updated" | "closed" };

const PAGE_SIZE = 500;

/** Returns the read methods on top of a store. */
export const createRepositoryReads = (
  store: Pick<Store, "listKeys" | "listAccounts" | "readLimits">,
  now: () => number,
): Pick<KeyRepository, "listKeys" | "listAccounts" | "readLimits"> => ({
  // Admin tokens are stored like keys, but are not API keys.
  listKeys: async () =>
    (await readAllPages((page) => store.listKeys(page))).filter(({ admin }) => admin === undefined),
  listAccounts: async () => store.listAccounts && readAllPages((page) => store.listAccounts!(page)),
  readLimits: async (limits) =>
    (limits.length > 0 && (await store.readLimits?.(limits, now()).catch(() => undefined))) || [],
});

async function readAllPages<T>(
  list: (page: { after: string | undefined; limit: number }) => Promise<{
    items: readonly T[];
    next?: string | undefined;
  }>,
): Promise<T[]> {
  const found: T[] = [];
  let after: string | undefined;
  do {
    const page = await list({ after, limit: PAGE_SIZE });
    found.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return found;
}
