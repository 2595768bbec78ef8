// What the primary and its workers say to each other, all of it plain data.
import type { LiveList } from "../../catalogue/lists.ts";
import type { Texts } from "../../config/disk.ts";
import type { Overrides } from "../../config/resolve.ts";
import type { Located } from "../../config/types.ts";
import type { OwnReadings } from "../readings/sum.ts";
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
  /** From now on what was prepared answers; the first time, the port is opened. */
  commit(at: BoundPort): Promise<void>;
  /** What was prepared is not wanted after all. */
  abandon(): Promise<void>;
  /** A provider's live list is another one. */
  lists(provider: string, heard: readonly LiveList[] | undefined): void;
  /** Keys have changed: nothing remembered of them counts any more. */
  forget(): void;
  /** What the same plugin in another process wants to know. */
  peer(id: string, question: unknown): unknown;
  status(): WorkerStatus;
  /** How this process is. */
  readings(): OwnReadings;
  /** `/readyz` says that it ends, and all are still served; whether it has been asked before. */
  announce(): boolean;
  /** Accepts no new client, and ends when the requests in flight are over; how many were cut off. */
  stop(drainMs: number): Promise<number>;
};

/** An address, not a name, and a number that is free. */
export interface BoundPort {
  readonly address: string;
  readonly port: number;
  /** As clients say it. */
  readonly url: string;
}
