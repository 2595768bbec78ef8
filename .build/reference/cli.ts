// Generates docs/reference/cli: every command with its usage, options, exit codes, JSON output, and
// examples, from the table of commands that the program uses.
import { COMMAND_SPECS } from "../../src/admin/schema/command-specs.ts";
import { COMMANDS } from "../../src/cli/main.ts";
import {
  type CliCommand,
  COMMON_OPTIONS,
  CONFIG_OPTIONS,
  type Option,
  type Options,
} from "../../src/cli/support/command.ts";
import type { Schema } from "../../src/config/schema-dialect.ts";
import { code, listed, page, type ReferencePage, sentence, table } from "./markdown.ts";

interface CommandGroup {
  readonly slug: string;
  readonly title: string;
  readonly about: string;
  readonly commands: readonly string[];
}

export const GROUPS: readonly CommandGroup[] = [
  {
    slug: "run",
    title: "Run commands",
    about: "commands that start, reload, replace, and diagnose a gateway",
    commands: [
      "serve",
      "status",
      "reload",
      "hot-restart",
      "doctor",
      "console",
      "service",
      "completion",
    ],
  },
  {
    slug: "monitor",
    title: "Monitoring commands",
    about: "commands that show requests and live stats",
    commands: ["tail", "request", "top", "stats", "sockets", "jobs", "fleet"],
  },
  {
    slug: "config",
    title: "Configuration commands",
    about: "commands that create, check, and show `gateway.yaml`",
    commands: ["init", "check", "print", "explain", "config", "schema", "import"],
  },
  {
    slug: "models",
    title: "Provider and model commands",
    about: "commands for providers, models, and data policies",
    commands: ["providers", "models", "policy"],
  },
  {
    slug: "keys",
    title: "Key commands",
    about: "commands for API keys",
    commands: ["keys"],
  },
  {
    slug: "access",
    title: "Account and admin commands",
    about: "commands for accounts, MCP servers, admin tokens, sessions, and the audit log",
    commands: ["accounts", "mcp", "admins", "sessions", "audit"],
  },
  {
    slug: "scopes",
    title: "Scope commands",
    about: "commands for scopes and their members",
    commands: ["scopes"],
  },
  {
    slug: "ledger",
    title: "Ledger commands",
    about: "commands for usage, the ledger, backups, and the store",
    commands: ["usage", "invoice", "reconcile", "ledger", "erase", "backup", "restore", "store"],
  },
  {
    slug: "caches",
    title: "Prompt cache commands",
    about: "commands for prompt caches",
    commands: ["caches"],
  },
  {
    slug: "plugins",
    title: "Plugin commands",
    about: "commands for the users and authors of plugins",
    commands: ["list", "plugin", "new", "check-plugin", "record"],
  },
];

/** Members of the JSON output of commands that print more than the result of a gateway command. */
export const JSON_OUTPUT: Readonly<Record<string, readonly string[] | string>> = {
  "mcp list": ["servers"],
  "mcp test": ["servers"],
  "mcp connect": ["url", "connections"],
  serve: "Log lines as JSON. If the config is rejected: `ok`, `file`, and `problems`.",
  check: ["ok", "file", "problems", "unmountedProviders"],
  print: "The config is printed as YAML. If it is rejected: `ok`, `file`, and `problems`.",
  list: ["plugins"],
  schema: ["out", "plugins"],
  init: ["ok", "file", "problems"],
  doctor: ["ok", "file", "findings"],
  import: ["findings", "text", "secrets", "keys", "remarks"],
  new: ["folder", "files", "next"],
  "check-plugin": ["ok", "name", "version", "plugins", "passed", "failed", "findings"],
  record: ["recordings"],
  "service print": ["kind", "text"],
  completion: ["shell", "text"],
  "hot-restart": ["pid", "version", "before"],
  "providers test": ["tests"],
  "models list": ["models"],
  "models refresh": ["modelLists"],
  "keys hash": ["id", "external", "digest"],
  "keys list": ["keys"],
  "sessions list": ["sessions"],
  usage: ["by", "tz", "rows", "total"],
  caches: ["by", "rows"],
  invoice: [
    "account",
    "month",
    "currency",
    "margin",
    "lines",
    "usd",
    "amount",
    "unpriced",
    "estimated",
  ],
  reconcile: ["oursUsd", "theirsUsd", "differenceUsd", "causes", "groups", "corrections"],
  tail: "One line of JSON per request.",
  top: "One line of JSON per view.",
  "ledger export": "One line of JSON per row.",
  "ledger adjust": ["attempt", "costNano"],
  backup: ["file", "bytes", "ms", "manifest"],
  erase: ["texts", "hashes"],
  restore: ["stateDir", "manifest", "erased"],
  store: "The result of the command of the store.",
  "store copy": "Counts of the copied records.",
  plugin: "The plugins, or the result of the command of a plugin.",
  "plugin add": ["package", "provenance"],
  "plugin verify": ["ok", "packages"],
  "plugin remove": ["removed"],
};

/** Commands with two words that `resolveCommand` finds by their first word. */
const RESOLVED: Readonly<Record<string, readonly (() => Promise<CliCommand>)[]>> = {
  store: [async () => (await import("../../src/cli/commands/ledger/store-copy.ts")).command],
  plugin: [
    async () => (await import("../../src/cli/install/add.ts")).add,
    async () => (await import("../../src/cli/install/verify.ts")).verify,
    async () => (await import("../../src/cli/install/remove.ts")).remove,
  ],
};

interface NamedCommand {
  /** "keys create". */
  readonly name: string;
  readonly summary: string;
  readonly command: CliCommand;
}

/** Returns the commands of a group, without commands that only have subcommands. */
async function commandsIn(group: CommandGroup): Promise<NamedCommand[]> {
  const all = await Promise.all(
    group.commands.map(async (name) => {
      const { summary, load } = COMMANDS[name]!;
      const { command } = await load();
      const resolved = await Promise.all((RESOLVED[name] ?? []).map((one) => one()));
      if (!command.subcommands)
        return [
          { name, summary, command },
          ...resolved.map((one) => ({
            name: one.usage.split(" ").slice(0, 2).join(" "),
            summary: one.description.split(/(?<=\.)\s/)[0]!.replace(/\.$/, ""),
            command: one,
          })),
        ];
      return Object.entries(command.subcommands).map(([part, sub]) => ({
        name: `${name} ${part}`,
        summary: sub.summary,
        command: sub,
      }));
    }),
  );
  return all.flat();
}

/** Returns all commands that can be run. */
export const allCommands = async (): Promise<NamedCommand[]> =>
  (await Promise.all(GROUPS.map(commandsIn))).flat();

const optionRow = ([name, option]: [string, Option]): string[] => {
  const { short, placeholder, description, isRepeatable } = option;
  const head = `${short ? `-${short}, ` : ""}--${name}${placeholder ? ` <${placeholder}>` : ""}`;
  return [code(head), `${description}${isRepeatable ? " (repeatable)" : ""}`];
};

const optionTable = (options: Options): string =>
  table(["Option", "Description"], Object.entries(options).map(optionRow));

/** Returns the members of the JSON output that the specification of a gateway command requires. */
function specOutput(name: string): readonly string[] | undefined {
  const spec = Object.values(COMMAND_SPECS).find(({ cli }) => cli?.words === name);
  return (spec?.output as Schema | undefined)?.["required"] as readonly string[] | undefined;
}

/** Returns the documented members of the JSON output, or undefined if it is not one object. */
export function jsonMembersOf(name: string): readonly string[] | undefined {
  const own = JSON_OUTPUT[name] ?? specOutput(name);
  return typeof own === "string" ? undefined : own;
}

function jsonNote(name: string): string {
  const own = JSON_OUTPUT[name] ?? specOutput(name);
  if (own === undefined) return "";
  return typeof own === "string" ? own : sentence(`An object with ${listed(own.map(code))}`);
}

/** Splits the exit codes from a description, in whichever form it names them. */
function exitCodes(description: string): { description: string; codes: string } {
  const [about, codes] = description.split(/\n*\s*Exit codes:\s*/);
  return { description: about!.trim(), codes: codes?.trim() ?? "" };
}

function entry({ name, command }: NamedCommand): string[] {
  const { description, codes } = exitCodes(command.description);
  const own = Object.fromEntries(
    Object.entries(command.options).filter(([option]) => !(option in CONFIG_OPTIONS)),
  );
  const json = jsonNote(name);
  return [
    `## ${code(`tollgate ${name}`)}`,
    `\`\`\`text\ntollgate ${command.usage}\n\`\`\``,
    description.replaceAll("\n", "\n\n"),
    Object.keys(own).length > 0 ? optionTable(own) : "",
    codes === "" ? "" : `Exit codes: ${sentence(codes)}`,
    json === "" ? "" : `JSON output: ${json}`,
    command.examples.length > 1 ? "Examples:" : "Example:",
    `\`\`\`text\n${command.examples.join("\n")}\n\`\`\``,
  ];
}

export async function cliPages(): Promise<ReferencePage[]> {
  const missing = Object.keys(COMMANDS).filter(
    (name) => !GROUPS.some(({ commands }) => commands.includes(name)),
  );
  if (missing.length > 0) throw new Error(`no page of the CLI reference has ${missing.join(", ")}`);
  const groups = await Promise.all(
    GROUPS.map(async (group) => ({ group, commands: await commandsIn(group) })),
  );
  const pages = groups.map(({ group: { slug, title, about }, commands }) =>
    page(`cli/${slug}.md`, [
      `# ${title}`,
      `This page is for operators. It lists ${about}. All commands also take the [common options](README.md#common-options).`,
      ...commands.flatMap(entry),
    ]),
  );
  const index = page("cli/README.md", [
    "# CLI reference",
    "This page is for operators. It lists all commands of `tollgate`, with a link to the description of each.",
    "```text\ntollgate <command> [options]\n```",
    "`tollgate --help` lists the commands, and `tollgate <command> --help` describes one. The pages are generated from the same table, by `npm run docs:reference`.",
    "## Common options",
    "All commands take `--json` and `--help`. Commands that read `gateway.yaml` or call a running gateway take `--config`.",
    optionTable({ ...COMMON_OPTIONS, ...CONFIG_OPTIONS }),
    "## Exit codes",
    table(
      ["Code", "Meaning"],
      [
        ["`0`", "Success"],
        ["`1`", "Failure. The error is printed to stderr"],
        ["`78`", "`gateway.yaml` has errors"],
      ],
    ),
    "With `--json`, a command that fails prints an object with `error`, which contains `code` and `message`. [Errors](../errors.md) lists the codes.",
    ...groups.flatMap(({ group: { slug, title }, commands }) => [
      `## ${title}`,
      table(
        ["Command", "Description"],
        commands.map(({ name, summary }) => [
          `[${code(`tollgate ${name}`)}](${slug}.md#tollgate-${name.replaceAll(" ", "-")})`,
          summary,
        ]),
      ),
    ]),
  ]);
  return [index, ...pages];
}
