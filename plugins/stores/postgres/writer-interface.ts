// What the rest of the store asks of the one part that writes.
import type { StoreCommand, StoreEvent, StoreInstance, CommandResult } from "tollgate/plugin";
import type { Disk } from "./disk.ts";
import type { RunSql } from "./connection/pipelined-connection.ts";
import type { NoteWrite } from "./audit/chain-note.ts";
import type { FastPathSettings } from "./write/fast-path.ts";
import type { OfflineSettings } from "./offline/budget-lease-queries.ts";

export interface Writer {
  open(
    owner: StoreInstance,
    hear: (news: StoreEvent) => void,
  ): Promise<{ epoch: number; recovered: number }>;
  apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]>;
  /** Lines in this node's chain, with statements of their own. */
  appendNotes(noting: NoteWrite): Promise<void>;
  /** Reads anew what rows of its open calls say: a label may have been taken out of them. */
  refreshLabels(): Promise<void>;
  /** A statement among the others. */
  sql: RunSql;
  /** The database's time, as far as it can be told from here. */
  databaseNow(at: number): number;
  /** The database is away, and this node goes on alone. */
  readonly isOffline: boolean;
  /** `goodbye`: what is open may be settled by others at once. */
  close(goodbye: boolean): Promise<void>;
}

export interface WriterSettings extends FastPathSettings {
  readonly leaseMs: number;
  /** How it goes on while the database is away; undefined: it does not. */
  readonly offline?: OfflineSettings | undefined;
  /** A budget that so many gateways draw on at once is counted in slices; 0, or undefined: none is. */
  readonly leaseThreshold?: number | undefined;
  /** Where it may keep what it was told; undefined: in memory alone. */
  readonly spoolDir?: (() => string) | undefined;
  /** What `folder` is on. Default: the operating system's files. */
  readonly disk?: Disk;
  /** "command": limits count by what commands say. For tests, whose calls are of other years. */
  readonly clock: "database" | "command";
}
