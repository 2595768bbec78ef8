// What the primary and its workers say to each other, all of it plain data.
import type { ModelList } from "../../catalog/model-lists.ts";
import type { FileTexts } from "../../config/source/config-files.ts";
import type { ConfigOverrides } from "../../config/resolve-config.ts";
import type { LocatedProblem } from "../../config/gateway-config.ts";
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { BoundAddress } from "../http/listen-targets.ts";
import type { LedgerOutage } from "../services/ledger-availability.ts";
import type { LocalStats } from "../health/sum-stats.ts";
import type { LiveRequest } from "../requests/in-flight-requests.ts";
import type { WorkerStatus } from "../gateway-api.ts";

/** A generation to be built: the same texts make the same one everywhere. */
export interface WorkerGeneration {
  readonly generation: number;
  /** Undefined: what ships with the package. */
  readonly file: string | undefined;
  readonly configTexts: FileTexts;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly overrides: ConfigOverrides;
}

/** What a worker is asked, in the order in which it is asked. */
export type WorkerCommands = {
  /** Builds it, and changes nothing yet. */
  prepareGeneration(order: WorkerGeneration): Promise<readonly LocatedProblem[]>;
  /** From now on what was prepared answers; the first time, every port is opened. Their addresses as clients say them. */
  commitGeneration(at: readonly BoundAddress[]): Promise<readonly string[]>;
  /** What was prepared is not wanted after all. */
  abandonGeneration(): Promise<void>;
  /** A provider's live list is another one. */
  updateModelLists(provider: string, heard: readonly ModelList[] | undefined): void;
  /** Keys have changed: nothing remembered of them counts any more. */
  invalidateKeys(): void;
  /** A provider, or one credential of it, is to be asked again. */
  resetCooldowns(provider: string, credential: string | undefined): void;
  /** An account of the store is another one. */
  accountChanged(record: AccountRecord): void;
  /** Any may be: all of them are asked for anew. */
  reloadAccounts(): Promise<void>;
  /** Whether the ledger accepts rows: every process says the same of it. */
  setLedgerAvailability(trouble: LedgerOutage | undefined): void;
  /** What the same plugin in another process wants to know. */
  askPlugin(id: string, question: unknown): unknown;
  readStatus(): WorkerStatus;
  /** How this process is. */
  readStats(): LocalStats;
  /** What it has under way. */
  listInFlight(): readonly LiveRequest[];
  /** `/readyz` says that it ends, and all are still served; whether it has been asked before. */
  announceShutdown(): boolean;
  /**
   * Accepts no new client, and ends when the requests in flight are over; how many were cut off. `succeeded`: another gateway serves the
   * same ports already.
   */
  stop(drainMs: number, succeeded: boolean): Promise<number>;
};

/** What all of them are told while they serve. */
export type BroadcastName =
  | "invalidateKeys"
  | "resetCooldowns"
  | "accountChanged"
  | "reloadAccounts"
  | "setLedgerAvailability";
