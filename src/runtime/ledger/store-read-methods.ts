import type { Store } from "../../plugin/store/store.ts";

/**
 * Store methods that change nothing. They can be called wherever the store is: in this process, in
 * the primary, or in the old process during a hot restart.
 */
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
