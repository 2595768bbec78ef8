// Types of a command specification.
import type { PluginCommand } from "../../plugin/plugin.ts";
import type { Role } from "../../plugin/role.ts";

/** A command specification. It has the same members as a plugin's command. */
export interface CommandSpec extends Required<Omit<PluginCommand, "run" | "runsBeforeOpen">> {
  readonly role: Role;
  /**
   * How principals that are limited to one account are restricted. If unset, they cannot use this
   * command.
   */
  readonly accountScope?: AccountScopeRule;
  /** Set for commands that change an existing record. */
  readonly changedRecord?: ChangedRecord;
  /**
   * Whether uses are counted per principal and shown with the audit log, because the command reads
   * data of individual client requests.
   */
  readonly countsAccess?: true;
  /**
   * Whether the command writes what depends on its reads. Such commands run one after another, so
   * that nothing changes in between.
   */
  readonly isSerialized?: true;
  /**
   * Creates the ID of the new record in advance, so that the audit log can name it before it
   * exists.
   */
  readonly createId?: () => string;
  /** Input members that are never logged, such as text to be erased. */
  readonly redactedInput?: readonly string[];
  /** Command-line words that run the command. Undefined if there are none. */
  readonly cli: string | undefined;
  /** Whether the command line can run it on the files while no gateway runs. */
  readonly worksOffline: boolean;
}

/**
 * Restrictions for principals that are limited to one account. They are applied before and after
 * the command runs, in one place for all commands.
 */
export interface AccountScopeRule {
  /** Input member that names an account. It must be the principal's account or one below it. */
  readonly accountMember?: string;
  /** Whether the principal's account is the default of that member. */
  readonly defaultsToOwn?: true;
  /**
   * Input member that names a key of such an account. It is resolved to an ID before the command
   * runs.
   */
  readonly keyMember?: string;
  /**
   * List in the answer that is filtered by account, and the member of its items that contains the
   * account.
   */
  readonly filteredList?: readonly [list: string, by: string];
  /** Lists in the answer that are emptied, because they contain data of other accounts. */
  readonly emptiedLists?: readonly string[];
  /** The only members of the answer that are shown. Default: all. */
  readonly shownMembers?: readonly string[];
}

/**
 * The record that a command changes. It is read before the change, for the audit log and for
 * `If-Match`.
 */
export interface ChangedRecord {
  /** Input member that identifies the record. */
  readonly idMember: string;
  /** Command that reads the record by the same member. */
  readonly readCommand?: string;
}
