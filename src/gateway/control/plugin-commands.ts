// The commands that plugins bring with them: listed, and run by "<plugin id>/<command>". The same on the control socket of a
// running gateway and on its files. With workers they run in the primary, which has the store and builds every generation;
// what each process knows by itself a plugin asks of its peers.
import { NOTHING, type Schema } from "../../config/dialect.ts";
import { type DeclaredNeeds, needsOf, type NeedsPlace } from "../../config/needs.ts";
import type { GatewayConfig } from "../../config/types.ts";
import type { Mask } from "../../lib/mask.ts";
import { nearest } from "../../lib/text.ts";
import { fail, faultOf, sayable } from "../../model/error.ts";
import type { Commands, PluginCommand } from "../../plugin/plugin.ts";
import type { Store } from "../../plugin/store.ts";
import { acceptedInput, answering } from "./input.ts";
import type { GateOf, KnownCommand } from "./gate.ts";
import type { BuiltGeneration } from "../generation/build.ts";

/** A plugin's command, with what its author left out filled in. */
export interface ShownCommand extends Required<
  Omit<PluginCommand, "run" | "input" | "output" | "unopened">
> {
  readonly name: string;
  readonly input: Schema;
  readonly output: Schema;
}

/** A mounted plugin. */
export interface ShownPlugin {
  /** The path in gateway.yaml. */
  readonly id: string;
  readonly use: string;
  readonly summary: string;
  /** What it reaches beyond the public internet and its options. */
  readonly needs: ShownNeeds;
  readonly commands: readonly ShownCommand[];
}

/** As declared, with the operator's options put in. */
export interface ShownNeeds extends Pick<DeclaredNeeds, "metadata" | "env" | "files"> {
  readonly origins: readonly string[];
}

/** What is mounted now. */
export interface Mounts {
  readonly config: GatewayConfig;
  readonly built: BuiltGeneration;
  readonly store: Store & Commands;
  readonly mask: Mask;
  readonly env: NeedsPlace["env"];
}

export const pluginCommands = (mounts: () => Mounts) =>
  answering({ "plugins.list": async () => ({ plugins: shown(mounts()) }) });

/** Plugins' own commands, "<plugin id>/<command>": they come and go with what is mounted. */
export const mountedCommands = (mounts: () => Mounts): GateOf["own"] => ({
  find(name) {
    const slash = name.indexOf("/");
    if (slash < 0) return undefined;
    const now = mounts();
    const { plugin, command } = find(shown(now), name.slice(0, slash), name.slice(slash + 1));
    return knownOf(now, plugin, command);
  },
  all() {
    const now = mounts();
    return shown(now).flatMap((plugin) =>
      plugin.commands.map((command) => knownOf(now, plugin, command)),
    );
  },
});

const knownOf = (now: Mounts, { id }: ShownPlugin, command: ShownCommand): KnownCommand => {
  const { name, ...facts } = command;
  return {
    name: `${id}/${name}`,
    facts: facts as KnownCommand["facts"],
    run: async (input) => {
      const accepted = acceptedInput(command.input, input);
      try {
        return await commandsOf(now, id)[name]!.run(accepted);
      } catch (error) {
        if (faultOf(error)) throw error;
        return fail("internal", `${id} ${name} failed: ${now.mask.text(sayable(error))}`);
      }
    },
  };
};

/** By exact names; the nearest ones are for the sentence. */
export function find(plugins: readonly ShownPlugin[], id: string, name: string) {
  const plugin = findPlugin(plugins, id);
  const names = plugin.commands.map((each) => each.name);
  const command =
    plugin.commands.find((each) => each.name === name) ??
    fail(
      "not_found",
      names.length === 0
        ? `${id} has no commands. tollgate plugin lists which plugins have.`
        : `${id} has no command "${name}".${meant(name, names)} It has ${names.join(", ")}.`,
      { code: "unknown_command" },
    );
  return { plugin, command };
}

export function findPlugin(plugins: readonly ShownPlugin[], id: string): ShownPlugin {
  const ids = plugins.map((each) => each.id);
  // "usage" is a short way to say "middleware.usage" that could one day mean two.
  const near = nearest(id, ids) ?? ids.find((each) => each.endsWith(`.${id}`));
  return (
    plugins.find((each) => each.id === id) ??
    fail(
      "not_found",
      `No plugin is mounted as "${id}".${near === undefined ? "" : ` Did you mean "${near}"?`} tollgate plugin lists them.`,
      { code: "unknown_plugin" },
    )
  );
}

const meant = (word: string, known: readonly string[]): string => {
  const near = nearest(word, known);
  return near === undefined ? "" : ` Did you mean "${near}"?`;
};

const commandsOf = ({ built, store }: Mounts, id: string): NonNullable<Commands["commands"]> =>
  (id === "store" ? store.commands : built.commands.get(id)) ?? {};

const shownNeeds = ({ origins, metadata, env, files }: DeclaredNeeds): ShownNeeds => ({
  origins: [...origins],
  metadata,
  env,
  files,
});

function shown(now: Mounts): ShownPlugin[] {
  const place = { file: now.config.file, env: now.env };
  const { store, frontends, middleware, observers, providers } = now.config;
  return [store, ...frontends, ...middleware, ...observers, ...providers.values()].map(
    (mounted) => ({
      id: mounted.id,
      use: mounted.use,
      summary: mounted.definition.summary,
      needs: shownNeeds(needsOf(mounted.definition, mounted.options, place)),
      commands: Object.entries(commandsOf(now, mounted.id)).map(([name, command]) => ({
        name,
        summary: command.summary,
        input: (command.input as Schema | undefined) ?? NOTHING,
        output: (command.output as Schema | undefined) ?? {},
        role: command.role ?? "owner",
        writes: command.writes ?? true,
      })),
    }),
  );
}
