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
   * Whether uses are counted per principal and shown with the audit log. Set if the command reads
   * data of individual client requests.
   */
  readonly countsAccess?: true;
  /**
   * Whether the command writes data that depends on its reads. Such commands run one after another,
   * so that nothing changes between their reads and writes.
   */
  readonly isSerialized?: true;
  /**
   * Creates the ID of the new record in advance, so that the audit log can name it before it
   * exists.
   */
  readonly createId?: () => string;
  /** Input members that are never logged, for example text to erase. */
  readonly redactedInput?: readonly string[];
  /** The command on the command line. Undefined if the command is not available there. */
  readonly cli: CliSpec | undefined;
  /**
   * Data that the command reads while no gateway is running: the files of the store, or the config
   * in gateway.yaml. `false` if the command needs a running gateway.
   */
  readonly worksOffline: "store" | "config" | false;
}

/** The command-line form of a command. Its options come from the input schema. */
export interface CliSpec {
  /** Words after "tollgate": "keys create". */
  readonly words: string;
  /** Description of the command, in the third person. */
  readonly description: string;
  /** Input members that are positional arguments, in order. All other members are options. */
  readonly args?: readonly string[];
  readonly examples: readonly string[];
  /** Condition for an exit code other than 0, apart from errors: "Exits with 1 if …". */
  readonly exits?: string;
}

/** The `x-cli` keyword of an input member: how the command line writes it. */
export interface CliField {
  /** Name of the option. Default: the name of the member, with dashes. */
  readonly flag?: string;
  readonly short?: string;
  /** Whether the command line has no option for the member. */
  readonly hidden?: true;
  /** Placeholder of the value: "name". */
  readonly value?: string;
  /** Description, if the option differs from the member. */
  readonly description?: string;
  /** How the value is read, if the schema does not determine it. */
  readonly form?: CliForm;
}

/**
 * Form of a value on the command line.
 *
 * - `time`: a time in the past, as a duration ago or a date
 * - `expiry`: a time in the future
 * - `duration`: milliseconds
 * - `path`: a file
 * - `names`: a list, separated by commas
 * - `limits`, `defaults`, `labels`: lists
 * - `negated`: a flag that sets the member to false
 */
export type CliForm =
  | "time"
  | "expiry"
  | "duration"
  | "path"
  | "names"
  | "limits"
  | "defaults"
  | "labels"
  | "negated";

/**
 * Restrictions for principals that are limited to one account. The dispatcher applies them before
 * and after the command runs, for all commands.
 */
export interface AccountScopeRule {
  /**
   * Input member that names an account. The account must be the principal's account or an account
   * nested under it.
   */
  readonly accountMember?: string;
  /** Whether the principal's account is the default of that member. */
  readonly defaultsToOwn?: true;
  /**
   * Input member that names a key of such an account. The key is resolved to its ID before the
   * command runs.
   */
  readonly keyMember?: string;
  /**
   * List in the result that is filtered by account, and the member of its items that contains the
   * account.
   */
  readonly filteredList?: readonly [list: string, by: string];
  /** Lists in the result that are emptied, because they contain data of other accounts. */
  readonly emptiedLists?: readonly string[];
  /** The only members of the result that are shown. Default: all. */
  readonly shownMembers?: readonly string[];
}

/**
 * The record that a command changes. The record is read before the change, for the audit log and
 * for `If-Match`.
 */
export interface ChangedRecord {
  /** Input member that identifies the record. */
  readonly idMember: string;
  /** Command that reads the record by the same member. */
  readonly readCommand?: string;
}
