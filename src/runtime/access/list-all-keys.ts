// Reads all keys of a store, page by page.
import type { KeyRecord } from "../../plugin/store/account.ts";
import type { Store } from "../../plugin/store/store.ts";

/** Returns a function that lists all keys, admin tokens included. */
export const listAllKeys = (store: Pick<Store, "listKeys">) => async (): Promise<KeyRecord[]> => {
  const found: KeyRecord[] = [];
  let after: string | undefined;
  do {
    const page = await store.listKeys({ after, limit: 500 });
    found.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
};
