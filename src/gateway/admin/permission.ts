// A route that a plugin serves on the admin listener is for admins whose role is high enough. Admins that are limited to an account are
// refused unless the route states that it serves them.
import { fail } from "../../model/error.ts";
import type { Role } from "../../plugin/role.ts";
import type { HostExchange } from "../../walk/exchange.ts";
import { mustBeRole, principalId } from "../control/giver.ts";
import type { Holders } from "./holders.ts";

/** As an `admit` hook: it identifies the holder, or says why not. */
export const admitting =
  (holders: Holders | undefined, { least, accounts }: { least: Role; accounts: boolean }) =>
  async (x: HostExchange): Promise<void> => {
    if (!holders) return fail("unavailable", "There is no admin listener in this process.");
    const giver = await holders.giver(x["~"].req);
    mustBeRole(giver, least);
    if (giver.within !== undefined && !accounts)
      fail(
        "forbidden",
        `${giver.name} is limited to the account ${giver.within}, and this is about the whole gateway.`,
        {
          code: "account_only",
        },
      );
    x.identify({ id: principalId(giver), name: giver.name });
  };
