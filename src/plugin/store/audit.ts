// The audit log of a store. Each change that an operator requested is recorded before it takes
// effect, and its outcome afterwards.
import type { Json, Opt } from "../../model/values.ts";
import type { Role } from "../role.ts";

/**
 * Record of one command that can change data. It contains no secrets, and no personal data except
 * the name of the actor.
 */
export interface AuditEntry {
  /** ID of the entry, which `AuditEnd` refers to. */
  readonly id: string;
  /** Time at which the command was given, in Unix milliseconds. */
  readonly at: number;
  /** Name of the actor: "shell", or the name of an admin token such as "admin:anna". */
  readonly actor: string;
  /** Role of the actor when the command was given. */
  readonly role: Role;
  /** Channel through which the command arrived: "socket", "files", "token", or "session". */
  readonly channel: string;
  /** Network address of the client, for commands that came over the admin listener. */
  readonly address?: Opt<string>;
  /** Name of the command, such as `keys.create`. */
  readonly command: string;
  /** Object of the command, such as the ID of a key or a file. */
  readonly target?: Opt<string>;
  /** Value before the change. */
  readonly before?: Opt<Json>;
  /** Requested value. */
  readonly after?: Opt<Json>;
}

/** Outcome of a command. */
export interface AuditEnd {
  /** ID of the entry that ended. */
  readonly id: string;
  /** Time at which the command ended, in Unix milliseconds. */
  readonly at: number;
  /** Whether the command took effect. */
  readonly outcome: "done" | "failed";
  /** Code of the error, if the command failed. */
  readonly code?: Opt<string>;
}

/**
 * A command in the form in which the log lists it. The outcome "unknown" means that the gateway
 * ended before it recorded the outcome, so the command may or may not have taken effect.
 */
export interface AuditedCommand extends AuditEntry {
  /** Whether the command took effect. */
  readonly outcome: AuditEnd["outcome"] | "unknown";
  /** Code of the error, if the command failed. */
  readonly code?: Opt<string>;
}

/**
 * The part of a store that keeps the audit log. A store whose rows form a hash chain includes these
 * records in the chain, and keeps them when other rows are pruned.
 */
export interface AuditLog {
  /**
   * Records a command before it takes effect. The record is durable when the promise resolves. If
   * it rejects, the command is rejected and has no effect.
   */
  begin(entry: AuditEntry): Promise<void>;
  /**
   * Records the outcome when the command took effect or failed. The host logs a rejection, and the
   * command is listed as "unknown".
   */
  end(end: AuditEnd): Promise<void>;
  /** Lists commands, the newest first. `after` is the `next` of an earlier page. */
  list(page?: {
    after?: Opt<string>;
    limit?: Opt<number>;
  }): Promise<{ items: readonly AuditedCommand[]; next?: Opt<string> }>;
}
