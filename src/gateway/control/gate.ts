// The one way to every command, whichever door it came in by: the command is known, its giver's role is high enough, what it says has
// the right form and is of its account; and what changes anything is written down first.
import type { Schema } from "../../config/dialect.ts";
import { oneByOne } from "../../lib/one-by-one.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { Auditing } from "./auditing.ts";
import type { Looks } from "./looks.ts";
import { etagOf } from "./etag.ts";
import { type Giver, isRole, mustBeRole } from "./giver.ts";
import { acceptedInput, present } from "./input.ts";
import { kept, mustBeScoped, narrowed, type ScopeWorld } from "./scoping.ts";
import type { ControlCommand, ControlCommandsOf } from "./socket.ts";
import type { CommandFacts } from "./command-facts.ts";
import { COMMANDS } from "./table.ts";

/** A command of the table or of a plugin, and what it does. */
export interface KnownCommand {
  readonly name: string;
  readonly facts: Omit<CommandFacts, "cli" | "onFiles">;
  readonly run: ControlCommand;
}

export interface GateOf {
  readonly commands: ControlCommandsOf;
  /** Those that plugins bring, as they are mounted now. */
  readonly own: {
    /** Undefined: it is no name of a plugin's command. */
    find(name: string): KnownCommand | undefined;
    all(): readonly KnownCommand[];
  };
  readonly world: ScopeWorld;
  readonly auditing: Auditing;
  /** Where no gateway runs there is none. */
  readonly looks?: Pick<Looks, "count">;
}

/** What is asked for beside the input. */
export interface GivenWith {
  /** It is changed only if it is as this says, as `etagOf` made it of the reading. */
  readonly ifMatch?: string | undefined;
  /**
   * Executes a command that is repeated once only. Called after role, input, and account have been checked, so a replayed result
   * passes the same checks as the first one; `said` is the input that the principal was narrowed to.
   */
  readonly once?:
    | ((said: JsonObject, work: () => Promise<unknown>) => Promise<unknown>)
    | undefined;
}

const FACTS: Readonly<Record<string, CommandFacts>> = COMMANDS;

export class CommandGate {
  readonly #of: GateOf;
  readonly #inTurn = oneByOne();

  constructor(of: GateOf) {
    this.#of = of;
  }

  /** Fails in words for a plugin's command that there is not. */
  known(name: string): KnownCommand | undefined {
    const { commands, own } = this.#of;
    if (Object.hasOwn(commands, name)) return { name, facts: FACTS[name]!, run: commands[name]! };
    return own.find(name);
  }

  /** Whether such a giver may give it at all. */
  may({ role, within }: Giver, facts: KnownCommand["facts"]): boolean {
    return isRole(role, facts.role) && (within === undefined || facts.within !== undefined);
  }

  /** All of them, the gateway's own first. */
  list(): readonly KnownCommand[] {
    const { commands, own } = this.#of;
    return [...Object.keys(commands).map((name) => this.known(name)!), ...own.all()];
  }

  async give(
    name: string,
    input: JsonObject,
    giver: Giver,
    given: GivenWith = {},
  ): Promise<unknown> {
    const command = this.known(name) ?? unknown(name);
    const { facts } = command;
    mustBeRole(giver, facts.role);
    mustBeScoped(facts, giver);
    const accepted = acceptedInput(facts.input as Schema, present(input));
    const said = await narrowed(facts, accepted, giver, this.#of.world);
    if (facts.counted) this.#of.looks?.count(name, giver);
    const run = () => this.#run(command, said, giver, given);
    const work = () => (facts.inTurn ? this.#inTurn(run) : run());
    const answer = await (given.once ? given.once(said, work) : work());
    return kept(facts, answer, giver, this.#of.world);
  }

  async #run(
    { name, run, facts }: KnownCommand,
    said: JsonObject,
    giver: Giver,
    { ifMatch }: GivenWith,
  ): Promise<unknown> {
    const before = await this.#before(facts, said, giver);
    if (ifMatch !== undefined) mustMatch(before, ifMatch);
    if (!facts.writes) return run(said, giver);
    const { unsaid = [], changes } = facts;
    const id = facts.creates?.();
    const target = id ?? (changes && said[changes.target]);
    const after = { ...said };
    for (const member of unsaid) delete after[member];
    for (const [member, schema] of Object.entries((facts.input as Schema)["properties"] ?? {}))
      if ((schema as Schema)["x-secret"]) delete after[member];
    return this.#of.auditing.through(
      { command: name, target: typeof target === "string" ? target : undefined, before, after },
      giver,
      () => run(said, giver, id),
    );
  }

  /** What it is about, as it is now; undefined: no command reads it. */
  async #before(
    { changes }: KnownCommand["facts"],
    said: JsonObject,
    giver: Giver,
  ): Promise<unknown> {
    const read = changes?.read === undefined ? undefined : this.#of.commands[changes.read];
    // One that is not there is the command's own to tell.
    return read?.({ [changes!.target]: said[changes!.target]! }, giver).catch(() => undefined);
  }
}

const unknown = (name: string): never =>
  fail("not_found", `This gateway does not know the command "${name}".`, {
    code: "unknown_command",
  });

function mustMatch(before: unknown, ifMatch: string): void {
  if (before === undefined)
    fail("invalid", "If-Match goes with commands that change what can be read alone.", {
      code: "no_etag",
    });
  const now = etagOf(before);
  if (ifMatch.trim() === "*" || ifMatch.split(",", 100).some((each) => each.trim() === now)) return;
  fail("conflict", "It was changed since you read it. Read it again, and decide then.", {
    code: "changed_since",
  });
}
