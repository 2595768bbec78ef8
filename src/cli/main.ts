// The command line: parses arguments and prints results. All other behavior is implemented in other
// layers. May import everything. Each command is imported when it is called. Exit codes: 0 success,
// 1 failure, 78 errors in gateway.yaml.
import { parseArgs } from "node:util";
import { COMMAND_SPECS as GATEWAY } from "../admin/schema/command-specs.ts";
import { didYouMean } from "../lib/text.ts";
import { getFault, fail } from "../model/error.ts";
import {
  type CliCommand,
  COMMON_OPTIONS,
  EXIT_CODES,
  type CliInput,
  type Options,
} from "./support/command.ts";
import { formatHelp, formatOverview } from "./support/help.ts";
import { version } from "./support/load-config.ts";
import { paintRemark, printRemark, print, printJson } from "./format/terminal.ts";

interface CommandEntry {
  readonly summary: string;
  readonly load: () => Promise<{ readonly command: CliCommand }>;
}

export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  serve: { summary: "Run the gateway", load: () => import("./commands/run/serve.ts") },
  check: {
    summary: "Check gateway.yaml for errors",
    load: () => import("./commands/config/check.ts"),
  },
  print: {
    summary: "Show the config with all defaults",
    load: () => import("./commands/config/print.ts"),
  },
  explain: {
    summary: GATEWAY.explain.summary,
    load: () => import("./commands/config/explain.ts"),
  },
  list: {
    summary: "List the available plugins",
    load: () => import("./commands/plugins/list.ts"),
  },
  schema: {
    summary: "Write the JSON Schema of gateway.yaml for editors",
    load: () => import("./commands/config/schema.ts"),
  },
  init: {
    summary: "Create a starter gateway.yaml",
    load: () => import("./commands/config/init.ts"),
  },
  doctor: {
    summary: "Diagnose problems with the installation",
    load: () => import("./commands/run/doctor.ts"),
  },
  import: {
    summary: "Import another gateway's config",
    load: () => import("./commands/config/import.ts"),
  },
  new: { summary: "Create a plugin package", load: () => import("./commands/plugins/new.ts") },
  "check-plugin": {
    summary: "Check a plugin package before you publish it",
    load: () => import("./commands/plugins/check-plugin.ts"),
  },
  record: {
    summary: "Record a provider's responses for plugin tests",
    load: () => import("./commands/plugins/record.ts"),
  },
  service: {
    summary: "Print service manager files",
    load: () => import("./commands/run/service-command.ts"),
  },
  completion: {
    summary: "Print a shell completion script",
    load: async () => {
      const { createCompletionCommand } = await import("./commands/run/completion.ts");
      return { command: createCompletionCommand(COMMANDS) };
    },
  },
  status: { summary: GATEWAY.status.summary, load: () => import("./commands/run/status.ts") },
  fleet: { summary: GATEWAY.fleet.summary, load: () => import("./commands/run/fleet.ts") },
  stats: { summary: GATEWAY.stats.summary, load: () => import("./commands/run/stats.ts") },
  reload: { summary: GATEWAY.reload.summary, load: () => import("./commands/run/reload.ts") },
  "hot-restart": {
    summary: "Replace the running gateway without downtime",
    load: () => import("./commands/run/hot-restart.ts"),
  },
  config: {
    summary: "Show the running config, or check another file against it",
    load: () => import("./commands/config/config.ts"),
  },
  sockets: {
    summary: "List and close open WebSockets",
    load: () => import("./commands/run/sockets.ts"),
  },
  jobs: {
    summary: "List, show, and cancel jobs",
    load: () => import("./commands/run/jobs.ts"),
  },
  providers: {
    summary: "List, test, and reset providers",
    load: () => import("./commands/config/providers.ts"),
  },
  models: {
    summary: "List and explain models",
    load: () => import("./commands/config/models.ts"),
  },
  mcp: {
    summary: "List and test MCP servers, and connect accounts",
    load: () => import("./commands/access/mcp.ts"),
  },
  policy: {
    summary: "Explain the data policies of a model's providers",
    load: () => import("./commands/access/policy.ts"),
  },
  keys: {
    summary: "Create, list, update, revoke, and rotate API keys",
    load: () => import("./commands/access/keys.ts"),
  },
  accounts: {
    summary: "Create, list, update, and close accounts",
    load: () => import("./commands/access/accounts.ts"),
  },
  scopes: {
    summary: "List scopes, and show the usage of their members",
    load: () => import("./commands/access/scopes.ts"),
  },
  admins: {
    summary: "Create, list, and revoke admin tokens",
    load: () => import("./commands/access/admins.ts"),
  },
  audit: {
    summary: GATEWAY["audit.list"].summary,
    load: () => import("./commands/ledger/audit.ts"),
  },
  console: { summary: GATEWAY.console.summary, load: () => import("./commands/run/console.ts") },
  sessions: {
    summary: "List and revoke console sessions",
    load: () => import("./commands/access/sessions.ts"),
  },
  usage: {
    summary: GATEWAY["ledger.totals"].summary,
    load: () => import("./commands/ledger/usage.ts"),
  },
  caches: {
    summary: GATEWAY["ledger.caches"].summary,
    load: () => import("./commands/ledger/caches.ts"),
  },
  invoice: {
    summary: "Write the invoice of an account for a month",
    load: () => import("./commands/ledger/invoice.ts"),
  },
  reconcile: {
    summary: "Compare the ledger with a provider's bill",
    load: () => import("./commands/ledger/reconcile.ts"),
  },
  tail: { summary: GATEWAY["requests.list"].summary, load: () => import("./commands/run/tail.ts") },
  request: {
    summary: GATEWAY["requests.show"].summary,
    load: () => import("./commands/run/request.ts"),
  },
  top: { summary: GATEWAY["requests.stats"].summary, load: () => import("./commands/run/top.ts") },
  ledger: {
    summary: "Verify, export, archive, and prune the ledger",
    load: () => import("./commands/ledger/ledger.ts"),
  },
  erase: { summary: GATEWAY.erase.summary, load: () => import("./commands/ledger/erase.ts") },
  backup: { summary: GATEWAY.backup.summary, load: () => import("./commands/ledger/backup.ts") },
  restore: {
    summary: "Restore a backup into a state directory",
    load: () => import("./commands/ledger/restore.ts"),
  },
  store: {
    summary: "Run commands of the store",
    load: () => import("./commands/ledger/store-command.ts"),
  },
  plugin: {
    summary: "Run commands of plugins",
    load: () => import("./commands/plugins/plugin.ts"),
  },
};

/**
 * Runs the command that `argv` names and returns its exit code.
 * @param terminal Whether stdout is a terminal.
 */
export async function main(
  argv: readonly string[],
  terminal: boolean = process.stdout.isTTY,
): Promise<number> {
  for (const stream of [process.stdout, process.stderr])
    if (!stream.listeners("error").includes(onStdoutError)) stream.on("error", onStdoutError);
  const [first = ""] = argv;
  if (["--version", "-v", "version"].includes(first)) {
    if (argv.includes("--json")) printJson({ version, node: process.version });
    else print(version);
    return EXIT_CODES.ok;
  }
  const json = argv.includes("--json");
  try {
    const asks = ["--help", "-h", "help"].includes(first);
    if (argv.length === 0 ? terminal : asks && argv[1] === undefined) {
      print(formatOverview(version, COMMANDS));
      return EXIT_CODES.ok;
    }
    return await runNamed(asks ? [...argv.slice(1), "--help"] : argv);
  } catch (error) {
    return printFailure(error, json);
  }
}

async function runNamed(argv: readonly string[]): Promise<number> {
  const [first = ""] = argv;
  // Arguments that begin with an option run `serve`, because services run `tollgate` or `tollgate
  // --port 9000`.
  const [name, rest] =
    first === "" || first.startsWith("-") ? ["serve", argv] : [first, argv.slice(1)];
  const entry = Object.hasOwn(COMMANDS, name)
    ? COMMANDS[name]!
    : failUnknown("command", name, Object.keys(COMMANDS), "tollgate --help");
  const { command: wide } = await entry.load();
  const [part, words] = wide.subcommands ? resolveSubcommand(name, wide, rest) : [wide, rest];
  const helps = words.includes("--help") || words.includes("-h");
  const command = (await part.resolveCommand?.(peekInput(part, words))) ?? part;
  if (helps) {
    print(formatHelp(command));
    return EXIT_CODES.ok;
  }
  return await command.run(parseInput(command, words));
}

/**
 * Returns the subcommand that is called, and the arguments without its name. With --help and no
 * subcommand, returns the whole command.
 */
function resolveSubcommand(
  name: string,
  wide: CliCommand,
  argv: readonly string[],
): readonly [CliCommand, readonly string[]] {
  const parts = wide.subcommands!;
  const every = Object.assign({}, ...Object.values(parts).map(({ options }) => options)) as Options;
  const word = tokenizeArgs({ ...every, ...COMMON_OPTIONS }, argv).tokens.find(
    ({ kind }) => kind === "positional",
  );
  if (word?.kind !== "positional") {
    if (argv.includes("--help") || argv.includes("-h")) return [wide, argv];
    if (wide.defaultSubcommand !== undefined) return [parts[wide.defaultSubcommand]!, argv];
    const all = Object.keys(parts).map((part) => `${name} ${part}`);
    return fail("invalid", `Missing subcommand: ${all.join(", ")}. See tollgate ${name} --help.`, {
      code: "usage",
    });
  }
  const part = Object.hasOwn(parts, word.value) ? parts[word.value] : undefined;
  if (part) return [part, [...argv.slice(0, word.index), ...argv.slice(word.index + 1)]];
  return failUnknown(`${name} command`, word.value, Object.keys(parts), `tollgate ${name} --help`);
}

/** Exits without an error when the reader of stdout closes the pipe. */
function onStdoutError(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit();
}

/** Prints the message of a fault, or the stack of any other error. Returns the exit code. */
function printFailure(error: unknown, json: boolean): number {
  const fault = getFault(error);
  const message = fault?.message ?? (error instanceof Error ? error.message : String(error));
  if (json) printJson({ error: { code: fault?.code ?? fault?.kind ?? "internal", message } });
  printRemark(`${paintRemark("red", "error")}  ${message}`);
  if (!fault && error instanceof Error) printRemark(paintRemark("gray", error.stack ?? ""));
  return EXIT_CODES.failed;
}

function failUnknown(what: string, word: string, known: readonly string[], help: string): never {
  return fail("invalid", `Unknown ${what} "${word}".${didYouMean(word, known)} See ${help}.`, {
    code: "usage",
  });
}

const tokenizeArgs = (options: Options, argv: readonly string[]) =>
  parseArgs({
    args: [...argv],
    strict: false,
    tokens: true,
    allowPositionals: true,
    options: Object.fromEntries(
      Object.entries(options).map(([name, { placeholder, short, isRepeatable }]) => [
        name,
        {
          type: placeholder === undefined ? ("boolean" as const) : ("string" as const),
          ...(short === undefined ? {} : { short }),
          ...(isRepeatable ? { multiple: true } : {}),
        },
      ]),
    ),
  });

/**
 * Parses the arguments before all options of the command are known: its own options, and the
 * positional arguments before the first unknown option.
 */
function peekInput(command: CliCommand, argv: readonly string[]): CliInput {
  const options = { ...command.options, ...COMMON_OPTIONS };
  const known: string[] = [];
  let strange = false;
  for (const token of tokenizeArgs(options, argv).tokens) {
    if (token.kind === "positional" && !strange) known.push(token.value);
    if (token.kind !== "option") continue;
    const taken = token.value !== undefined && !token.inlineValue ? 2 : 1;
    if (Object.hasOwn(options, token.name))
      known.push(...argv.slice(token.index, token.index + taken));
    else strange = true;
  }
  return parseInput(command, known);
}

/** Returns the words at the start of a command's usage: "keys", "plugin store head". */
const commandNameIn = (usage: string): string => /^\w[\w.-]*( \w[\w.-]*(?![^ ]))*/.exec(usage)![0];

/** Parses the positional arguments and options of one command. */
export function parseInput(command: CliCommand, argv: readonly string[]): CliInput {
  const options = { ...command.options, ...COMMON_OPTIONS };
  const help = `tollgate ${commandNameIn(command.usage)} --help`;
  const { values, positionals, tokens } = tokenizeArgs(options, argv);
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (!option)
      failUnknown(
        "option",
        token.rawName,
        Object.keys(options).map((o) => `--${o}`),
        help,
      );
    else if (option.placeholder === undefined && token.value !== undefined)
      fail("invalid", `${token.rawName} does not take a value. See ${help}.`, { code: "usage" });
    else if (option.placeholder !== undefined && (token.value ?? "") === "")
      fail(
        "invalid",
        `Missing value: ${token.rawName} requires a ${option.placeholder}. See ${help}.`,
        {
          code: "usage",
        },
      );
  }
  const { least, most } = command.positionals ?? { least: 0, most: 0 };
  if (positionals.length > most)
    fail("invalid", `Too many arguments: "${positionals[most]}". See ${help}.`, { code: "usage" });
  if (positionals.length < least)
    fail("invalid", `Usage: tollgate ${command.usage}. See ${help}.`, { code: "usage" });
  const texts = (name: string) => [values[name] ?? []].flat().filter((v) => typeof v === "string");
  return {
    positionals,
    json: values["json"] === true,
    has: (name) => values[name] === true,
    getText: (name) => texts(name).at(-1),
    getTexts: texts,
  };
}
