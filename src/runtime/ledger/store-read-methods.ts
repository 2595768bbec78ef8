import type { Store } from "../../plugin/store/store.ts";

/** What a store may be asked without changing anything, wherever it is: here, in the primary, or in the process before this one. */
export const STORE_READ_METHODS = [
  "findKey",
  "listKeys",
  "listAccounts",
  "readLimits",
  "listEntries",
  "sumEntries",
  "findPrice",
  "verify",
] as const satisfies readonly (keyof Store)[];
