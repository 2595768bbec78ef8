// What accounts and keys there are, for givers that are held to one account.
import { getFault } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { MountedState } from "../../admin/commands/plugin-commands.ts";
import type { ScopeDirectory } from "../../admin/dispatch/account-scoping.ts";

export const createScopeDirectory = (
  store: Pick<Store, "listKeys">,
  current: () => Pick<MountedState, "built">,
): ScopeDirectory => ({
  accountPath(account) {
    try {
      return current().built.gen.accounts.resolve(account).path.split("/");
    } catch (error) {
      if (!getFault(error)) throw error;
      return [account];
    }
  },
  listKeys: listAllKeys(store),
});

/** All of them, admin tokens too. */
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
