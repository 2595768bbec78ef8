// A route that a plugin serves on the admin listener is for those whose role is high enough. It knows of no accounts, so it is not for
// those that are held to one.
import { fail } from "../../model/error.ts";
import type { Role } from "../../plugin/role.ts";
import type { HostExchange } from "../../walk/exchange.ts";
import { mustBeRole, principalId } from "../control/giver.ts";
import type { Holders } from "./holders.ts";

/** As an `admit` hook: it identifies the holder, or says why not. */
export const admitting =
  (holders: Holders | undefined, least: Role) =>
  async (x: HostExchange): Promise<void> => {
    if (!holders) return fail("unavailable", "There is no admin listener in this process.");
    const giver = await holders.giver(x["~"].req);
    mustBeRole(giver, least);
    if (giver.within !== undefined)
      fail("forbidden", `${giver.name} is held to the account ${giver.within}.`, {
        code: "account_only",
      });
    x.identify({ id: principalId(giver), name: giver.name });
  };
