import { fail } from "../../model/error.ts";

/** What a store does without is said by the command that asks for it. */
export const failUnsupported = (
  use: string,
  what: string,
  instead = "Use what its database has for that.",
): never =>
  fail("conflict", `The store "${use}" is none that ${what}. ${instead}`, {
    code: "store_cannot",
  });
