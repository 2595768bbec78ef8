// The ledger, as the walk sees it.
import type { Price } from "../../model/facts.ts";
import type { Reserve, Settle, StoreCommand, CommandResult } from "../../plugin/store/store.ts";

/** Where rows are written. Batches, durability and recovery are the gateway's. */
export interface Ledger {
  /** The price is the row behind the hash that the command pins. */
  reserve(command: Stamped<Reserve>, price: Price | undefined): Promise<CommandResult>;
  /** Prices behind hashes that its parts name. */
  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void>;
  progress(command: Stamped<Extract<StoreCommand, { do: "progress" }>>): void;
}
export type Stamped<T> = T & { at: number };
