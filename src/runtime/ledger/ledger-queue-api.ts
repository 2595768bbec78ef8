// The way of all rows to the store, as the rest of the gateway sees it.
import type { Price } from "../../model/facts.ts";
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { InstanceInfo } from "../../plugin/store/store-instance.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";
import type { Reserve, Settle, StoreCommand, CommandResult } from "../../plugin/store/store.ts";
import type { StoreFailure } from "./ledger-health.ts";
import type { Stamped } from "../../pipeline/metering/ledger.ts";

export type CommandOf<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

export interface LedgerQueue {
  /** Resolved means durable. The price is the row behind the hash that the command pins. */
  reserve(command: Stamped<Reserve>, price?: Price): Promise<CommandResult>;
  /** Resolved means durable. It waits as long as it takes; how long a client waits for it is the caller's. */
  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void>;
  /** Best effort: the last one before each batch. */
  progress(command: CommandOf<"progress">): void;
  adjust(command: CommandOf<"adjust">): Promise<void>;
  writeKey(record: KeyRecord): Promise<void>;
  /** Rejected as the store says, when it has changed since. */
  writeAccount(record: AccountRecord): Promise<void>;
  /** Everything that was asked for before is durable. */
  flush(): Promise<void>;
  /** The store cannot be reached, as it says itself: new calls are refused at once, those that wait too, until it answers again. */
  markUnreachable(why: string): void;
  /** Another process got no row through: asks the store until it answers. */
  suspectFailure(why: string): void;
  /** Asks the store now instead of after the pause. */
  probe(): void;
  /** Takes nothing new, and gives what is under way this long. */
  close(withinMs?: number): Promise<void>;
  /** False: the store does not take anything now, and new calls are refused. */
  readonly isHealthy: boolean;
  readonly failure: string | undefined;
  readonly isUnreachable: boolean;
  /** Commands that wait for their batch. */
  readonly pendingCount: number;
}

export interface LedgerQueueOptions {
  now?: () => number;
  /** Called when trouble begins, when the store turns out to be away, and when it is over. */
  onFailureChange?: (trouble: StoreFailure | undefined) => void;
  /** How long a store may be silent. */
  storeTimeoutMs?: number;
  /** Whether its silence has a reason that will be over. */
  isTransferring?: (() => boolean) | undefined;
  /** What this gateway says of itself with each sign of life. */
  instanceInfo?: (() => InstanceInfo | undefined) | undefined;
}
