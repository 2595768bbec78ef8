// What operators have done, as a store keeps it: each change before it takes effect, and how it ended.
import type { Json, Opt } from "../../model/values.ts";
import type { Role } from "../role.ts";

/** One command that changes something. No secret is in it, and no text that a person may be known by but the giver's own name. */
export interface AuditEntry {
  /** ID of the entry, which `AuditEnd` refers to. */
  readonly id: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** "shell", or an admin token's name: "admin:anna". */
  readonly actor: string;
  /** Role of the actor when the command was given. */
  readonly role: Role;
  /** Where it came in: "socket", "files", "token", "session". */
  readonly channel: string;
  /** Network address of the client, for commands that came over the admin listener. */
  readonly address?: Opt<string>;
  /** Name of the command, such as `keys.create`. */
  readonly command: string;
  /** What it is about: a key's id, a file. */
  readonly target?: Opt<string>;
  /** What was there. */
  readonly before?: Opt<Json>;
  /** What was asked for. */
  readonly after?: Opt<Json>;
}

/** How one ended. */
export interface AuditEnd {
  /** ID of the entry that ended. */
  readonly id: string;
  /** Time at which the command ended, in Unix milliseconds. */
  readonly at: number;
  /** Whether the command took effect. */
  readonly outcome: "done" | "failed";
  /** Of a failure, its code. */
  readonly code?: Opt<string>;
}

/** One as it is listed. "unknown": the gateway ended before it was told, so it may have taken effect or not. */
export interface AuditedCommand extends AuditEntry {
  /** Whether the command took effect. */
  readonly outcome: AuditEnd["outcome"] | "unknown";
  /** Code of the error, if the command failed. */
  readonly code?: Opt<string>;
}

/**
 * The part of a store that keeps this. A store of rows that prove themselves keeps these rows in the same proof, and keeps them when
 * other rows are pruned.
 */
export interface AuditLog {
  /**
   * Called by the host before a command takes effect. Durable when it resolves; a rejection refuses the command, and nothing has
   * happened then.
   */
  begin(entry: AuditEntry): Promise<void>;
  /** Called when it has taken effect, or has failed. A rejection is logged by the host; the command is listed as "unknown". */
  end(end: AuditEnd): Promise<void>;
  /** The newest first. `after`: a listing's `next`. */
  list(page?: {
    after?: Opt<string>;
    limit?: Opt<number>;
  }): Promise<{ items: readonly AuditedCommand[]; next?: Opt<string> }>;
}
