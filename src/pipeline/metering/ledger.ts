// The ledger, as the pipeline uses it.
import type { Price } from "../../model/facts.ts";
import type { Reserve, Settle, StoreCommand, CommandResult } from "../../plugin/store/store.ts";

/** Writes ledger rows. The gateway handles batching, durability, and recovery. */
export interface Ledger {
  /** Writes a reserve row. `price`: the price behind the hash in the command. */
  reserve(command: Stamped<Reserve>, price: Price | undefined): Promise<CommandResult>;
  /** Writes a settle row. `prices`: the prices behind the hashes in its parts. */
  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void>;
  progress(command: Stamped<Extract<StoreCommand, { do: "progress" }>>): void;
}
export type Stamped<T> = T & { at: number };
