import type { Schema } from "../config/dialect.ts";
import { checkInput } from "../gateway/control/input.ts";
import {
  find,
  findPlugin,
  type ShownCommand,
  type ShownPlugin,
} from "../gateway/control/plugin-commands.ts";
import { rehearse, runPluginCommand } from "../gateway/rehearse.ts";
import { fail } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { askLive } from "./asking.ts";
import { type CliCommand, type CliInput, EXIT, type Options, PLACE } from "./command.ts";
import { configFile, load, nameOf, quietLog } from "./loading.ts";
import { flagOf, inputOf, optionsOf, usageOf } from "./input.ts";
import { refuseMemory } from "./store.ts";
import { table } from "./table.ts";
import { columns, paint, remark, say, sayJson } from "./terminal.ts";

const SHARED: Options = {
  ...PLACE,
};

/** What is done to packages; no plugin's id is one of these words. */
const PACKAGES: Readonly<Record<string, () => Promise<CliCommand>>> = {
  add: async () => (await import("./install/add.ts")).add,
  verify: async () => (await import("./install/verify.ts")).verify,
  remove: async () => (await import("./install/remove.ts")).remove,
};

export const command: CliCommand = {
  usage: "plugin [id] [command] [options]",
  about:
    "add, verify and remove: packages that are not Tollgate's own, see tollgate plugin add --help. Otherwise it lists the plugins that are mounted and the commands that they bring, the commands of one, or runs one: in the\n" +
    "running gateway, or on its files while none runs. Exits with 1 when it failed, not when its answer is no.",
  options: SHARED,
  words: { least: 0, most: 2 },
  examples: [
    "tollgate plugin",
    "tollgate plugin middleware.usage today",
    "tollgate plugin store holds --help",
    "tollgate plugin add tollgate-provider-acme",
    "tollgate plugin verify",
    "tollgate plugin remove tollgate-provider-acme",
  ],
  async narrow(given) {
    const [id, name] = given.words;
    if (id !== undefined && Object.hasOwn(PACKAGES, id)) return PACKAGES[id]!();
    if (id === undefined || name === undefined) return command;
    const { plugin, command: found } = find(await mounted(given), id, name);
    return narrowed(plugin, found);
  },
  async run(given) {
    const [id] = given.words;
    const plugins = await mounted(given);
    if (id !== undefined) tellOne(given, findPlugin(plugins, id));
    else tellAll(given, plugins);
    return EXIT.fine;
  },
};

const narrowed = (
  { id }: ShownPlugin,
  { name, summary, input: schema }: ShownCommand,
): CliCommand => {
  const words = `plugin ${id} ${name}`;
  const options = optionsOf(schema);
  return {
    usage: `${words}${usageOf(schema)} [options]`,
    about: `${summary}.`,
    options: {
      ...options,
      input: { value: "json", about: "all of its input as one JSON object, or - for stdin" },
      ...SHARED,
    },
    words: { least: 2, most: 2 },
    examples: [`tollgate ${words}${usageOf(schema)}`],
    async run(given) {
      const input = checked(schema, await inputOf(schema, given), words);
      const answer = await ask(given, `${id}/${name}`, input);
      if (given.json) sayJson(answer);
      else {
        const text = table(answer);
        if (text === "") remark("It has nothing to say.");
        else say(text);
      }
      return EXIT.fine;
    },
  };
};

/** Everything that is wrong with the input at once, each at its option. */
function checked(schema: Schema, input: JsonObject, words: string): JsonObject {
  const { value, complaints } = checkInput(schema, input, () => true);
  if (complaints.length === 0) return value as JsonObject;
  const said = complaints.map(({ words: { id, message, hint }, pointer }) => {
    const [, first, ...deeper] = pointer.split("/");
    const more = hint === undefined ? "" : ` — ${hint}`;
    if (first === undefined) return message.replace(/"(\w+)"/, (_, key) => flagOf(key)) + more;
    // No option could have said it.
    const option = id === "config/unknown-key" ? "--input" : [flagOf(first), ...deeper].join("/");
    return `${option}: ${message}${more}`;
  });
  return fail("invalid", `${said.join("\n       ")}\nSee tollgate ${words} --help.`, {
    code: "bad_input",
  });
}

/** What is mounted in the running gateway, or would be. */
export async function mounted(given: CliInput): Promise<readonly ShownPlugin[]> {
  const live = await askLive(given, "plugins.list", {});
  if (live) return (live.answer as unknown as { plugins: ShownPlugin[] }).plugins;
  const rehearsed = await rehearse(await onFiles(given));
  if ("problems" in rehearsed) return broken(given);
  await using rehearsal = rehearsed;
  return ((await rehearsal.commands["plugins.list"]({})) as { plugins: ShownPlugin[] }).plugins;
}

export async function ask(given: CliInput, name: string, input: JsonObject): Promise<Json> {
  const live = await askLive(given, name, input);
  if (live) return live.answer;
  const files = await onFiles(given);
  refuseMemory(files.config);
  return runPluginCommand(files, name, input);
}

async function onFiles(given: CliInput) {
  const loaded = await load(configFile(given));
  return { loaded, config: loaded.config ?? broken(given), ...quietLog() };
}

const broken = (given: CliInput): never =>
  fail("invalid", `${nameOf(configFile(given))} has errors, see tollgate check.`);

function tellAll(given: CliInput, plugins: readonly ShownPlugin[]): void {
  if (given.json) return sayJson({ plugins });
  say(
    columns(
      plugins.map(({ id, use, commands }) => [
        paint("bold", id),
        paint("gray", use),
        commands.map(({ name }) => name).join(", ") || paint("gray", "no commands"),
      ]),
    ),
  );
}

function needsInWords({ origins, metadata, env, files }: ShownPlugin["needs"]): string {
  const parts = [
    origins.length > 0 && origins.join(", "),
    metadata && "the cloud's metadata service",
    env.length > 0 && `the variables ${env.join(", ")}`,
    files.length > 0 && `the files ${files.join(", ")}`,
  ];
  return parts.filter(Boolean).join("; ");
}

function tellOne(given: CliInput, plugin: ShownPlugin): void {
  if (given.json) return sayJson(plugin);
  const { id, use, summary, needs, commands } = plugin;
  say(`${paint("bold", id)}  ${paint("gray", use)}  ${summary}`);
  const needed = needsInWords(needs);
  if (needed !== "") say(`needs ${needed}`);
  if (commands.length === 0) return remark("It has no commands.");
  for (const { name, summary, input } of commands) {
    say(`\ntollgate plugin ${id} ${paint("bold", name)}${usageOf(input)}\n  ${summary}`);
    const rows = Object.entries(optionsOf(input)).map(([option, { value, about }]) => [
      `--${option}${value === undefined ? "" : ` <${value}>`}`,
      about,
    ]);
    if (rows.length > 0) say(columns(rows, "  "));
  }
}
