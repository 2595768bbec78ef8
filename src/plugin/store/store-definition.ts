import type { Plugin, Setup } from "../plugin.ts";
import type { NoOptions, ObjectSchema } from "../schema.ts";
import type { Store } from "./store.ts";

/** A store's definition: where keys, limits and the ledger live. One is mounted, under `store:`. */
export interface StoreDef<O extends ObjectSchema = NoOptions> extends Plugin<O> {
  /** Creates the store. */
  setup: Setup<O, Store>;
}
