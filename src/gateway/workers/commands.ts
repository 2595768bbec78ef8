// What the primary and its workers say to each other, all of it plain data.
import type { LiveList } from "../../catalogue/lists.ts";
import type { Texts } from "../../config/disk.ts";
import type { Overrides } from "../../config/resolve.ts";
import type { Located } from "../../config/types.ts";
import type { AccountRecord } from "../../plugin/account.ts";
import type { BoundPlace } from "../http/places.ts";
import type { LedgerTrouble } from "../services/health.ts";
import type { OwnReadings } from "../readings/sum.ts";
import type { LiveRequest } from "../requests/under-way.ts";
import type { WorkerStatus } from "../types.ts";

/** A generation to be built: the same texts make the same one everywhere. */
export interface WorkerConfig {
  readonly number: number;
  /** Undefined: what ships with the package. */
  readonly file: string | undefined;
  readonly texts: Texts;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly overrides: Overrides;
}

/** What a worker is asked, in the order in which it is asked. */
export type WorkerCommands = {
  /** Builds it, and changes nothing yet. */
  prepare(order: WorkerConfig): Promise<readonly Located[]>;
  /** From now on what was prepared answers; the first time, every port is opened. Their addresses as clients say them. */
  commit(at: readonly BoundPlace[]): Promise<readonly string[]>;
  /** What was prepared is not wanted after all. */
  abandon(): Promise<void>;
  /** A provider's live list is another one. */
  lists(provider: string, heard: readonly LiveList[] | undefined): void;
  /** Keys have changed: nothing remembered of them counts any more. */
  forget(): void;
  /** A provider, or one credential of it, is to be asked again. */
  wake(provider: string, credential: string | undefined): void;
  /** An account of the store is another one. */
  account(record: AccountRecord): void;
  /** Any may be: all of them are asked for anew. */
  accounts(): Promise<void>;
  /** Whether the ledger accepts rows: every process says the same of it. */
  health(trouble: LedgerTrouble | undefined): void;
  /** What the same plugin in another process wants to know. */
  peer(id: string, question: unknown): unknown;
  status(): WorkerStatus;
  /** How this process is. */
  readings(): OwnReadings;
  /** What it has under way. */
  underWay(): readonly LiveRequest[];
  /** `/readyz` says that it ends, and all are still served; whether it has been asked before. */
  announce(): boolean;
  /**
   * Accepts no new client, and ends when the requests in flight are over; how many were cut off. `succeeded`: another gateway serves the
   * same ports already.
   */
  stop(drainMs: number, succeeded: boolean): Promise<number>;
};

/** What all of them are told while they serve. */
export type Told = "forget" | "wake" | "account" | "accounts" | "health";
