// Executes every command, whichever interface it arrived at. Checks that the command exists, that
// the principal's role is sufficient, that the input is valid, and that the input concerns the
// principal's account. Changes are written to the audit log before they take effect.
import type { Schema } from "../../config/schema-dialect.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { CommandAudit } from "./command-audit.ts";
import {
  type CommandPrincipal,
  hasRole,
  assertRole,
  principalId,
} from "../../runtime/access/principal.ts";
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
import { hash } from "node:crypto";
import { jsonReplacer } from "../socket/control-client.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";

/**
 * Runs tasks one after another, even if one fails. No other task runs between the reads and writes
 * of a task.
 */
function createSerialQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => {});
    return mine;
  };
}

/** A command of the gateway or of a plugin, with its handler. */
export interface RegisteredCommand {
  readonly name: string;
  readonly spec: Omit<CommandSpec, "cli" | "worksOffline">;
  readonly run: CommandHandler;
}

export interface DispatcherOptions {
  readonly commands: CommandHandlerMap;
  /** Commands of the plugins that are mounted now. */
  readonly pluginCommands: {
    /** Returns undefined if no plugin has a command of this name. */
    find(name: string): RegisteredCommand | undefined;
    all(): readonly RegisteredCommand[];
  };
  readonly scopes: ScopeDirectory;
  readonly audit: CommandAudit;
  /** Unset if no gateway runs. */
  readonly accessCounter?: Pick<AccessCounter, "count">;
}

/** Options of a command call besides its input. */
export interface DispatchOptions {
  /** ETag from `createEtag`. The record is changed only if its current ETag is the same. */
  readonly ifMatch?: string | undefined;
  /**
   * Executes a repeated command only once. Called after role, input, and account have been checked,
   * so that a replayed result passes the same checks as the first result. `scopedInput` is
   * the input after it was narrowed to the principal's account.
   */
  readonly runOnce?:
    | ((scopedInput: JsonObject, work: () => Promise<unknown>) => Promise<unknown>)
    | undefined;
}

const SPECS: Readonly<Record<string, CommandSpec>> = COMMAND_SPECS;

export class CommandDispatcher {
  readonly #options: DispatcherOptions;
  readonly #runSerially = createSerialQueue();

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  /**
   * Returns a command. Throws an error with an explanation if a plugin's command does not exist.
   */
  find(name: string): RegisteredCommand | undefined {
    const { commands, pluginCommands } = this.#options;
    if (Object.hasOwn(commands, name)) return { name, spec: SPECS[name]!, run: commands[name]! };
    return pluginCommands.find(name);
  }

  /** Whether the principal may use the command at all. */
  isAllowed({ role, account }: CommandPrincipal, facts: RegisteredCommand["spec"]): boolean {
    return hasRole(role, facts.role) && (account === undefined || facts.accountScope !== undefined);
  }

  /** Returns all commands, the gateway's own first. */
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

  /** Reads the record that the command changes. Undefined if no command reads the record. */
  async #readBefore(
    { changedRecord }: RegisteredCommand["spec"],
    raw: JsonObject,
    principal: CommandPrincipal,
  ): Promise<unknown> {
    const read =
      changedRecord?.readCommand === undefined
        ? undefined
        : this.#options.commands[changedRecord.readCommand];
    // The command itself reports a missing record.
    return read?.({ [changedRecord!.idMember]: raw[changedRecord!.idMember]! }, principal).catch(
      () => undefined,
    );
  }
}

const failUnknownCommand = (name: string): never =>
  fail("not_found", `Unknown command "${name}".`, {
    code: "unknown_command",
  });

function assertIfMatch(before: unknown, ifMatch: string): void {
  if (before === undefined)
    fail("invalid", "If-Match is allowed only for commands that change a single readable object.", {
      code: "no_etag",
    });
  const now = createEtag(before);
  if (ifMatch.trim() === "*" || ifMatch.split(",", 100).some((each) => each.trim() === now)) return;
  fail("conflict", "The object was changed after you read it. Read it again and retry.", {
    code: "version_conflict",
  });
}

// Computes the ETag of a result, so that a client can make a change only if the record is
// unchanged.

/**
 * Returns the ETag. If the records have versions, only the versions count, because spending does
 * not change a key.
 */
export function createEtag(answer: unknown): string {
  const versions = listVersions(answer);
  const content = versions.length > 0 ? versions : answer;
  return `"${hash("sha256", JSON.stringify(content ?? null, jsonReplacer)).slice(0, 32)}"`;
}

/** Returns the IDs and versions of the records in an answer. */
function listVersions(answer: unknown): readonly unknown[] {
  if (typeof answer !== "object" || answer === null) return [];
  return Object.values(answer)
    .flat()
    .filter((each): each is { id: unknown; version: unknown } => each?.version !== undefined)
    .map(({ id, version }) => [id, version]);
}

// Counts how often each principal has read individual requests. Which requests they were is not
// recorded.

interface AccessCount {
  readonly actor: string;
  readonly command: string;
  readonly count: number;
  /** Time of the last access, in Unix milliseconds. */
  readonly lastAt: number;
}

/** Maximum number of principals, per process. The oldest are dropped first. */
const MAX_COUNTS = 1_000;

export class AccessCounter {
  readonly #now: () => number;
  readonly #counts = new BoundedMap<string, AccessCount>(MAX_COUNTS);

  constructor(now: () => number) {
    this.#now = now;
  }

  count(command: string, principal: CommandPrincipal): void {
    const id = JSON.stringify([principalId(principal), command]);
    const count = (this.#counts.get(id)?.count ?? 0) + 1;
    this.#counts.set(id, { actor: principal.name, command, count, lastAt: this.#now() });
  }

  /** Returns the counts, highest first. */
  list(): readonly AccessCount[] {
    return this.#counts
      .entries()
      .map(([, each]) => each)
      .toSorted((a, b) => b.count - a.count);
  }
}
