// The one way to every command, whichever door it came in by: the command is known, its giver's role is high enough, what it says has
// the right form and is of its account; and what changes anything is written down first.
import type { Schema } from "../../config/schema-dialect.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { CommandAudit } from "./command-audit.ts";
import type { AccessCounter } from "./access-counter.ts";
import { createEtag } from "./etag.ts";
import { type CommandPrincipal, hasRole, assertRole } from "../../runtime/access/principal.ts";
import { validateInput, omitUndefined } from "./command-input.ts";
import {
  filterOutput,
  assertScopable,
  narrowInput,
  type ScopeDirectory,
} from "./account-scoping.ts";
import type { CommandHandler, CommandHandlerMap } from "../socket/control-socket.ts";
import type { CommandSpec } from "../schema/command-spec.ts";
import { COMMAND_SPECS } from "../schema/command-specs.ts";

/** Each piece of work begins when the one before it has ended, however that was: between what it reads and what it writes nothing changes. */
function createSerialQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => {});
    return mine;
  };
}

/** A command of the table or of a plugin, and what it does. */
export interface RegisteredCommand {
  readonly name: string;
  readonly spec: Omit<CommandSpec, "cli" | "worksOffline">;
  readonly run: CommandHandler;
}

export interface DispatcherOptions {
  readonly commands: CommandHandlerMap;
  /** Those that plugins bring, as they are mounted now. */
  readonly pluginCommands: {
    /** Undefined: it is no name of a plugin's command. */
    find(name: string): RegisteredCommand | undefined;
    all(): readonly RegisteredCommand[];
  };
  readonly scopes: ScopeDirectory;
  readonly audit: CommandAudit;
  /** Where no gateway runs there is none. */
  readonly accessCounter?: Pick<AccessCounter, "count">;
}

/** What is asked for beside the input. */
export interface DispatchOptions {
  /** It is changed only if it is as this says, as `etagOf` made it of the reading. */
  readonly ifMatch?: string | undefined;
  /**
   * Executes a command that is repeated once only. Called after role, input, and account have been checked, so a replayed result
   * passes the same checks as the first one; `said` is the input that the principal was narrowed to.
   */
  readonly runOnce?:
    | ((said: JsonObject, work: () => Promise<unknown>) => Promise<unknown>)
    | undefined;
}

const SPECS: Readonly<Record<string, CommandSpec>> = COMMAND_SPECS;

export class CommandDispatcher {
  readonly #options: DispatcherOptions;
  readonly #runSerially = createSerialQueue();

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  /** Fails in words for a plugin's command that there is not. */
  find(name: string): RegisteredCommand | undefined {
    const { commands, pluginCommands } = this.#options;
    if (Object.hasOwn(commands, name)) return { name, spec: SPECS[name]!, run: commands[name]! };
    return pluginCommands.find(name);
  }

  /** Whether such a giver may give it at all. */
  isAllowed({ role, account }: CommandPrincipal, facts: RegisteredCommand["spec"]): boolean {
    return hasRole(role, facts.role) && (account === undefined || facts.accountScope !== undefined);
  }

  /** All of them, the gateway's own first. */
  list(): readonly RegisteredCommand[] {
    const { commands, pluginCommands } = this.#options;
    return [...Object.keys(commands).map((name) => this.find(name)!), ...pluginCommands.all()];
  }

  async dispatch(
    name: string,
    input: JsonObject,
    principal: CommandPrincipal,
    given: DispatchOptions = {},
  ): Promise<unknown> {
    const command = this.find(name) ?? failUnknownCommand(name);
    const { spec } = command;
    assertRole(principal, spec.role);
    assertScopable(spec, principal);
    const accepted = validateInput(spec.input as Schema, omitUndefined(input));
    const scopedInput = await narrowInput(spec, accepted, principal, this.#options.scopes);
    if (spec.countsAccess) this.#options.accessCounter?.count(name, principal);
    const run = () => this.#run(command, scopedInput, principal, given);
    const work = () => (spec.isSerialized ? this.#runSerially(run) : run());
    const answer = await (given.runOnce ? given.runOnce(scopedInput, work) : work());
    return filterOutput(spec, answer, principal, this.#options.scopes);
  }

  async #run(
    { name, run, spec }: RegisteredCommand,
    raw: JsonObject,
    principal: CommandPrincipal,
    { ifMatch }: DispatchOptions,
  ): Promise<unknown> {
    const before = await this.#readBefore(spec, raw, principal);
    if (ifMatch !== undefined) assertIfMatch(before, ifMatch);
    if (!spec.writes) return run(raw, principal);
    const { redactedInput = [], changedRecord } = spec;
    const id = spec.createId?.();
    const target = id ?? (changedRecord && raw[changedRecord.idMember]);
    const after = { ...raw };
    for (const member of redactedInput) delete after[member];
    for (const [member, schema] of Object.entries((spec.input as Schema)["properties"] ?? {}))
      if ((schema as Schema)["x-secret"]) delete after[member];
    return this.#options.audit.run(
      { command: name, target: typeof target === "string" ? target : undefined, before, after },
      principal,
      () => run(raw, principal, id),
    );
  }

  /** What it is about, as it is now; undefined: no command reads it. */
  async #readBefore(
    { changedRecord }: RegisteredCommand["spec"],
    raw: JsonObject,
    principal: CommandPrincipal,
  ): Promise<unknown> {
    const read =
      changedRecord?.readCommand === undefined
        ? undefined
        : this.#options.commands[changedRecord.readCommand];
    // One that is not there is the command's own to tell.
    return read?.({ [changedRecord!.idMember]: raw[changedRecord!.idMember]! }, principal).catch(
      () => undefined,
    );
  }
}

const failUnknownCommand = (name: string): never =>
  fail("not_found", `This gateway does not know the command "${name}".`, {
    code: "unknown_command",
  });

function assertIfMatch(before: unknown, ifMatch: string): void {
  if (before === undefined)
    fail("invalid", "If-Match goes with commands that change what can be read alone.", {
      code: "no_etag",
    });
  const now = createEtag(before);
  if (ifMatch.trim() === "*" || ifMatch.split(",", 100).some((each) => each.trim() === now)) return;
  fail("conflict", "It was changed since you read it. Read it again, and decide then.", {
    code: "version_conflict",
  });
}
