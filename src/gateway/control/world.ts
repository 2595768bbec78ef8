// What accounts and keys there are, for givers that are held to one account.
import { faultOf } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import type { Store } from "../../plugin/store.ts";
import type { Mounts } from "./plugin-commands.ts";
import type { ScopeWorld } from "./scoping.ts";

export const worldOf = (
  store: Pick<Store, "keys">,
  current: () => Pick<Mounts, "built">,
): ScopeWorld => ({
  path(account) {
    try {
      return current().built.gen.accounts.branch(account).path.split("/");
    } catch (error) {
      if (!faultOf(error)) throw error;
      return [account];
    }
  },
  keys: keysIn(store),
});

/** All of them, admin tokens too. */
export const keysIn = (store: Pick<Store, "keys">) => async (): Promise<KeyRecord[]> => {
  const found: KeyRecord[] = [];
  let after: string | undefined;
  do {
    const page = await store.keys({ after, limit: 500 });
    found.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
};
