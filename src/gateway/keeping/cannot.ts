import { fail } from "../../model/error.ts";

/** What a store does without is said by the command that asks for it. */
export const cannot = (use: string, what: string): never =>
  fail("conflict", `The store "${use}" is none that ${what}. Use what its database has for that.`, {
    code: "store_cannot",
  });
