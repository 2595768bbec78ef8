// Messages between the primary and its workers. All of them are plain data.
import type { ModelList } from "../../catalog/model-lists.ts";
import type { FileTexts } from "../../config/source/config-files.ts";
import type { ConfigOverrides } from "../../config/expand-config.ts";
import type { LocatedProblem } from "../../config/gateway-config.ts";
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { BoundAddress } from "../http/listen-targets.ts";
import type { LedgerOutage } from "../services/ledger-availability.ts";
import type { LocalStats } from "../health/process-stats.ts";
import type { LiveRequest } from "../requests/in-flight-requests.ts";
import type { WorkerStatus } from "../gateway-api.ts";

/** A generation to build. The same config texts produce the same generation everywhere. */
export interface WorkerGeneration {
  readonly generation: number;
  /** Path of gateway.yaml. Undefined if the config that ships with the package is used. */
  readonly file: string | undefined;
  readonly configTexts: FileTexts;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly overrides: ConfigOverrides;
}

/** Commands to a worker. They are executed in the order in which they are sent. */
export type WorkerCommands = {
  /** Builds a generation without serving it. */
  prepareGeneration(order: WorkerGeneration): Promise<readonly LocatedProblem[]>;
  /**
   * Serves the prepared generation. The first time, opens every port. Returns their public URLs.
   */
  commitGeneration(at: readonly BoundAddress[]): Promise<readonly string[]>;
  /** Discards the prepared generation. */
  abandonGeneration(): Promise<void>;
  /** Replaces a provider's live model lists. */
  updateModelLists(provider: string, heard: readonly ModelList[] | undefined): void;
  /** Clears all cached keys. */
  invalidateKeys(): void;
  /** Ends the cooldowns of a provider, or of one of its credentials. */
  resetCooldowns(provider: string, credential: string | undefined): void;
  /** Replaces the cached record of an account. */
  accountChanged(record: AccountRecord): void;
  /** Reloads all accounts. Used when it is unknown which ones changed. */
  reloadAccounts(): Promise<void>;
  /** Sets whether the ledger accepts rows, so that every process reports the same state. */
  setLedgerAvailability(trouble: LedgerOutage | undefined): void;
  /** Answers a query from the same plugin in another process. */
  askPlugin(id: string, question: unknown): unknown;
  readStatus(): WorkerStatus;
  /** Returns the live stats of this process. */
  readStats(): LocalStats;
  /** Returns the open requests of this process. */
  listInFlight(): readonly LiveRequest[];
  /**
   * Makes `/readyz` report the shutdown while all requests are still served. Returns whether it was
   * queried before.
   */
  announceShutdown(): boolean;
  /**
   * Stops accepting requests, and ends when open requests are finished. Returns how many were
   * aborted. `succeeded`: another gateway already serves the same ports.
   */
  stop(drainMs: number, succeeded: boolean): Promise<number>;
};

/** Commands that are sent to all serving workers. */
export type BroadcastName =
  | "invalidateKeys"
  | "resetCooldowns"
  | "accountChanged"
  | "reloadAccounts"
  | "setLedgerAvailability";
