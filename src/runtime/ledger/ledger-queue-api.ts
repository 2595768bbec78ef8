// Interface of the queue through which all rows go to the store.
import type { Price } from "../../model/facts.ts";
import type { AccountRecord, KeyRecord } from "../../plugin/store/account.ts";
import type { InstanceInfo } from "../../plugin/store/store-instance.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type {
  CommandResult,
  MemberChange,
  Reserve,
  Settle,
  StoreCommand,
} from "../../plugin/store/store.ts";
import type { StoreFailure } from "./ledger-health.ts";
import type { Stamped } from "../../pipeline/generation.ts";

export type CommandOf<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

export interface LedgerQueue {
  /**
   * Reserves the cost of a call. Resolves when the row is durable. `price` is the row for the price
   * hash in the command.
   */
  reserve(command: Stamped<Reserve>, price?: Price): Promise<CommandResult>;
  /**
   * Settles a call. Resolves when the row is durable, however long it takes. The caller limits the
   * time that a client waits.
   */
  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void>;
  /**
   * Records the progress of a call. Best effort: only the latest progress before each batch is
   * written.
   */
  progress(command: CommandOf<"progress">): void;
  adjust(command: CommandOf<"adjust">): Promise<void>;
  writeKey(record: KeyRecord): Promise<void>;
  /** Writes an account. The store rejects it if the account has been changed since it was read. */
  writeAccount(record: AccountRecord): Promise<void>;
  /** Changes what members of groups have used. */
  changeMember(limits: readonly Limit[], change: MemberChange): Promise<void>;
  /** Resolves when all earlier commands are durable. */
  flush(): Promise<void>;
  /**
   * Marks the store as unreachable, as reported by the store. Until the store responds again, new
   * and waiting reserves are rejected immediately.
   */
  markUnreachable(why: string): void;
  /**
   * Called when another process could not write a row. Sends heartbeats until the store answers.
   */
  suspectFailure(why: string): void;
  /** Retries now instead of after the backoff. */
  probe(): void;
  /** Stops accepting commands, and waits `withinMs` for those in progress. */
  close(withinMs?: number): Promise<void>;
  /** Whether the store accepts commands. If false, new calls are rejected. */
  readonly isHealthy: boolean;
  readonly failure: string | undefined;
  readonly isUnreachable: boolean;
  /** Number of commands that wait for their batch. */
  readonly pendingCount: number;
}

export interface LedgerQueueOptions {
  now?: () => number;
  /**
   * Called when a failure begins, when the store becomes unreachable, and when the failure ends.
   */
  onFailureChange?: (trouble: StoreFailure | undefined) => void;
  /** Timeout of a store command, in milliseconds. */
  storeTimeoutMs?: number;
  /** Returns whether the store is being handed over, which explains a temporary silence. */
  isTransferring?: (() => boolean) | undefined;
  /** Returns the description of this gateway that each heartbeat carries. */
  instanceInfo?: (() => InstanceInfo | undefined) | undefined;
}
