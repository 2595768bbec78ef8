// Restricts plugin routes on the admin listener to admins with a sufficient role. Admins that are
// limited to an account are rejected unless the route declares that it serves them.
import { fail } from "../../model/error.ts";
import type { Role } from "../../plugin/role.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import { assertRole, principalId } from "./principal.ts";
import type { AdminPrincipals } from "./admin-principals.ts";

/** Returns an `admit` hook that identifies the principal or throws the reason for the rejection. */
export const requireAdminRole =
  (
    adminPrincipals: AdminPrincipals | undefined,
    { least, accounts }: { least: Role; accounts: boolean },
  ) =>
  async (x: HostExchange): Promise<void> => {
    if (!adminPrincipals) return fail("unavailable", "This process has no admin listener.");
    const principal = await adminPrincipals.identify(x.state.connection.req);
    assertRole(principal, least);
    if (principal.account !== undefined && !accounts)
      fail(
        "forbidden",
        `${principal.name} is limited to the account ${principal.account} and cannot use commands for the whole gateway.`,
        {
          code: "account_only",
        },
      );
    x.identify({ id: principalId(principal), name: principal.name });
  };
