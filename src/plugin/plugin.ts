import type { Json, JsonObject } from "../model/values.ts";
import type { Context } from "./context.ts";
import type { Problem } from "./problem.ts";
import type { Role } from "./role.ts";
import type { JSONSchema } from "json-schema-to-ts";
import type { Infer, ObjectSchema } from "./schema.ts";

/** What every plugin says of itself. Importing a plugin must have no side effects. */
export interface Plugin<O extends ObjectSchema> {
  /** The contract's version; it changes only when the contract breaks. */
  api: 1;
  /** The first version of Tollgate that has what it uses: "1.3". An older one refuses it, and says so. Absent: any that speaks its api. */
  since?: string;
  /** Lower case, dashes: what `use:` says. */
  name: string;
  /** One line, for `list` and for hovering in an editor. */
  summary: string;
  /** What an author promises of it. Absent: experimental. */
  stability?: Stability;
  /** What it says of others that was neither tried nor read at the source, a word each: `tollgate list` names them. */
  unverified?: readonly string[];
  /**
   * Draft-07. Every option described, secrets `x-secret: true`; absent = takes none. A path has `x-path: true`: the plugin gets it
   * absolute, resolved against the folder of the file in which the operator wrote it.
   */
  options?: O;
  /** What it reaches beyond the public internet. */
  needs?: Needs<Infer<O>>;
  /** What a schema cannot say. Pure: no I/O, runs under `tollgate check`. */
  check?(options: Infer<O>): Iterable<Problem>;
}

/**
 * What a plugin needs of the machine and the network: what is not named here is refused. `tollgate plugin <id>` and
 * `tollgate list` show it. `ctx.fetch` and a provider's line dial the public internet and what is named in `origins` or in an
 * option that the schema marks `x-origin: true`; everything else is refused, also when one of these redirects there.
 */
export interface Needs<O> {
  /**
   * Addresses whose origins are dialled as they are, on a private network too. A function sees the operator's options, and by `env`
   * the variables that `env` of these needs names, for platforms that give an address so; it is pure otherwise, and a throw refuses
   * the config.
   */
  origins?:
    | readonly string[]
    | ((options: O, env: (name: string) => string | undefined) => readonly string[]);
  /**
   * The addresses at which a cloud gives the machine its credentials (169.254.169.254 and its like). Without it they are dialled
   * by no way, even where an operator's option names one.
   */
  metadata?: true;
  /** The environment variables that `ctx.env` reads. */
  env?: readonly string[];
  /** Files, and folders with all that is in them, that `ctx.readFile` reads: absolute, or relative to gateway.yaml. A function as for `origins`. */
  files?: readonly string[] | ((options: O) => readonly string[]);
}

/** How much its author promises. Absent is experimental. `tollgate list` shows it. */
export type Stability = "experimental" | "beta" | "stable" | "deprecated";

/** A command that a plugin brings. The gateway describes its own in the same words. */
export interface PluginCommand {
  /** One line, for lists of commands. */
  readonly summary: string;
  /** Checked before `run`, with defaults filled in. Absent: it takes nothing. */
  readonly input?: ObjectSchema;
  /** What it answers, for programs that ask. It may answer more. Absent: any JSON. */
  readonly output?: JSONSchema;
  /** The least that its giver must be. Absent: owner. */
  readonly role?: Role;
  /** Whether it changes anything. Absent: it may. */
  readonly writes?: boolean;
  /**
   * Of a store: while no gateway runs it is run before `open`, as what brings a database to the form that `open` asks for. Absent: the store
   * is opened first.
   */
  readonly runsBeforeOpen?: boolean;
  /** Called by the host for each command that is given. What it throws is the answer; a fault is said as it is. */
  run(input: JsonObject): Promise<Json>;
}

/** `tollgate plugin <id> <command>` (id: the path in gateway.yaml), and the same on the control socket: the only way a plugin adds to either. */
export interface Commands {
  /** Commands of the plugin, by name. */
  commands?: { readonly [name: string]: PluginCommand };
}

/**
 * Called by the host once for each generation, before that answers. It takes what it needs through the context and calls no
 * upstream. A throw, or more than 10 s, refuses the config: the old generation goes on, and what `ctx` owns is ended.
 */
export type Setup<O extends ObjectSchema, T> = (
  options: Infer<O>,
  ctx: Context,
) => (T & Commands) | Promise<T & Commands>;
