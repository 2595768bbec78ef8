// What the store keeps of keys and accounts, as commands use it: the same in a running gateway and on the store itself.
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { Limit, LimitUsage } from "../../plugin/store/limit.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { createOpeningRows } from "./opening-balance.ts";

export interface KeyRepository {
  /** All of them, in the order in which they were made; ended ones too. */
  listKeys(): Promise<readonly KeyRecord[]>;
  /** By id, ended ones too; undefined: the store keeps none. */
  listAccounts(): Promise<readonly AccountRecord[] | undefined>;
  /** Empty where the store cannot tell. */
  readLimits(limits: readonly Limit[]): Promise<readonly LimitUsage[]>;
  /** Durable, and known everywhere, when it resolves. */
  writeKey(record: KeyRecord): Promise<void>;
  writeAccount(record: AccountRecord): Promise<void>;
  /** What a key had spent elsewhere. Durable when it resolves. */
  writeOpening(opening: ReturnType<typeof createOpeningRows>): Promise<void>;
  /** Hears, when it is so, what became of a key or an account. */
  onChanged?(what: RecordChange, id: string): void;
}

export type RecordChange =
  | { type: "key"; change: "created" | "moved" | "updated" | "rotated" | "revoked" }
  | { type: "account"; change: "created" | "moved" | "updated" | "closed" };

const PAGE_SIZE = 500;

/** What a store is asked of them. */
export const createRepositoryReads = (
  store: Pick<Store, "listKeys" | "listAccounts" | "readLimits">,
  now: () => number,
): Pick<KeyRepository, "listKeys" | "listAccounts" | "readLimits"> => ({
  // Admin tokens are kept as keys are, and are none.
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
