// What the table says of a command.
import type { PluginCommand } from "../../plugin/plugin.ts";
import type { Role } from "../../plugin/role.ts";

/** A plugin's command and one of the gateway's are described by the same words. */
export interface CommandSpec extends Required<Omit<PluginCommand, "run" | "runsBeforeOpen">> {
  readonly role: Role;
  /** How a giver that is held to one account is held to it. Absent: it may not give this command. */
  readonly accountScope?: AccountScopeRule;
  /** Of a command that changes something that is there. */
  readonly changedRecord?: ChangedRecord;
  /** How often each giver gave it is counted, and shown with the audit log: it reads what is of one client's request. */
  readonly countsAccess?: true;
  /** It writes what follows from what it reads: those are done one after another, so that nothing changes in between. */
  readonly isSerialized?: true;
  /** Makes the ID of what it creates, so that the audit log can name it before it is there. */
  readonly createId?: () => string;
  /** Members of its input that are in no log: text that is to be gone, say. */
  readonly redactedInput?: readonly string[];
  /** The words of the command line that give it; undefined: it has none. */
  readonly cli: string | undefined;
  /** Whether the command line answers it from the files while no gateway runs. */
  readonly worksOffline: boolean;
}

/**
 * What a giver that is held to one account may say, and what it is shown. All of it is done before the command is run, and after it,
 * in one place for all commands.
 */
export interface AccountScopeRule {
  /** The member of its input that names an account: the giver's own, or one below that. */
  readonly accountMember?: string;
  /** Where that is absent, it is the giver's own. */
  readonly defaultsToOwn?: true;
  /** The member of its input that names a key: one of such an account. It is an id when the command is run. */
  readonly keyMember?: string;
  /** The list in its answer of which what is of such an account is kept, by this member of each. */
  readonly filteredList?: readonly [list: string, by: string];
  /** Members of its answer that speak of others too: lists that are emptied. */
  readonly emptiedLists?: readonly string[];
  /** The only members of its answer that are shown. Default: all. */
  readonly shownMembers?: readonly string[];
}

/** What it is about, and how that is read: before it is changed, for the log and for `If-Match`. */
export interface ChangedRecord {
  /** The member of its input that names it. */
  readonly idMember: string;
  /** The command that reads it, by the same member. */
  readonly readCommand?: string;
}
