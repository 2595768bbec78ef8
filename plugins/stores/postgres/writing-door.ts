// What the rest of the store asks of the one part that writes.
import type { StoreCommand, StoreNews, StoreOwner, Verdict } from "tollgate/plugin";
import type { Disk } from "./disk.ts";
import type { Ask } from "./line.ts";
import type { Noting } from "./noting.ts";
import type { Gate } from "./plain.ts";
import type { Apart } from "./slice-questions.ts";

export interface Writer {
  open(
    owner: StoreOwner,
    hear: (news: StoreNews) => void,
  ): Promise<{ epoch: number; presumed: number }>;
  apply(batch: readonly StoreCommand[]): Promise<readonly Verdict[]>;
  /** Lines in this node's chain, with statements of their own. */
  note(noting: Noting): Promise<void>;
  /** Reads anew what rows of its open calls say: a label may have been taken out of them. */
  remind(): Promise<void>;
  /** A statement among the others. */
  ask: Ask;
  /** The database's time, as far as it can be told from here. */
  now(at: number): number;
  /** The database is away, and this node goes on alone. */
  readonly apart: boolean;
  /** `goodbye`: what is open may be settled by others at once. */
  end(goodbye: boolean): Promise<void>;
}

export interface WriterSettings extends Gate {
  readonly leaseMs: number;
  /** How it goes on while the database is away; undefined: it does not. */
  readonly away?: Apart | undefined;
  /** A budget that so many gateways draw on at once is counted in slices; 0, or undefined: none is. */
  readonly slicesFrom?: number | undefined;
  /** Where it may keep what it was told; undefined: in memory alone. */
  readonly folder?: (() => string) | undefined;
  /** What `folder` is on. Default: the operating system's files. */
  readonly disk?: Disk;
  /** "command": limits count by what commands say. For tests, whose calls are of other years. */
  readonly clock: "database" | "command";
}
