// What the store keeps of keys and accounts, as commands use it: the same in a running gateway and on the store itself.
import type { AccountRecord } from "../../plugin/account.ts";
import type { Limit, LimitCount } from "../../plugin/limit.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import type { Store } from "../../plugin/store.ts";
import type { openingOf } from "./opening.ts";

export interface Shelf {
  /** All of them, in the order in which they were made; ended ones too. */
  keys(): Promise<readonly KeyRecord[]>;
  /** By id, ended ones too; undefined: the store keeps none. */
  accounts(): Promise<readonly AccountRecord[] | undefined>;
  /** Empty where the store cannot tell. */
  counted(limits: readonly Limit[]): Promise<readonly LimitCount[]>;
  /** Durable, and known everywhere, when it resolves. */
  write(record: KeyRecord): Promise<void>;
  writeAccount(record: AccountRecord): Promise<void>;
  /** What a key had spent elsewhere. Durable when it resolves. */
  writeOpening(opening: ReturnType<typeof openingOf>): Promise<void>;
  /** Hears, when it is so, what became of a key or an account. */
  changed?(what: Changed, id: string): void;
}

export type Changed =
  | { type: "key"; change: "made" | "moved" | "updated" | "rotated" | "revoked" }
  | { type: "account"; change: "made" | "moved" | "updated" | "ended" };

const AT_ONCE = 500;

/** What a store is asked of them. */
export const readsOf = (
  store: Pick<Store, "keys" | "accounts" | "counted">,
  now: () => number,
): Pick<Shelf, "keys" | "accounts" | "counted"> => ({
  // Admin tokens are kept as keys are, and are none.
  keys: async () =>
    (await all((page) => store.keys(page))).filter(({ admin }) => admin === undefined),
  accounts: async () => store.accounts && all((page) => store.accounts!(page)),
  counted: async (limits) =>
    (limits.length > 0 && (await store.counted?.(limits, now()).catch(() => undefined))) || [],
});

async function all<T>(
  list: (page: { after: string | undefined; limit: number }) => Promise<{
    items: readonly T[];
    next?: string | undefined;
  }>,
): Promise<T[]> {
  const found: T[] = [];
  let after: string | undefined;
  do {
    const page = await list({ after, limit: AT_ONCE });
    found.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return found;
}
