import type { Plugin, Setup } from "../plugin.ts";
import type { NoOptions, ObjectSchema } from "../schema.ts";
import type { Store } from "./store.ts";

/**
 * Definition of a store, which keeps keys, limits, and the ledger. Exactly one is mounted, under
 * `store:`.
 */
export interface StoreDef<O extends ObjectSchema = NoOptions> extends Plugin<O> {
  /**
   * Whether the data exists only in the memory of the gateway's process. Commands that read the store
   * then need a running gateway. Default: false.
   */
  isVolatile?: boolean;
  /** Creates the store. */
  setup: Setup<O, Store>;
}
