import { fail } from "../../model/error.ts";

/** Throws the error of a command that the store does not support. */
export const failUnsupported = (
  use: string,
  what: string,
  instead = "Use what its database has for that.",
): never =>
  fail("conflict", `The store "${use}" is none that ${what}. ${instead}`, {
    code: "store_cannot",
  });
