// Lists and runs the commands of plugins as "<plugin id>/<command>". The same commands work on the
// control socket of a running gateway and on its files. With workers, these commands run in the
// primary, where the store is open and every generation is built. For data of other processes, a
// plugin queries its peers.
import { EMPTY_SCHEMA, type Schema } from "../../config/schema-dialect.ts";
import {
  type DeclaredNeeds,
  resolveNeeds,
  type NeedsContext,
} from "../../config/sections/plugin-needs.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { SecretMask } from "../../lib/log/secret-mask.ts";
import { didYouMean, nearest } from "../../lib/text.ts";
import { fail, getFault, publicErrorText } from "../../model/error.ts";
import type { Commands, PluginCommand } from "../../plugin/plugin.ts";
import type { Store } from "../../plugin/store/store.ts";
import { validateInput, withInputChecks } from "../dispatch/command-input.ts";
import type { DispatcherOptions, RegisteredCommand } from "../dispatch/command-dispatcher.ts";
import type { BuiltGeneration } from "../../runtime/generation/build-generation.ts";

/** A plugin's command, with defaults for omitted members. */
export interface ShownCommand extends Required<
  Omit<PluginCommand, "run" | "input" | "output" | "runsBeforeOpen">
> {
  readonly name: string;
  readonly input: Schema;
  readonly output: Schema;
}

/** A mounted plugin. */
export interface ShownPlugin {
  /** Path in gateway.yaml. */
  readonly id: string;
  readonly use: string;
  readonly summary: string;
  /** Resources that the plugin accesses beyond the public Internet and its options. */
  readonly needs: ShownNeeds;
  readonly commands: readonly ShownCommand[];
}

/** Needs as declared, with the operator's options filled in. */
export interface ShownNeeds extends Pick<DeclaredNeeds, "usesMetadataService" | "env" | "files"> {
  readonly origins: readonly string[];
}

/** The currently mounted plugins. */
export interface MountedState {
  readonly config: GatewayConfig;
  readonly built: BuiltGeneration;
  readonly store: Store & Commands;
  readonly mask: SecretMask;
  readonly env: NeedsContext["env"];
}

export const createPluginsCommand = (current: () => MountedState) =>
  withInputChecks({ "plugins.list": async () => ({ plugins: listPlugins(current()) }) });

/**
 * Returns the plugins' own commands, "<plugin id>/<command>". The list changes with the mounted
 * plugins.
 */
export const pluginCommandSource = (
  mounts: () => MountedState,
): DispatcherOptions["pluginCommands"] => ({
  find(name) {
    const slash = name.indexOf("/");
    if (slash < 0) return undefined;
    const now = mounts();
    const { plugin, command } = findCommand(
      listPlugins(now),
      name.slice(0, slash),
      name.slice(slash + 1),
    );
    return toRegisteredCommand(now, plugin, command);
  },
  all() {
    const now = mounts();
    return listPlugins(now).flatMap((plugin) =>
      plugin.commands.map((command) => toRegisteredCommand(now, plugin, command)),
    );
  },
});

const toRegisteredCommand = (
  now: MountedState,
  { id }: ShownPlugin,
  command: ShownCommand,
): RegisteredCommand => {
  const { name, ...facts } = command;
  return {
    name: `${id}/${name}`,
    spec: facts as RegisteredCommand["spec"],
    run: async (input) => {
      const accepted = validateInput(command.input, input);
      try {
        return await commandsOf(now, id)[name]!.run(accepted);
      } catch (error) {
        if (getFault(error)) throw error;
        return fail(
          "internal",
          `${id} ${name} failed: ${now.mask.maskText(publicErrorText(error))}`,
        );
      }
    },
  };
};

/** Finds a command by exact names. Similar names are only suggested in the error. */
export function findCommand(plugins: readonly ShownPlugin[], id: string, name: string) {
  const plugin = findPlugin(plugins, id);
  const names = plugin.commands.map((each) => each.name);
  const command =
    plugin.commands.find((each) => each.name === name) ??
    fail(
      "not_found",
      names.length === 0
        ? `The plugin ${id} has no commands. Run tollgate plugin to list the plugins that have.`
        : `Unknown command "${name}" of the plugin ${id}.${didYouMean(name, names)} Known commands: ${names.join(", ")}.`,
      { code: "unknown_command" },
    );
  return { plugin, command };
}

export function findPlugin(plugins: readonly ShownPlugin[], id: string): ShownPlugin {
  const ids = plugins.map((each) => each.id);
  // "usage" is not accepted for "middleware.usage", because another plugin could later have the
  // same short name.
  const near = nearest(id, ids) ?? ids.find((each) => each.endsWith(`.${id}`));
  return (
    plugins.find((each) => each.id === id) ??
    fail(
      "not_found",
      `Plugin "${id}" not found.${near === undefined ? "" : ` Did you mean "${near}"?`} Run tollgate plugin to list the active plugins.`,
      { code: "unknown_plugin" },
    )
  );
}

const commandsOf = (
  { built, store }: MountedState,
  id: string,
): NonNullable<Commands["commands"]> =>
  (id === "store" ? store.commands : built.commands.get(id)) ?? {};

const shownNeeds = ({ origins, usesMetadataService, env, files }: DeclaredNeeds): ShownNeeds => ({
  origins: [...origins],
  usesMetadataService,
  env,
  files,
});

function listPlugins(now: MountedState): ShownPlugin[] {
  const place = { configFile: now.config.file, env: now.env };
  const { store, frontends, middleware, observers, providers } = now.config;
  return [store, ...frontends, ...middleware, ...observers, ...providers.values()].map(
    (mounted) => ({
      id: mounted.id,
      use: mounted.use,
      summary: mounted.definition.summary,
      needs: shownNeeds(resolveNeeds(mounted.definition, mounted.options, place)),
      commands: Object.entries(commandsOf(now, mounted.id)).map(([name, command]) => ({
        name,
        summary: command.summary,
        input: (command.input as Schema | undefined) ?? EMPTY_SCHEMA,
        output: (command.output as Schema | undefined) ?? {},
        role: command.role ?? "owner",
        writes: command.writes ?? true,
      })),
    }),
  );
}
