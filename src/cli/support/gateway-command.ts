// Builds a CLI command from the specification of a gateway command: its help, options, and input.
// The command's own file adds only the output for people.
import { callControl } from "../../admin/socket/control-client.ts";
import type { CommandSpec } from "../../admin/schema/command-spec.ts";
import { COMMAND_SPECS, type CommandName } from "../../admin/schema/command-specs.ts";
import type { Schema } from "../../config/schema-dialect.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import { paintRemark, printJson, printRemark } from "../format/terminal.ts";
import {
  type CliInput,
  EXIT_CODES,
  GATEWAY_OPTIONS,
  type Options,
  type Subcommand,
} from "./command.ts";
import { askRunningGateway, dryRunConfig } from "./gateway-or-file.ts";
import { findStateDir } from "./load-config.ts";
import { readArguments, readOptions, requiredUsage, schemaOptions } from "./schema-options.ts";
import { openStoreAccess } from "./store-access.ts";
import type { Privacy } from "../../model/facts.ts";

/** The part of a CLI command that its specification does not determine. */
interface CommandParts<A> {
  /** Prints the answer for people. */
  print(answer: A, given: CliInput): void;
  /** Returns the JSON output. Default: the result. */
  toJson?(answer: A, given: CliInput): unknown;
  /** Default: 0. */
  exitCode?(answer: A, given: CliInput): number;
  /** Members that the command sets itself, and that have no option. */
  readonly omit?: readonly string[];
  /** Options that only the command line has. */
  readonly options?: Options;
  /** Completes the input that was read from the options. */
  toInput?(input: JsonObject, given: CliInput): JsonObject | Promise<JsonObject>;
  /** Remark that is printed before the result from a running gateway or from gateway.yaml. */
  readonly remarks?: { readonly live?: string; readonly config?: string };
}

const ACCESS_TEXTS = {
  store: "Uses the running gateway, or its store if no gateway is running.",
  config: "Uses the running gateway, or gateway.yaml if no gateway is running.",
} as const;
const accessText = (of: CommandSpec["worksOffline"]): string =>
  of === false ? "Needs a running gateway." : ACCESS_TEXTS[of];

/** Help of a gateway command. `omit` and `options` are as in `CommandParts`. */
export function describeCommand(
  name: CommandName,
  { omit = [], options = {} }: Pick<CommandParts<unknown>, "omit" | "options"> = {},
): Omit<Subcommand, "run"> {
  const { summary, input, cli, worksOffline }: CommandSpec = COMMAND_SPECS[name];
  const { words, description, args = [], examples, exits } = cli!;
  const schema = input as Schema;
  const required = (schema["required"] ?? []) as readonly string[];
  const hidden = [...args, ...omit];
  const least = args.filter((each) => required.includes(each)).length;
  return {
    usage: [
      words,
      ...args.map((each) => (required.includes(each) ? ` <${each}>` : ` [${each}]`)),
      requiredUsage(schema, hidden),
      " [options]",
    ].join(""),
    summary,
    description: [description, accessText(worksOffline), exits].filter(Boolean).join(" "),
    options: { ...options, ...schemaOptions(schema, hidden), ...GATEWAY_OPTIONS },
    positionals: { least, most: args.length },
    examples,
  };
}

/** Reads the input of a gateway command from its positional arguments and options. */
export function readCommandInput(
  name: CommandName,
  given: CliInput,
  omit: readonly string[] = [],
): JsonObject {
  const { input, cli }: CommandSpec = COMMAND_SPECS[name];
  const args = cli!.args ?? [];
  const schema = input as Schema;
  return {
    ...readArguments(schema, args, given),
    ...readOptions(schema, given, [...args, ...omit]),
  };
}

export const gatewayCommand = <A>(name: CommandName, parts: CommandParts<A>): Subcommand => ({
  ...describeCommand(name, parts),
  async run(given) {
    const read = readCommandInput(name, given, parts.omit);
    const input = (await parts.toInput?.(read, given)) ?? read;
    const called = await callGateway(given, name, input);
    if (!called) return EXIT_CODES.failed;
    const remark = parts.remarks?.[called.from];
    if (remark !== undefined) printRemark(paintRemark("gray", remark));
    const answer = called.answer as A;
    if (given.json) printJson(parts.toJson ? parts.toJson(answer, given) : answer);
    else parts.print(answer, given);
    return parts.exitCode?.(answer, given) ?? EXIT_CODES.ok;
  },
});

interface Called {
  readonly answer: Json;
  readonly from: "live" | "config";
}

/**
 * Runs a command in the running gateway. If none runs, runs it on the store or the config if it can.
 * Returns undefined after printing the problems if gateway.yaml has errors.
 */
async function callGateway(
  given: CliInput,
  name: CommandName,
  input: JsonObject,
): Promise<Called | undefined> {
  const { worksOffline }: CommandSpec = COMMAND_SPECS[name];
  if (worksOffline === false)
    return { answer: await callControl(await findStateDir(given), name, input), from: "live" };
  if (worksOffline === "store") {
    await using store = await openStoreAccess(given);
    return { answer: await store.run(name, input), from: "live" };
  }
  const live = await askRunningGateway(given, name, input);
  if (live) return { ...live, from: "live" };
  await using dryRun = await dryRunConfig(given);
  if (!dryRun) return undefined;
  const commands: Readonly<Record<string, (input: JsonObject) => Promise<unknown>>> =
    dryRun.commands;
  return { answer: (await commands[name]!(input)) as Json, from: "config" };
}

// The options --zdr and --strict, which simulate the header Service-ZDR.

export const PRIVACY_OPTIONS: Options = {
  zdr: { description: "Simulate a request with the header Service-ZDR: required" },
  strict: { description: "Simulate a request with the header Service-ZDR: strict" },
};

export const readPrivacy = (given: CliInput): Privacy =>
  given.has("strict") ? "strict" : given.has("zdr") ? "required" : "off";
