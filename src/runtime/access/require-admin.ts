// A listener that other machines reach has to have an admin, or it would stand open for the first that comes to be one.
import type { AdminConfig } from "../../config/gateway-config.ts";
import { isLoopback } from "../../lib/net/egress-guard.ts";
import { fail } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";
import type { Store } from "../../plugin/store/store.ts";
import { listAllKeys } from "./list-all-keys.ts";

export async function assertAdminExists(
  { address, behindProxy, tokens, oidc }: AdminConfig,
  store: Pick<Store, "listKeys">,
): Promise<void> {
  // On this machine alone, the user who may open the control socket is its owner.
  if (!behindProxy && ("socket" in address || isLoopback(address.host))) return;
  if (oidc || tokens.length > 0 || (await listAllKeys(store)()).some(isAdmin)) return;
  fail(
    "conflict",
    "Other machines reach the admin listener, and it has no admin. Make one with `tollgate admins create <name> --role owner`, or name one under admin.tokens.",
    { code: "no_admin" },
  );
}

const isAdmin = ({ admin, revoked }: KeyRecord): boolean =>
  admin !== undefined && revoked === undefined;
