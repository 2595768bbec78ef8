import type { Schema } from "../../../config/schema-dialect.ts";
import { checkInput } from "../../../admin/dispatch/command-input.ts";
import {
  findCommand,
  findPlugin,
  type ShownCommand,
  type ShownPlugin,
} from "../../../admin/commands/plugin-commands.ts";
import { startDryRun, runOfflinePluginCommand } from "../../../server/dry-run.ts";
import { fail } from "../../../model/error.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { askRunningGateway } from "../../support/gateway-or-file.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  type Options,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import {
  configFile,
  failInvalidConfig,
  quietLog,
  requireGatewayConfig,
} from "../../support/load-config.ts";
import {
  optionFlag,
  readInput,
  schemaOptions,
  requiredUsage,
} from "../../support/schema-options.ts";
import { rejectVolatileStore } from "../../support/store-access.ts";
import { alignColumns, paint, printRemark, print, printJson } from "../../format/terminal.ts";

const SHARED_OPTIONS: Options = {
  ...GATEWAY_OPTIONS,
};

/**
 * Commands that install, remove, and inspect packages. No plugin ID is equal to one of these names.
 */
const PACKAGE_COMMANDS: Readonly<Record<string, () => Promise<CliCommand>>> = {
  add: async () => (await import("../../install/add.ts")).add,
  verify: async () => (await import("../../install/verify.ts")).verify,
  remove: async () => (await import("../../install/remove.ts")).remove,
};

export const command: CliCommand = {
  usage: "plugin [id] [command] [options]",
  description:
    "Manages plugins. add, verify, and remove manage third-party packages (see " +
    "tollgate plugin add --help). Without a name, it lists the mounted plugins with their commands. With an id, it lists the commands of one plugin, or runs one. A command runs in the running gateway, or on its files if no gateway is running. Exits with 1 if the " +
    "command fails, but not if its result is negative.",
  options: SHARED_OPTIONS,
  positionals: { least: 0, most: 2 },
  examples: [
    "tollgate plugin",
    "tollgate plugin middleware.usage today",
    "tollgate plugin store holds --help",
    "tollgate plugin add tollgate-provider-acme",
    "tollgate plugin verify",
    "tollgate plugin remove tollgate-provider-acme",
  ],
  async resolveCommand(given) {
    const [id, name] = given.positionals;
    if (id !== undefined && Object.hasOwn(PACKAGE_COMMANDS, id)) return PACKAGE_COMMANDS[id]!();
    if (id === undefined || name === undefined) return command;
    const { plugin, command: found } = findCommand(await listMountedPlugins(given), id, name);
    return pluginCommand(plugin, found);
  },
  async run(given) {
    const [id] = given.positionals;
    const plugins = await listMountedPlugins(given);
    if (id !== undefined) printPlugin(given, findPlugin(plugins, id));
    else printPlugins(given, plugins);
    return EXIT_CODES.ok;
  },
};

const pluginCommand = (
  { id }: ShownPlugin,
  { name, summary, input: schema }: ShownCommand,
): CliCommand => {
  const words = `plugin ${id} ${name}`;
  const options = schemaOptions(schema);
  return {
    usage: `${words}${requiredUsage(schema)} [options]`,
    description: `${summary}.`,
    options: {
      ...options,
      input: {
        placeholder: "json",
        description: "Whole input as one JSON object, or - for stdin",
      },
      ...SHARED_OPTIONS,
    },
    positionals: { least: 2, most: 2 },
    examples: [`tollgate ${words}${requiredUsage(schema)}`],
    async run(given) {
      const input = validateInput(schema, await readInput(schema, given), words);
      const answer = await callPluginCommand(given, `${id}/${name}`, input);
      if (given.json) printJson(answer);
      else {
        const text = formatTable(answer);
        if (text === "") printRemark("The command returned no output.");
        else print(text);
      }
      return EXIT_CODES.ok;
    },
  };
};

/** Validates the input and reports all errors together, each with its option. */
function validateInput(schema: Schema, input: JsonObject, words: string): JsonObject {
  const { value, errors } = checkInput(schema, input, () => true);
  if (errors.length === 0) return value as JsonObject;
  const messages = errors.map(({ words: { id, message, hint }, pointer }) => {
    const [, first, ...deeper] = pointer.split("/");
    const more = hint === undefined ? "" : ` — ${hint}`;
    if (first === undefined) return message.replace(/"(\w+)"/, (_, key) => optionFlag(key)) + more;
    // There is no option for an unknown key, so the key came from --input.
    const option =
      id === "config/unknown-key" ? "--input" : [optionFlag(first), ...deeper].join("/");
    return `${option}: ${message}${more}`;
  });
  return fail("invalid", `${messages.join("\n       ")}\nSee tollgate ${words} --help.`, {
    code: "bad_input",
  });
}

/**
 * Returns the plugins that the running gateway has mounted. If no gateway is running, returns the
 * plugins that gateway.yaml would mount.
 */
export async function listMountedPlugins(given: CliInput): Promise<readonly ShownPlugin[]> {
  const live = await askRunningGateway(given, "plugins.list", {});
  if (live) return (live.answer as unknown as { plugins: ShownPlugin[] }).plugins;
  const rehearsed = await startDryRun(await runOffline(given));
  if ("problems" in rehearsed) return failInvalidConfig(configFile(given));
  await using rehearsal = rehearsed;
  return ((await rehearsal.commands["plugins.list"]({})) as { plugins: ShownPlugin[] }).plugins;
}

export async function callPluginCommand(
  given: CliInput,
  name: string,
  input: JsonObject,
): Promise<Json> {
  const live = await askRunningGateway(given, name, input);
  if (live) return live.answer;
  const files = await runOffline(given);
  rejectVolatileStore(files.config);
  return runOfflinePluginCommand(files, name, input);
}

async function runOffline(given: CliInput) {
  return { ...(await requireGatewayConfig(configFile(given))), ...quietLog() };
}

function printPlugins(given: CliInput, plugins: readonly ShownPlugin[]): void {
  if (given.json) return printJson({ plugins });
  print(
    alignColumns(
      plugins.map(({ id, use, commands }) => [
        paint("bold", id),
        paint("gray", use),
        commands.map(({ name }) => name).join(", ") || paint("gray", "no commands"),
      ]),
    ),
  );
}

function formatNeeds({ origins, usesMetadataService, env, files }: ShownPlugin["needs"]): string {
  const parts = [
    origins.length > 0 && origins.join(", "),
    usesMetadataService && "the cloud's metadata service",
    env.length > 0 && `the variables ${env.join(", ")}`,
    files.length > 0 && `the files ${files.join(", ")}`,
  ];
  return parts.filter(Boolean).join("; ");
}

function printPlugin(given: CliInput, plugin: ShownPlugin): void {
  if (given.json) return printJson(plugin);
  const { id, use, summary, needs, commands } = plugin;
  print(`${paint("bold", id)}  ${paint("gray", use)}  ${summary}`);
  const needed = formatNeeds(needs);
  if (needed !== "") print(`needs ${needed}`);
  if (commands.length === 0) return printRemark("The plugin has no commands.");
  for (const { name, summary, input } of commands) {
    print(`\ntollgate plugin ${id} ${paint("bold", name)}${requiredUsage(input)}\n  ${summary}`);
    const rows = Object.entries(schemaOptions(input)).map(
      ([option, { placeholder, description }]) => [
        `--${option}${placeholder === undefined ? "" : ` <${placeholder}>`}`,
        description,
      ],
    );
    if (rows.length > 0) print(alignColumns(rows, "  "));
  }
}

// Formats any JSON for people: a list of objects as a table, one object as names and values.

/** Returns an empty string if there is no value. */
function formatTable(value: Json | undefined): string {
  if (value === null || value === undefined) return "";
  if (isList(value)) {
    if (!value.some(isRecord)) return value.map(formatCell).join("\n");
    const things = value.map((each) => (isRecord(each) ? each : { "": each }));
    const names = [...new Set(things.flatMap((each) => Object.keys(each)))];
    return alignColumns([
      names.map((name) => paint("gray", name)),
      ...things.map((each) => names.map((name) => formatCell(each[name]))),
    ]);
  }
  if (!isRecord(value)) return formatCell(value);
  return alignColumns(
    Object.entries(value).map(([name, each]) => [paint("gray", name), formatCell(each)]),
  );
}

type JsonRecord = { readonly [name: string]: Json | undefined };

const isList = (value: Json): value is readonly Json[] => Array.isArray(value);
const isRecord = (value: Json): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function formatCell(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") return JSON.stringify(value);
  return typeof value === "number" ? value.toLocaleString("en") : value;
}
