import type { Plugin, Setup } from "./plugin.ts";
import type { None, ObjectSchema } from "./schema.ts";
import type { Store } from "./store.ts";

/** A store's definition: where keys, limits and the ledger live. One is mounted, under `store:`. */
export interface StoreDef<O extends ObjectSchema = None> extends Plugin<O> {
  /** Creates the store. */
  setup: Setup<O, Store>;
}
