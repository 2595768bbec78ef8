import type { Json, JsonObject } from "../model/values.ts";
import type { Context } from "./context.ts";
import type { Problem } from "./problem.ts";
import type { Role } from "./role.ts";
import type { JSONSchema } from "json-schema-to-ts";
import type { Infer, ObjectSchema } from "./schema.ts";

/**
 * Members that the definition of every plugin has. Importing a plugin must have no side effects.
 */
export interface Plugin<O extends ObjectSchema> {
  /**
   * Version of the plugin contract. It increases only with incompatible changes of the contract.
   */
  api: 1;
  /**
   * First version of Tollgate that supports all features that the plugin uses, such as "1.3". An
   * older gateway rejects the plugin with an explanatory error. Default: any version with this
   * `api`.
   */
  since?: string;
  /** Name that `use:` refers to, in lower case with dashes. */
  name: string;
  /** Description in one line, for `tollgate list` and for tooltips in editors. */
  summary: string;
  /** Stability that the author of the plugin promises. Default: experimental. */
  stability?: Stability;
  /**
   * Claims of the plugin about other systems that were neither tested nor checked in their source,
   * one word each. `tollgate list` shows them.
   */
  unverified?: readonly string[];
  /**
   * JSON schema (draft-07) of the options. Describe every option, and mark secrets with `x-secret:
   * true`. Mark a path with `x-path: true`: the plugin receives it as an absolute path, resolved
   * against the folder of the file that contains it. Default: the plugin takes no options.
   */
  options?: O;
  /** Access that the plugin needs beyond the public internet. */
  needs?: Needs<Infer<O>>;
  /**
   * Returns problems that a schema cannot express. It must be pure and do no I/O, because `tollgate
   * check` runs it.
   */
  check?(options: Infer<O>): Iterable<Problem>;
}

/**
 * Access to the machine and the network that a plugin needs. Access that is not listed here is
 * denied. `tollgate plugin <id>` and `tollgate list` show the list.
 *
 * `ctx.fetch` and requests of a provider can reach the public internet, the addresses in `origins`,
 * and the addresses in options that the schema marks with `x-origin: true`. All other addresses are
 * rejected, even if one of these addresses redirects to them.
 */
export interface Needs<O> {
  /**
   * Addresses whose origins can also be reached on a private network. A function receives the
   * operator's options, and `env` reads the variables that `env` in these needs lists, for
   * platforms that provide an address in a variable. Except for these effects, the function must be
   * pure. If the function throws, the config is rejected.
   */
  origins?:
    | readonly string[]
    | ((options: O, env: (name: string) => string | undefined) => readonly string[]);
  /**
   * Whether the plugin can reach the addresses at which a cloud provides the machine's credentials,
   * such as 169.254.169.254. If unset, these addresses cannot be reached, even if an operator's
   * option contains one of them.
   */
  metadata?: true;
  /** Environment variables that `ctx.env` can read. */
  env?: readonly string[];
  /**
   * Files, and folders with all their contents, that `ctx.readFile` can read. Paths are absolute or
   * relative to gateway.yaml. A function is called as for `origins`.
   */
  files?: readonly string[] | ((options: O) => readonly string[]);
}

/** Stability that a plugin's author promises. Default: experimental. `tollgate list` shows it. */
export type Stability = "experimental" | "beta" | "stable" | "deprecated";

/** A command that a plugin adds. The gateway describes its own commands with the same type. */
export interface PluginCommand {
  /** Description in one line, for lists of commands. */
  readonly summary: string;
  /**
   * Schema of the input, which is checked before `run`, with defaults filled in. Default: the
   * command takes no input.
   */
  readonly input?: ObjectSchema;
  /**
   * Schema of the result, for programs that call the command. The result may have further members.
   * Default: any JSON.
   */
  readonly output?: JSONSchema;
  /** Minimum role of the caller. Default: owner. */
  readonly role?: Role;
  /** Whether the command can change data. Default: true. */
  readonly writes?: boolean;
  /**
   * Whether a store's command runs before `open` while no gateway is running, such as a migration
   * that brings a database to the schema that `open` requires. Default: the store is opened first.
   */
  readonly runsBeforeOpen?: boolean;
  /**
   * Runs the command. The host calls it for each invocation. If it throws, the error is the result;
   * a fault is reported with its own message.
   */
  run(input: JsonObject): Promise<Json>;
}

/**
 * Commands that a plugin adds. Run them with `tollgate plugin <id> <command>`, where the ID is the
 * path in gateway.yaml, or over the control socket. A plugin can extend the command line and the
 * socket only with commands of this form.
 */
export interface Commands {
  /** Commands of the plugin, by name. */
  commands?: { readonly [name: string]: PluginCommand };
}

/**
 * Creates one instance of a plugin. The host calls it once per config generation, before the
 * generation serves requests. The function uses the context for everything it needs and does not
 * call a provider. If it throws or takes longer than 10 s, the config is rejected: the old
 * generation stays in use, and all resources of `ctx` are released.
 */
export type Setup<O extends ObjectSchema, T> = (
  options: Infer<O>,
  ctx: Context,
) => (T & Commands) | Promise<T & Commands>;
