import { fail } from "../../model/error.ts";

/** Throws the error of a command that the store does not support. */
export const failUnsupported = (
  use: string,
  what: string,
  instead = "Use the tools of its database.",
): never =>
  fail("conflict", `The store "${use}" does not support ${what}. ${instead}`, {
    code: "store_cannot",
  });
