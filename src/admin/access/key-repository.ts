// Access to keys and accounts for commands. The interface is the same in a running gateway and on
// the store itself.
import type { AccountRecord, KeyRecord } from "../../plugin/store/account.ts";
import type { Limit, LimitUsage } from "../../plugin/store/limit.ts";
import type { Store, Reserve, Settle } from "../../plugin/store/store.ts";

export interface KeyRepository {
  /** Lists all keys in order of creation, including expired and revoked keys. */
  listKeys(): Promise<readonly KeyRecord[]>;
  /** Lists all accounts by ID, including closed accounts. Undefined if the store keeps none. */
  listAccounts(): Promise<readonly AccountRecord[] | undefined>;
  /** Returns the usage of limits. Empty if the store does not support it. */
  readLimits(limits: readonly Limit[]): Promise<readonly LimitUsage[]>;
  /** Writes a key. When it resolves, the key is durable and every process uses it. */
  writeKey(record: KeyRecord): Promise<void>;
  writeAccount(record: AccountRecord): Promise<void>;
  /** Writes the previous spending of an imported key. Resolves when the ledger rows are durable. */
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

// Creates two ledger rows for the previous spending of an imported key. The rows count in the
// current windows, so the remaining budgets are correct from the first request. Writing them again
// has no effect.

/** Target of these rows instead of a provider. */
const OPENING_TARGET = {
  provider: "opening",
  model: "balance",
  protocol: null,
  credential: "",
} as const;
/** Number of characters of the digest that make the ID unique. */
const ID_LENGTH = 24;

type Stamped<C> = C & { readonly at: number };

/**
 * Creates the rows. `limits`: limits of the key and of the accounts that it is nested in.
 * `account`: path of the account.
 */
export function createOpeningRows(of: {
  readonly key: Pick<KeyRecord, "id" | "digest" | "labels">;
  readonly limits: readonly Limit[];
  readonly account: string | undefined;
  readonly spentNano: bigint;
  readonly at: number;
}): readonly [Stamped<Reserve>, Stamped<Settle>] {
  const { key, limits, account, spentNano, at } = of;
  const attempt = `opening-${key.digest.slice(0, ID_LENGTH)}`;
  const budgets = limits.filter(({ unit }) => unit === "nano_usd");
  return [
    {
      do: "reserve",
      at,
      attempt,
      request: attempt,
      number: 1,
      key: key.id,
      target: OPENING_TARGET,
      privacy: "off",
      labels: key.labels ?? {},
      account,
      // A reserve of 0 is never rejected. The amount is already spent, whatever the limit is.
      claims: budgets.map((limit) => ({ ...limit, take: 0n })),
      holdNano: 0n,
      price: null,
    },
    {
      do: "settle",
      at,
      attempt,
      state: "estimated",
      usage: {},
      costNano: spentNano,
      outcome: "imported",
    },
  ];
}
