// The interface that the writer provides to the other parts of the store.
import type { StoreCommand, StoreEvent, StoreInstance, CommandResult } from "tollgate/plugin";
import type { Disk } from "./disk.ts";
import type { RunSql } from "./connection/pipelined-connection.ts";
import type { NoteWrite } from "./audit/chain-note.ts";
import type { FastPathSettings } from "./write/fast-path.ts";
import type { OfflineSettings } from "./offline/offline-mode.ts";

export interface Writer {
  open(
    owner: StoreInstance,
    hear: (news: StoreEvent) => void,
  ): Promise<{ epoch: number; recovered: number }>;
  apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]>;
  /** Appends notes to this node's chain, with additional statements. */
  appendNotes(noting: NoteWrite): Promise<void>;
  /** Reads the labels of the node's open calls again, because an erasure may have changed them. */
  refreshLabels(): Promise<void>;
  /** Runs a statement in the queue of this node's writes. */
  sql: RunSql;
  /**
   * Returns the estimated database time. `at` is used instead if limits use the clock of the
   * commands.
   */
  databaseNow(at: number): number;
  /** Whether the database is unreachable and this node is in offline mode. */
  readonly isOffline: boolean;
  /**
   * @param goodbye Whether to mark the node as shut down cleanly, so that others may settle the open calls
   *   immediately.
   */
  close(goodbye: boolean): Promise<void>;
}

export interface WriterSettings extends FastPathSettings {
  readonly leaseMs: number;
  /** Offline settings. If unset, there is no offline mode. */
  readonly offline?: OfflineSettings | undefined;
  /**
   * Number of gateways using a budget at the same time from which it is counted in budget leases.
   * Default: 0, which disables leases.
   */
  readonly leaseThreshold?: number | undefined;
  /** Folder for the spool. If unset, acknowledged commands are kept only in memory. */
  readonly spoolDir?: (() => string) | undefined;
  /** File system that contains `spoolDir`. Default: the operating system's. */
  readonly disk?: Disk;
  /**
   * Clock for limits. With "command", limits use the times in commands. The latter is for tests
   * whose calls are in other years.
   */
  readonly clock: "database" | "command";
}
