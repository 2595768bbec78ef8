// A route of the admin listener is for the holder of a token of gateway.yaml, if its role is high enough. Keys for models
// are no tokens, and tokens are no keys.
import { ROLES } from "../../config/admin.ts";
import type { AdminToken } from "../../config/types.ts";
import { digest, equal } from "../../lib/key.ts";
import { fail } from "../../model/error.ts";
import type { Arrival } from "../../plugin/exchange.ts";
import type { Role } from "../../plugin/plugin.ts";

/** Each role may what those before it may. */
const rank = (role: Role): number => ROLES.indexOf(role);

/** As an `admit` hook: it identifies the token, or says why not. */
export function admitting(
  tokens: readonly AdminToken[],
  least: Role,
): (x: Arrival, secret: string | undefined) => void {
  const known = tokens.map((each) => ({ ...each, digest: digest(each.token) }));
  return (x, secret) => {
    const presented = digest(secret ?? "");
    // Every token is compared, so that the time tells nothing.
    const [holder] = known.filter((each) => equal(each.digest, presented));
    if (!holder)
      return fail(
        "unauthenticated",
        "Send a token of gateway.yaml's admin.tokens as Authorization: Bearer <token>.",
        { code: "invalid_admin_token" },
      );
    if (rank(holder.role) < rank(least))
      fail("forbidden", `This needs the role ${least}, and ${holder.name} is ${holder.role}.`, {
        code: "role_too_low",
      });
    x.identify({ id: `admin:${holder.name}` });
  };
}
